"""Collectives as operators of our own: out of place, on flat buffers, ordered by a token of no bytes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import torch
from torch import Tensor

from planner.errors import StowageError
from planner.graph import Graph
from planner.program import Call, Program

_LIBRARY = torch.library.Library("stowage", "DEF")  # type: ignore[no-untyped-call]
for _schema in (
    "all_reduce(Tensor x, Tensor(a!) token, str reduction, str group) -> Tensor",
    "all_gather(Tensor x, Tensor(a!) token, int[] counts, str group) -> Tensor",
    "reduce_scatter(Tensor x, Tensor(a!) token, int[] counts, int rank, str group) -> Tensor",
    "all_to_all(Tensor x, Tensor(a!) token, int[] send, int[] recv, str group) -> Tensor",
):
    _LIBRARY.define(_schema)  # type: ignore[no-untyped-call]

_OPS = torch.ops.stowage
ALL_REDUCE = _OPS.all_reduce.default
ALL_GATHER = _OPS.all_gather.default
REDUCE_SCATTER = _OPS.reduce_scatter.default
ALL_TO_ALL = _OPS.all_to_all.default
COLLECTIVES = frozenset({ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL})


@torch.library.register_fake("stowage::all_reduce")
def _all_reduce(x: Tensor, _token: Tensor, _reduction: str, _group: str) -> Tensor:
    return torch.empty_like(x)


@torch.library.register_fake("stowage::all_gather")
def _all_gather(x: Tensor, _token: Tensor, counts: Sequence[int], _group: str) -> Tensor:
    return x.new_empty(sum(counts))


@torch.library.register_fake("stowage::reduce_scatter")
def _reduce_scatter(x: Tensor, _token: Tensor, counts: Sequence[int], rank: int, _group: str) -> Tensor:
    return x.new_empty(counts[rank])


@torch.library.register_fake("stowage::all_to_all")
def _all_to_all(x: Tensor, _token: Tensor, _send: Sequence[int], recv: Sequence[int], _group: str) -> Tensor:
    return x.new_empty(sum(recv))


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
