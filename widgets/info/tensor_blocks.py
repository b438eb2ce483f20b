"""Which block of a tensor each worker of a partition has."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from planner.errors import StowageError, did_you_mean
from planner.graph import Graph, Tensor
from planner.units import bytes_label, several
from widgets.info.argument_types import require_graph
from widgets.info.colour_groups import GROUP_OF, Group
from widgets.info.partition_splits import require_same_graph

if TYPE_CHECKING:
    from planner.partition import PartitionPlan

#: Most stripes along an axis that can be told apart; of more, the first are shown.
_MOST_STRIPES = 24


@dataclass(frozen=True, slots=True)
class TensorBlock:
    """A rectangle of a tensor that the same workers have.

    Args:
        rows, columns: the first index and the one after the last.
        workers: who has it; several where it is replicated, or split along a dimension that is not drawn.
    """

    rows: tuple[int, int]
    columns: tuple[int, int]
    workers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorBlocks:
    """The blocks of a tensor.

    Args:
        name: of the tensor.
        group: its kind.
        shape: its shape.
        bytes: of the whole tensor.
        workers: how many there are.
        axes: the dimensions drawn downwards and to the right; -1 for none.
        sizes: how many indices are drawn of each.
        blocks: the rectangles.
        ways: per level, how it is split, in words.
        share: the largest share of its elements that a worker has.
    """

    name: str
    group: Group
    shape: tuple[int, ...]
    bytes: int
    workers: int
    axes: tuple[int, int]
    sizes: tuple[int, int]
    blocks: tuple[TensorBlock, ...]
    ways: tuple[str, ...]
    share: float

    @property
    def whole(self) -> tuple[int, int]:
        """How many indices the drawn dimensions have."""
        down, right = self.axes
        return (self.shape[down] if down >= 0 else 1, self.shape[right] if right >= 0 else 1)

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        cut = self.sizes != self.whole
        first = (
            f" The first {self.sizes[0]:,} by {self.sizes[1]:,} of {self.whole[0]:,} by {self.whole[1]:,} are shown."
        )
        ways = ", ".join(f"level {level + 1} {way}" for level, way in enumerate(self.ways))
        return (
            f"A worker has at most {bytes_label(self.bytes * self.share)} of {bytes_label(self.bytes)}"
            f"{f': {ways}' if ways else ''}.{first if cut else ''}"
        )


def get_tensor_blocks(graph: Graph, plan: PartitionPlan, tensor: str) -> TensorBlocks:
    """Find which block of a tensor each worker has.

    Args:
        graph: the step.
        plan: its partition.
        tensor: its name.

    Raises:
        StowageError: `graph` is no graph, the plan is for another graph, or there is no such tensor.
    """
    require_graph(graph)
    require_same_graph(graph, plan)
    known = {each.name: each for each in reversed(graph.tensors) if each.base < 0}
    if tensor not in known:
        raise StowageError(f"{graph.name} has no tensor {tensor!r}{did_you_mean(tensor, known)}")
    found, workers = known[tensor], plan.workers
    held = _held(plan, found)
    axes = _axes(found.shape, held)
    whole = {axis: found.shape[axis] if axis >= 0 else 1 for axis in axes}
    masks = [held.get(axis, np.ones((workers, whole[axis]), np.bool_)) for axis in axes]
    edges = [_edges(mask) for mask in masks]
    blocks = [
        TensorBlock((top, bottom), (left, right), owners)
        for top, bottom in edges[0] for left, right in edges[1]
        if (owners := tuple(np.flatnonzero(masks[0][:, top] & masks[1][:, left]).tolist()))
    ]  # fmt: skip
    shares = np.ones(workers)
    for mask in held.values():
        shares *= mask.mean(axis=1)
    storage = graph.storages[found.storage]
    return TensorBlocks(
        tensor, GROUP_OF[storage.kind], found.shape, storage.bytes, workers, axes,
        (edges[0][-1][1], edges[1][-1][1]), tuple(blocks),
        tuple(_way(state, parts) for state, parts in zip(plan.tensors[found.id], plan.mesh, strict=True)),
        float(shares.max()),
    )  # fmt: skip


def _held(plan: PartitionPlan, tensor: Tensor) -> dict[int, NDArray[np.bool_]]:
    """By dimension that is split, `[workers, indices]`, which indices each worker has."""
    from planner.partition import worker_chunks

    held: dict[int, NDArray[np.bool_]] = {}
    for worker in range(plan.workers):
        for split, (start, stop) in worker_chunks(plan, tensor.id, worker).items():
            size = tensor.shape[split.dimension]
            masks = held.setdefault(split.dimension, np.ones((plan.workers, size), np.bool_))
            index = np.arange(size) // split.inner % split.size
            masks[worker] &= (index >= start) & (index < stop)
    return held


def _axes(shape: tuple[int, ...], held: dict[int, NDArray[np.bool_]]) -> tuple[int, int]:
    """The two dimensions to draw: those that are split into the most parts, then the largest ones."""
    parts = {axis: len({mask.tobytes() for mask in masks}) for axis, masks in held.items()}
    ranked = sorted(range(len(shape)), key=lambda axis: (-parts.get(axis, 1), -shape[axis], axis))[:2]
    down, right = sorted([-1, -1, *ranked][-2:])  # of one dimension, to the right
    return down, right


def _edges(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The runs of indices that the same workers have; only the first of many."""
    changes = np.flatnonzero((mask[:, 1:] != mask[:, :-1]).any(axis=0)) + 1
    borders = [0, *changes.tolist(), mask.shape[1]]
    return list(pairwise(borders))[:_MOST_STRIPES]


def _way(state: object, parts: int) -> str:
    dimension = getattr(state, "dimension", None)
    if dimension is not None:
        return f"cuts dimension {dimension} into {several(parts, 'part')}"
    return f"adds {parts} partial sums" if hasattr(state, "reduction") else f"keeps {parts} copies"
