"""Collectives as operators of our own: out of place, on flat buffers, ordered by a token of no bytes.

A worker's graph has them as ops. Whoever runs it says who brings the bytes: the communicator of the process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from planner.errors import StowageError
from planner.program.kernels.rewrites import BoundCall

_LIBRARY = torch.library.Library("stowage", "DEF")  # type: ignore[no-untyped-call]
for _schema in (
    "all_reduce(Tensor x, Tensor(a!) token, str reduction, int workers, str group) -> Tensor",
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
def _all_reduce(x: Tensor, _token: Tensor, _reduction: str, _workers: int, _group: str) -> Tensor:
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


class Communicator(Protocol):
    """Brings bytes to the other workers of a group, and theirs here; every method fills `result`, which is flat.

    A group is named by the levels of the mesh at which its workers have different numbers, such as `"0,2"`.
    """

    def all_reduce(self, result: Tensor, x: Tensor, reduction: str, workers: int, group: str) -> None:
        """Reduce all workers' `x` element by element, in their order; the result may be in the memory of `x`."""

    def all_gather(self, result: Tensor, x: Tensor, counts: Sequence[int], group: str) -> None:
        """Join all workers' `x`, of so many elements each."""

    def reduce_scatter(self, result: Tensor, x: Tensor, counts: Sequence[int], rank: int, group: str) -> None:
        """Sum this worker's part of all workers' `x`, which are cut into so many elements."""

    def all_to_all(self, result: Tensor, x: Tensor, send: Sequence[int], recv: Sequence[int], group: str) -> None:
        """Send so many elements to each worker and join what comes from each."""


def collective_scratch(target: Callable[..., Any], elements: int, itemsize: int, args: Sequence[Any]) -> int:
    """Bytes of scratch memory that a collective takes beside its result.

    Args:
        target: the collective.
        elements, itemsize: of the buffer that it is given.
        args: its arguments.
    """
    if target is ALL_REDUCE:
        return all_reduce_scratch(elements, int(args[3])) * itemsize
    if target is REDUCE_SCATTER:
        return int(args[2][args[3]]) * (len(args[2]) - 1) * itemsize
    return 0


def all_reduce_scratch(elements: int, workers: int) -> int:
    """Elements of scratch memory of an all-reduce: what comes from each other worker of the largest part."""
    return -(-elements // workers) * (workers - 1)


_present: Communicator | None = None


def communicate_by(communicator: Communicator | None) -> Communicator | None:
    """Set the communicator of this process; returns the one before."""
    global _present
    before, _present = _present, communicator
    return before


def _communicator() -> Communicator:
    if _present is None:
        raise StowageError("a worker's step has no other workers to communicate with; run it with planner.run_workers")
    return _present


def _run_all_reduce(result: Tensor, x: Tensor, reduction: str, workers: int, group: str) -> None:
    _communicator().all_reduce(result, x, reduction, workers, group)


def _run_all_gather(result: Tensor, x: Tensor, counts: Sequence[int], group: str) -> None:
    _communicator().all_gather(result, x, counts, group)


def _run_reduce_scatter(result: Tensor, x: Tensor, counts: Sequence[int], rank: int, group: str) -> None:
    _communicator().reduce_scatter(result, x, counts, rank, group)


def _run_all_to_all(result: Tensor, x: Tensor, send: Sequence[int], recv: Sequence[int], group: str) -> None:
    _communicator().all_to_all(result, x, send, recv, group)


def _through(run: Callable[..., None]) -> Callable[..., BoundCall]:
    """Rewrite a collective as a call into its result; its token keeps an order and has no bytes."""

    def rewrite(result: Tensor, x: Tensor, _token: Tensor, *args: Any) -> BoundCall:
        return BoundCall(run, (result, x, *args), {})

    return rewrite


#: By collective, what binds it to the memory of its result.
REWRITTEN_COLLECTIVES: dict[Callable[..., Any], Callable[..., BoundCall]] = {
    ALL_REDUCE: _through(_run_all_reduce),
    ALL_GATHER: _through(_run_all_gather),
    REDUCE_SCATTER: _through(_run_reduce_scatter),
    ALL_TO_ALL: _through(_run_all_to_all),
}
