"""Fetches: what several ops of a phase read of the same tensors may be brought to them once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from planner.graph import Graph, Phase


@dataclass(frozen=True, slots=True)
class Fetch:
    """Contents that the same merged ops read in one phase.

    Args:
        group: of the tensors.
        count: how many contents there are.
        readers: the numbers of the merged ops and the places of the inputs that read them.
    """

    group: int
    count: int
    readers: tuple[tuple[int, int], ...]


def content_of(graph: Graph, roots: Sequence[int], tensor: int) -> tuple[object, ...]:
    """What tells apart the contents of two inputs: views of the same elements in another order have the same.

    In-place updates are tensors of their own.

    Args:
        graph: the step.
        roots: per tensor, the one that was made, of which it is a view.
        tensor: which.
    """
    here, whole = graph.tensors[tensor], graph.tensors[roots[tensor]]
    if prod(here.shape) == prod(whole.shape) and here.offset == whole.offset:
        return (whole.id,)
    joined: list[tuple[int, int]] = []  # the dimensions from the innermost, those in one where no gap is between them
    for stride, size in sorted(zip(here.strides, here.shape, strict=True)):
        if joined and joined[-1][0] * joined[-1][1] == stride:
            joined[-1] = joined[-1][0], joined[-1][1] * size
        elif size != 1:
            joined.append((stride, size))
    return whole.id, here.offset, tuple(joined)


def fetches(
    graph: Graph, roots: Sequence[int], group_of: Sequence[int], merged: Sequence[Sequence[int]]
) -> tuple[Fetch, ...]:
    """Group the contents that ops read by who reads them.

    Args:
        graph: the step.
        roots: per tensor, the one that was made.
        group_of: the group of every tensor.
        merged: per merged op, its ops.
    """
    readers: dict[tuple[Phase, tuple[object, ...]], dict[tuple[int, int], int]] = defaultdict(dict)
    known: dict[int, tuple[object, ...]] = {}
    for number, members in enumerate(merged):
        for op in members:
            for place, tensor in enumerate(graph.ops[op].inputs):
                if tensor not in known:
                    known[tensor] = content_of(graph, roots, tensor)
                readers[graph.ops[op].phase, known[tensor]][number, place] = group_of[tensor]
    counts: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for found in readers.values():
        entry = counts.setdefault(tuple(sorted(found)), [next(iter(found.values())), 0])
        entry[1] += 1
    return tuple(Fetch(group, count, places) for places, (group, count) in counts.items())
