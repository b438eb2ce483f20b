"""The search for the partition that costs the least."""

from planner.partition.search.eliminate import CostTable, eliminate
from planner.partition.search.evaluate import evaluate
from planner.partition.search.partitioning import LevelChoice, Partitioning, mesh_of, prime_factors
from planner.partition.search.recursion import recurse
from planner.partition.search.rules import Pin, SearchRules

__all__ = [
    "CostTable", "LevelChoice", "Partitioning", "Pin", "SearchRules", "eliminate", "evaluate", "mesh_of",
    "prime_factors", "recurse",
]  # fmt: skip
