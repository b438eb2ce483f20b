"""Sums of costs that each depend on a few variables: their least value, and lower bounds of it."""
