"""The search for the partition that costs the least."""

from planner.partition.search.choices.partitioning import LevelChoice, Partitioning, mesh_of
from planner.partition.search.choices.rules import Pin, SearchRules
from planner.partition.search.costs.evaluate import evaluate, want_key
from planner.partition.search.factors.eliminate import CostTable, eliminate
from planner.partition.search.optimize import optimize
from planner.partition.search.recursion import recurse

__all__ = [
    "CostTable", "LevelChoice", "Partitioning", "Pin", "SearchRules", "eliminate", "evaluate", "mesh_of",
    "optimize", "recurse", "want_key",
]  # fmt: skip
