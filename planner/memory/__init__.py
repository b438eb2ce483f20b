"""Lifetimes, offsets, plans, and the validator that shares no code with any planner."""
