"""Simpler ways of splitting a step, which a search has to beat."""

from planner.partition.baselines.all_row import all_row
from planner.partition.baselines.data_parallel import data_parallel
from planner.partition.baselines.operator_placement import Placement, place_operators
from planner.partition.baselines.registry import BASELINES, Baseline, baselines
from planner.partition.baselines.restricted_search import equal_chop, without_reductions
from planner.partition.baselines.spartan import spartan

__all__ = [
    "BASELINES", "Baseline", "Placement", "all_row", "baselines", "data_parallel", "equal_chop", "place_operators",
    "spartan", "without_reductions",
]  # fmt: skip
