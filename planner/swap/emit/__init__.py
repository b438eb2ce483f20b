"""From an unplaced plan to a plan: packing, assembly and predicted times."""
