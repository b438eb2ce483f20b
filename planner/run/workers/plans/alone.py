"""Stands in for the other workers while the ops of one are measured: nothing comes."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor


class Alone:
    """The communicator of a worker without others."""

    def all_reduce(self, result: Tensor, x: Tensor, _reduction: str, _workers: int, _group: str) -> None:
        """Copy what is here."""
        result.copy_(x)

    def all_gather(self, result: Tensor, _x: Tensor, _counts: Sequence[int], _group: str) -> None:
        """Fill the result."""
        result.zero_()

    def reduce_scatter(self, result: Tensor, _x: Tensor, _counts: Sequence[int], _rank: int, _group: str) -> None:
        """Fill the result."""
        result.zero_()

    def all_to_all(self, result: Tensor, _x: Tensor, _send: Sequence[int], _recv: Sequence[int], _group: str) -> None:
        """Fill the result."""
        result.zero_()
