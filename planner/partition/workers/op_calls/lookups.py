"""Tables of which each worker has some rows: numbers of other rows are looked up as nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from planner.partition.tdl import Range
from planner.partition.workers.events.worker_events import WorkerEvents, dense
from planner.partition.workers.op_calls.index_checks import out_of_range
from planner.partition.workers.tensors.spreads import Cut, local_elements
from planner.program import Layout

_ATEN = torch.ops.aten


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a table that a worker has.

    Args:
        total: how many the table has.
        own: by digit of their numbers that is divided, the values that the worker has.
    """

    total: int
    own: Mapping[Cut, Range]

    @property
    def count(self) -> int:
        """How many the worker has."""
        return local_elements(self.total, self.own)

    def place(self, row: int) -> int:
        """Where the worker has a row of the table; -1 if it has not."""
        if not 0 <= row < self.total:
            return -1
        for cut in sorted(self.own, key=lambda cut: -cut.stride):
            first, last = self.own[cut]
            high, low = divmod(row, cut.block)
            if not first <= low // cut.stride < last:
                return -1
            row = high * (last - first) * cut.stride + low - first * cut.stride
        return row


def look_up(
    calls: WorkerEvents, target: Any, args: tuple[Any, ...], results: Sequence[Layout | None], rows: Rows
) -> None:
    """What a kernel makes of the rows that a worker has, and of the others nothing.

    Args:
        calls: of the worker.
        target: the kernel, one that reads or writes rows of a table by number.
        args: its arguments, with the worker's rows for the table.
        results: what it returns.
        rows: the worker's.
    """
    (result,) = results
    assert result is not None
    _RULES[target](calls, args, result, rows)


def _embedding(calls: WorkerEvents, args: tuple[Any, ...], result: Layout, rows: Rows) -> None:
    table, numbers = args[:2]
    here, own = _checked_numbers(calls, numbers, rows)
    found = calls.new(result.shape, result.dtype)
    calls.add(_ATEN.embedding.default, (table, own), found)
    calls.add(_ATEN.where.ScalarOther, (_over_rows(here, result), found, 0), result)


def _embedding_backward(calls: WorkerEvents, args: tuple[Any, ...], result: Layout, rows: Rows) -> None:
    grad, numbers, _, padding, scale = args
    _, own = _own_numbers(calls, numbers, rows, rows.count)  # the gradients of all other rows go to one more
    found = calls.new((rows.count + 1, result.shape[1]), result.dtype)
    target = _ATEN.embedding_dense_backward.default
    calls.add(target, (grad, own, rows.count + 1, rows.place(padding), scale), found)
    calls.add(_ATEN.clone.default, (dense(found.storage, result.shape, result.dtype),), result)


def _index(calls: WorkerEvents, args: tuple[Any, ...], result: Layout, rows: Rows) -> None:
    table, (numbers,) = args
    here, own = _checked_numbers(calls, _from_the_start(calls, numbers, rows), rows)
    found = calls.new(result.shape, result.dtype)
    calls.add(_ATEN.index.Tensor, (table, (own,)), found)
    calls.add(_ATEN.where.ScalarOther, (_over_rows(here, result), found, 0), result)


def _index_put(calls: WorkerEvents, args: tuple[Any, ...], result: Layout, rows: Rows) -> None:
    table, (numbers,), values, *rest = args
    here, own = _checked_numbers(calls, _from_the_start(calls, numbers, rows), rows)
    added = calls.new(values.shape, values.dtype)
    calls.add(_ATEN.where.ScalarOther, (_over_rows(here, values), values, 0), added)
    calls.add(_ATEN.index_put.default, (table, (own,), added, *rest), result)


def _gather(calls: WorkerEvents, args: tuple[Any, ...], result: Layout, rows: Rows) -> None:
    table, dim, numbers, *rest = args
    here, own = _checked_numbers(calls, numbers, rows)
    found = calls.new(result.shape, result.dtype)
    calls.add(_ATEN.gather.default, (table, dim, own, *rest), found)
    calls.add(_ATEN.where.ScalarOther, (here, found, 0), result)


_RULES: Mapping[Any, Callable[[WorkerEvents, tuple[Any, ...], Layout, Rows], None]] = {
    _ATEN.embedding.default: _embedding,
    _ATEN.embedding_dense_backward.default: _embedding_backward,
    _ATEN.index.Tensor: _index,
    _ATEN.index_put.default: _index_put,
    _ATEN.gather.default: _gather,
}


def _over_rows(here: Layout, rows: Layout) -> Layout:
    """A condition on rows for each of their elements."""
    inner = len(rows.shape) - len(here.shape)
    return here._replace(shape=(*here.shape, *[1] * inner), strides=(*here.strides, *[1] * inner))


def _from_the_start(calls: WorkerEvents, numbers: Layout, rows: Rows) -> Layout:
    """Numbers of rows, of which those below 0 count from the end."""
    below, moved, counted = (calls.new(numbers.shape, kind) for kind in (torch.bool, numbers.dtype, numbers.dtype))
    calls.add(_ATEN.lt.Scalar, (numbers, 0), below)
    calls.add(_ATEN.add.Tensor, (numbers, rows.total), moved)
    calls.add(_ATEN.where.self, (below, moved, numbers), counted)
    return counted


def _checked_numbers(calls: WorkerEvents, numbers: Layout, rows: Rows) -> tuple[Layout, Layout]:
    """As `_own_numbers`, with the first row for those of others, and one that no kernel takes where the table has none.

    A worker that has no such row fails as eager PyTorch does, which it would not by looking up nothing.
    """
    here, own = _own_numbers(calls, numbers, rows, 0)
    checked = calls.new(numbers.shape, numbers.dtype)
    calls.add(_ATEN.where.ScalarSelf, (out_of_range(calls, numbers, rows.total), rows.total, own), checked)
    return here, checked


def _own_numbers(calls: WorkerEvents, numbers: Layout, rows: Rows, other: int) -> tuple[Layout, Layout]:
    """Which numbers are of rows that the worker has, and their places there; another one for those of others."""
    shape, dtype = numbers.shape, numbers.dtype
    found: Layout | None = None
    for cut in sorted(rows.own, key=lambda cut: -cut.stride):
        first, last = rows.own[cut]
        low = numbers
        if cut.block != rows.total:
            low = calls.new(shape, dtype)
            calls.add(_ATEN.remainder.Scalar, (numbers, cut.block), low)
        above, below, here = (calls.new(shape, torch.bool) for _ in range(3))
        calls.add(_ATEN.ge.Scalar, (low, first * cut.stride), above)
        calls.add(_ATEN.lt.Scalar, (low, last * cut.stride), below)
        calls.add(_ATEN.logical_and.default, (above, below), here)
        moved = calls.new(shape, dtype)
        calls.add(_ATEN.sub.Tensor, (low, first * cut.stride), moved)
        if low is not numbers:  # number = high + low, and of what is above this digit the worker has a share
            high, shrunk, moved_up = (calls.new(shape, dtype) for _ in range(3))
            calls.add(_ATEN.sub.Tensor, (numbers, low), high)
            calls.add(_ATEN.div.Scalar_mode, (high, cut.size), shrunk, rounding_mode="floor")
            calls.add(_ATEN.add.Tensor, (moved, shrunk), moved_up, alpha=last - first)
            moved = moved_up
        numbers = moved
        if found is None:
            found = here
        else:
            both = calls.new(shape, torch.bool)
            calls.add(_ATEN.logical_and.default, (found, here), both)
            found = both
    assert found is not None, "rows are divided"
    own = calls.new(shape, dtype)
    calls.add(_ATEN.where.ScalarOther, (found, numbers, other), own)
    return found, own
