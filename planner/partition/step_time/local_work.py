"""What one worker does of every op: its share of the arithmetic and of the memory traffic."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod

from planner.partition.coarse import MergedOp, Variant
from planner.partition.search import Partitioning
from planner.partition.strategy import Split, State, Unread


@dataclass(frozen=True, slots=True)
class LocalWork:
    """What the busiest worker does of every op.

    Args:
        flops: per op, FLOP.
        traffic: per op, bytes read and written.
    """

    flops: tuple[float, ...]
    traffic: tuple[float, ...]


def local_work(found: Partitioning) -> LocalWork:
    """Work of the busiest worker, op by op.

    Arithmetic is divided by whatever an op's variants divide, memory traffic in proportion to the local shapes of what
    the op reads and writes.

    Args:
        found: a partition.
    """
    graph = found.coarse.graph
    mesh = tuple(level.workers for level in found.levels)
    flops, traffic = [0.0] * len(graph.ops), [0.0] * len(graph.ops)
    for number, merged in enumerate(found.coarse.merged):
        chosen = tuple(level.variants[number] for level in found.levels)
        arithmetic, memory = _shares(merged, chosen, mesh)
        for op in merged.ops:
            flops[op] = graph.ops[op].flops * arithmetic
            traffic[op] = graph.ops[op].bytes * memory
    return LocalWork(tuple(flops), tuple(traffic))


def _shares(merged: MergedOp, chosen: Sequence[Variant], mesh: Sequence[int]) -> tuple[float, float]:
    """A worker's share of the arithmetic and of the memory traffic."""
    parts: dict[tuple[object, int], int] = {}
    sizes: dict[tuple[object, int], int] = {}
    for variant, workers in zip(chosen, mesh, strict=True):
        if variant.strategy is not None and variant.strategy.axis is not None:
            axis = variant.strategy.axis, variant.atom
            parts[axis] = parts.get(axis, 1) * workers
            sizes[axis] = variant.size
    arithmetic = prod(_largest(sizes[axis], count) for axis, count in parts.items())
    whole = local = 0.0
    for place, slot in enumerate((*merged.inputs, *merged.outputs)):
        states = [variant.states[place] for variant in chosen]
        if place < len(merged.inputs) and any(isinstance(state, Unread) for state in states):
            continue
        size = prod(slot.shape) * slot.itemsize
        whole += size
        local += size * share(states, mesh)
    return arithmetic, local / whole if whole else arithmetic


def share(states: Sequence[State | None], mesh: Sequence[int]) -> float:
    """The share of a tensor that the worker with the largest chunk has.

    Args:
        states: how the tensor is spread at each level.
        mesh: workers of each level.
    """
    parts: dict[tuple[int, int, int], int] = defaultdict(lambda: 1)
    for state, workers in zip(states, mesh, strict=True):
        if isinstance(state, Split):
            parts[state.dimension, state.size, state.inner] *= workers
    return prod(_largest(size, count) for (_, size, _), count in parts.items())


def _largest(size: int, parts: int) -> float:
    """The largest chunk's share of so many indices."""
    return ceil(size / parts) / size if size else 1.0
