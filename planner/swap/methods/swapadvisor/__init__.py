"""SwapAdvisor (ASPLOS 2020) as it was published: genes for schedule and pool, and the swap planner over a pool."""

from planner.swap.methods.swapadvisor.genetic import Genetic

__all__ = ["Genetic"]
