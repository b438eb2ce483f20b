"""Collectives between processes as exchanges of parts: exact bytes, and sums in the order of the workers.

The process group's own collectives would do, but for three things: gloo moves twice the bytes in a reduce-scatter,
takes no uneven parts, and lets the bits of a sum depend on where in a buffer an element is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from planner.program import all_reduce_scratch, members, places
from planner.run.workers.communication.transport import Transport

_REDUCE: dict[str, Callable[..., Tensor]] = {
    "sum": torch.add, "prod": torch.mul, "max": torch.maximum, "min": torch.minimum,
}  # fmt: skip


class Peers:
    """The communicator of one worker.

    Args:
        mesh: into how many parts each level cuts.
        worker: this worker.
        transport: to the others.

    Attributes:
        received_bytes: what has come from other workers so far.
    """

    def __init__(self, mesh: tuple[int, ...], worker: int, transport: Transport) -> None:
        self._mesh, self._worker, self._transport = mesh, worker, transport
        self._groups: dict[str, tuple[int, ...]] = {}
        self.received_bytes = 0

    def all_reduce(self, result: Tensor, x: Tensor, reduction: str, workers: int, group: str) -> None:
        """Every worker reduces one part for all; takes memory for the parts of it that come."""
        assert len(self._members(group)) == workers, "the worker's graph is for another mesh"
        counts = _even(len(x), workers)
        own, parts = self._place(group), _cut(result, counts)
        self._reduce(parts[own], x, x.new_empty(all_reduce_scratch(len(x), workers)), counts, reduction, group)
        self._exchange([parts[own]] * workers, parts, group)

    def all_gather(self, result: Tensor, x: Tensor, counts: Sequence[int], group: str) -> None:
        """Every worker sends its part to all others."""
        parts = _cut(result, counts)
        parts[self._place(group)].copy_(x)
        self._exchange([x] * len(counts), parts, group)

    def reduce_scatter(self, result: Tensor, x: Tensor, counts: Sequence[int], rank: int, group: str) -> None:
        """Every worker sums its own part; takes memory for the parts of it that come."""
        assert self._place(group) == rank, "the worker's graph is for another place"
        scratch = x.new_empty(len(result) * (len(counts) - 1))
        self._reduce(result, x, scratch, counts, "sum", group)

    def all_to_all(self, result: Tensor, x: Tensor, send: Sequence[int], recv: Sequence[int], group: str) -> None:
        """Every worker sends each other one a part of its own."""
        own, given, parts = self._place(group), _cut(x, send), _cut(result, recv)
        parts[own].copy_(given[own])
        self._exchange(given, parts, group)

    def _reduce(
        self, result: Tensor, x: Tensor, scratch: Tensor, counts: Sequence[int], reduction: str, group: str
    ) -> None:
        """Reduce this worker's part of all workers' `x` in their order; the result may be that part of its own `x`."""
        own, given = self._place(group), _cut(x, counts)
        others = len(counts) - 1
        come = list(scratch[: len(result) * others].view(others, len(result)))
        parts = [*come[:own], given[own], *come[own:]]
        self._exchange(given, parts, group)
        total = parts[0]
        for place, part in enumerate(parts[1:], 1):  # where what comes from the first is, until the own part is read
            total = _REDUCE[reduction](total, part, out=result if place >= own else parts[0])

    def _exchange(self, sends: Sequence[Tensor], receives: Sequence[Tensor], group: str) -> None:
        """Send each other member of a group its part, and receive one from each."""
        peers = [(place, peer) for place, peer in enumerate(self._members(group)) if peer != self._worker]
        self._transport.exchange(
            {peer: sends[place].view(torch.uint8) for place, peer in peers},
            {peer: receives[place].view(torch.uint8) for place, peer in peers},
        )
        self.received_bytes += sum(receives[place].nbytes for place, _ in peers)

    def _members(self, group: str) -> tuple[int, ...]:
        if group not in self._groups:
            levels = tuple(int(level) for level in group.split(","))
            self._groups[group] = members(self._mesh, places(self._mesh)[self._worker], levels)
        return self._groups[group]

    def _place(self, group: str) -> int:
        return self._members(group).index(self._worker)


@lru_cache(maxsize=4096)
def _even(elements: int, parts: int) -> tuple[int, ...]:
    return tuple(elements * (place + 1) // parts - elements * place // parts for place in range(parts))


def _cut(flat: Tensor, counts: Sequence[int]) -> list[Tensor]:
    return [flat[begin:end] for begin, end in pairwise(accumulate(counts, initial=0))]
