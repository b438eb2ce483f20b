"""The coarse graph: groups of tensors that are split alike, and each kind of op between groups once."""

from planner.partition.coarse.coarse_graph import (
    CoarseGraph,
    GroupsAndOps,
    MergedOp,
    Option,
    Slot,
    Stored,
    coarsen,
    state_of,
)
from planner.partition.coarse.fetches import Fetch, content_of
from planner.partition.coarse.groups import TensorGroup, TensorGroups
from planner.partition.coarse.variants import Variant, variants

__all__ = [
    "CoarseGraph",
    "Fetch",
    "GroupsAndOps",
    "MergedOp",
    "Option",
    "Slot",
    "Stored",
    "TensorGroup",
    "TensorGroups",
    "Variant",
    "coarsen",
    "content_of",
    "state_of",
    "variants",
]
