"""The bytes that workers receive by the collectives in their graphs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import torch

from planner.errors import StowageError
from planner.graph import Graph
from planner.program import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, COLLECTIVES, REDUCE_SCATTER, Call, Program


def counted_bytes(graphs: Sequence[Graph], mesh: Sequence[int]) -> int:
    """Bytes that all workers together receive in a step, by the collectives in their graphs.

    Args:
        graphs: the workers' graphs, with their programs, in the order of the workers.
        mesh: into how many parts each level cuts.

    Raises:
        StowageError: a graph has no program.
    """
    total = 0
    for place, graph in zip(product(*(range(workers) for workers in mesh)), graphs, strict=True):
        if not isinstance(graph.program, Program):
            raise StowageError(f"the graph {graph.name} has no program, so its collectives cannot be counted")
        for op, call in zip(graph.ops, graph.program.calls, strict=True):
            if call.target in COLLECTIVES:
                sent = graph.tensors[op.inputs[0]]
                levels = [int(level) for level in call.args[-1].split(",")]
                workers = prod(mesh[level] for level in levels)
                elements = _received(call, sent.shape[0], workers, [place[level] for level in levels], mesh, levels)
                total += elements * getattr(torch, sent.dtype).itemsize
    return total


def _received(
    call: Call, elements: int, workers: int, place: Sequence[int], mesh: Sequence[int], levels: Sequence[int]
) -> int:
    """What one worker receives in a collective that it gives so many elements."""
    if call.target is ALL_REDUCE:
        # 2 (k - 1) / k of the buffer for each worker; the first counts for all, so that it comes out whole
        return 0 if any(place) else 2 * (workers - 1) * elements
    counts: Sequence[int] = call.args[3 if call.target is ALL_TO_ALL else 2]
    if call.target is ALL_GATHER:
        return sum(counts) - elements
    if call.target is REDUCE_SCATTER:
        return (workers - 1) * counts[int(call.args[3])]
    rank = 0
    for level, number in zip(levels, place, strict=True):
        rank = rank * mesh[level] + number
    return sum(counts) - counts[rank]
