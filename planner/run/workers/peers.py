"""Collectives between processes as exchanges of parts: exact bytes, and sums in the order of the workers.

The process group's own collectives would do, but for three things: gloo moves twice the bytes in a reduce-scatter,
takes no uneven parts, and lets the bits of a sum depend on where in a buffer an element is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from planner.program import all_reduce_scratch, members, places

_REDUCE: dict[str, Callable[[Tensor, Tensor], object]] = {
    "sum": Tensor.add_,
    "prod": Tensor.mul_,
    "max": lambda total, part: torch.maximum(total, part, out=total),
    "min": lambda total, part: torch.minimum(total, part, out=total),
}


class PeerLostError(RuntimeError):
    """A collective could not be completed because another worker is gone."""


class Peers:
    """The communicator of one worker, in the default process group of `torch.distributed`; all workers make one.

    Args:
        mesh: into how many parts each level cuts.
        worker: this worker.
        groups: the names of the groups that any worker communicates in, in an order that is the same for all.

    Attributes:
        received_bytes: what has come from other workers so far.
    """

    def __init__(self, mesh: tuple[int, ...], worker: int, groups: Iterable[str]) -> None:
        self._groups: dict[str, tuple[dist.ProcessGroup | None, int, int]] = {}
        self.received_bytes = 0
        for name in groups:
            levels = tuple(int(level) for level in name.split(","))
            found = dict.fromkeys(members(mesh, place, levels) for place in places(mesh))
            for peers in found:
                group = None if len(found) == 1 else dist.new_group(list(peers))  # None is the group of all
                if worker in peers:
                    self._groups[name] = group, len(peers), peers.index(worker)

    def all_reduce(self, result: Tensor, x: Tensor, reduction: str, workers: int, group: str) -> None:
        """Every worker reduces one part for all; takes as much memory again."""
        _, count, own = self._groups[group]
        assert count == workers, "the worker's graph is for another mesh"
        counts = [len(x) * (place + 1) // count - len(x) * place // count for place in range(count)]
        scratch = x.new_empty(all_reduce_scratch(len(x), count))
        mine = scratch[: counts[own] * count]
        self._exchange(mine, x, [counts[own]] * count, counts, group)
        total = _reduced(mine, count, reduction)
        parts = mine.view(count, -1)
        parts[1:] = total
        self._exchange(result, mine, counts, [counts[own]] * count, group)

    def all_gather(self, result: Tensor, x: Tensor, counts: Sequence[int], group: str) -> None:
        """Every worker sends its part to all others; takes as much memory again."""
        _, count, _ = self._groups[group]
        self._exchange(result, x.repeat(count), counts, [len(x)] * count, group)

    def reduce_scatter(self, result: Tensor, x: Tensor, counts: Sequence[int], rank: int, group: str) -> None:
        """Every worker sums its own part; takes memory for all parts of it."""
        _, count, own = self._groups[group]
        assert own == rank, "the worker's graph is for another place"
        mine = result.new_empty(len(result) * count)
        self._exchange(mine, x, [len(result)] * count, counts, group)
        result.copy_(_reduced(mine, count, "sum"))

    def all_to_all(self, result: Tensor, x: Tensor, send: Sequence[int], recv: Sequence[int], group: str) -> None:
        """Every worker sends each other one a part of its own."""
        self._exchange(result, x, recv, send, group)

    def _exchange(self, result: Tensor, x: Tensor, recv: Sequence[int], send: Sequence[int], group: str) -> None:
        members, _, own = self._groups[group]
        size = x.itemsize
        try:
            dist.all_to_all_single(
                result.view(torch.uint8), x.view(torch.uint8), [count * size for count in recv],
                [count * size for count in send], group=members,
            )  # fmt: skip
        except RuntimeError as error:
            raise PeerLostError(str(error)) from error
        self.received_bytes += (sum(recv) - recv[own]) * size


def _reduced(parts: Tensor, count: int, reduction: str) -> Tensor:
    """Equal parts reduced one after another into the first of them."""
    each = parts.view(count, -1)
    for place in range(1, count):
        _REDUCE[reduction](each[0], each[place])
    return each[0]
