"""Tables of which each worker has some rows: numbers of other rows are looked up as nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from planner.partition.tdl import Range
from planner.partition.workers.events.worker_events import WorkerEvents, dense
from planner.program import Layout

_ATEN = torch.ops.aten
EMBEDDING = _ATEN.embedding.default
EMBEDDING_BACKWARD = _ATEN.embedding_dense_backward.default


def look_up(calls: WorkerEvents, args: tuple[Any, ...], results: Sequence[Layout | None], rows: Range) -> None:
    """The rows that a worker has, and zeros for the others.

    Args:
        calls: of the worker.
        args: of the kernel, with the worker's rows for the table.
        results: what it returns.
        rows: the worker's first and last (exclusive) row.
    """
    table, numbers = args[:2]
    (result,) = results
    assert result is not None
    here, own = _own_numbers(calls, numbers, rows, 0)
    found = calls.new(result.shape, result.dtype)
    calls.add(EMBEDDING, (table, own), found)
    everywhere = here._replace(shape=(*here.shape, 1), strides=(*here.strides, 1))
    calls.add(_ATEN.where.ScalarOther, (everywhere, found, 0), result)


def look_up_backward(calls: WorkerEvents, args: tuple[Any, ...], results: Sequence[Layout | None], rows: Range) -> None:
    """The gradients of the rows that a worker has.

    Args:
        calls, results, rows: as in `look_up`.
        args: of the kernel.
    """
    grad, numbers, _, padding, scale = args
    (result,) = results
    assert result is not None
    count = rows[1] - rows[0]
    _, own = _own_numbers(calls, numbers, rows, count)  # the gradients of all other rows go to one more
    padded = padding - rows[0] if rows[0] <= padding < rows[1] else -1
    found = calls.new((count + 1, result.shape[1]), result.dtype)
    calls.add(EMBEDDING_BACKWARD, (grad, own, count + 1, padded, scale), found)
    calls.add(_ATEN.clone.default, (dense(found.storage, result.shape, result.dtype),), result)


def _own_numbers(calls: WorkerEvents, numbers: Layout, rows: Range, other: int) -> tuple[Layout, Layout]:
    """Which numbers are of rows that the worker has, and their places there; another one for those of others."""
    moved, own = (calls.new(numbers.shape, numbers.dtype) for _ in range(2))
    low, high, here = (calls.new(numbers.shape, torch.bool) for _ in range(3))
    calls.add(_ATEN.sub.Tensor, (numbers, rows[0]), moved)
    calls.add(_ATEN.ge.Scalar, (numbers, rows[0]), low)
    calls.add(_ATEN.lt.Scalar, (numbers, rows[1]), high)
    calls.add(_ATEN.logical_and.default, (low, high), here)
    calls.add(_ATEN.where.ScalarOther, (here, moved, other), own)
    return here, own
