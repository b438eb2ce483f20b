"""Simulated annealing over all decisions of a plan."""

from planner.swap.methods.annealing.annealing_method import Annealing

__all__ = ["Annealing"]
