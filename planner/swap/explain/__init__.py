"""A plan explained."""
