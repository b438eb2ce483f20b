"""From a draft to a plan: packed, written down, with its times."""
