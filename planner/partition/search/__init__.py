"""The search for the partition that moves the least bytes."""

from planner.partition.search.eliminate import CostTable, eliminate
from planner.partition.search.recursion import LevelChoice, Partitioning, prime_factors, recurse

__all__ = ["CostTable", "LevelChoice", "Partitioning", "eliminate", "prime_factors", "recurse"]
