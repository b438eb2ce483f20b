"""Local search over everything that a plan decides."""

from planner.swap.methods.annealing.polish import Polish

__all__ = ["Polish"]
