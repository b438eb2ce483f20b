"""Local search over everything that a plan decides."""

from planner.swap.polish.polish import Polish

__all__ = ["Polish"]
