"""The coarse graph: groups of tensors that are split alike, and each kind of op between groups once."""

from planner.partition.coarse.coarse_graph import CoarseGraph, MergedOp, Slot, coarsen, state_of
from planner.partition.coarse.groups import TensorGroup, TensorGroups
from planner.partition.coarse.variants import Variant, variants

__all__ = [
    "CoarseGraph",
    "MergedOp",
    "Slot",
    "TensorGroup",
    "TensorGroups",
    "Variant",
    "coarsen",
    "state_of",
    "variants",
]
