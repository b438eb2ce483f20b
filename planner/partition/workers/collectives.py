"""Collectives as operators of our own: out of place, on flat buffers, ordered by a token of no bytes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from planner.errors import StowageError
from planner.graph import Graph
from planner.program import Program

_LIBRARY = torch.library.Library("stowage", "DEF")  # type: ignore[no-untyped-call]
for _schema in (
    "all_reduce(Tensor x, Tensor(a!) token, str group) -> Tensor",
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
def _all_reduce(x: Tensor, _token: Tensor, _group: str) -> Tensor:
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


def counted_bytes(graphs: Sequence[Graph]) -> int:
    """Bytes that all workers together receive in a step, by the collectives in their graphs.

    Args:
        graphs: the workers' graphs, with their programs, in the order of the workers; of one level.

    Raises:
        StowageError: a graph has no program.
    """
    workers, total = len(graphs), 0
    for worker, graph in enumerate(graphs):
        if not isinstance(graph.program, Program):
            raise StowageError(f"the graph {graph.name} has no program, so its collectives cannot be counted")
        for op, call in zip(graph.ops, graph.program.calls, strict=True):
            if call.target not in COLLECTIVES:
                continue
            sent = graph.tensors[op.inputs[0]]
            itemsize, elements = getattr(torch, sent.dtype).itemsize, sent.shape[0]
            if call.target is ALL_REDUCE:
                # 2 (k - 1) / k of the buffer for each worker; the first counts for all, so that it comes out whole
                total += 0 if worker else 2 * (workers - 1) * elements * itemsize
            elif call.target is ALL_GATHER:
                total += (sum(call.args[2]) - elements) * itemsize
            elif call.target is REDUCE_SCATTER:
                total += (workers - 1) * call.args[2][call.args[3]] * itemsize
            else:
                total += (sum(call.args[3]) - call.args[3][worker]) * itemsize
    return total
