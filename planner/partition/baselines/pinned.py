"""A partition whose splits of tensors are decided, and that of ops are still free."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from planner.partition.coarse import CoarseGraph, MergedOp, Variant
from planner.partition.search import Partitioning, recurse


def pinned(
    coarse: CoarseGraph,
    mesh: Sequence[int],
    labels: Mapping[int, int | None],
    allowed_variant: Callable[[MergedOp, Variant], bool] | None = None,
) -> Partitioning:
    """Split every group alike at all levels, and each op in the way that moves the least bytes.

    Gradients that are accumulated may stay partial sums until all of them are added, as in every framework.

    Args:
        coarse: the coarse graph.
        mesh: into how many parts each level cuts.
        labels: by group, the label by which it is split; None if it is whole on every worker.
        allowed_variant: whether merged ops may be split in a way; all may if not given.

    Raises:
        StowageError: a group cannot be split so.
    """
    pins = {
        group: ("replicated" if label is None else label,) * len(mesh)
        for group, label in labels.items() if not coarse.carried[group]
    }  # fmt: skip
    return recurse(
        coarse, mesh, pins=pins, allowed=lambda group, label: labels[group] == label, allowed_variant=allowed_variant
    )
