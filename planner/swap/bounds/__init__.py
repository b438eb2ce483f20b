"""Proven lower bounds on the time of any plan."""
