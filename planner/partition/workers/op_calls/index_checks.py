"""Numbers that are out of range fail in a worker as in eager PyTorch, where what it computes would not see them."""

from __future__ import annotations

import torch

from planner.partition.workers.events.worker_events import WorkerEvents
from planner.program import Layout

_ATEN = torch.ops.aten


def out_of_range(calls: WorkerEvents, numbers: Layout, count: int) -> Layout:
    """Which numbers are not from 0 to below `count`."""
    below, above, found = (calls.new(numbers.shape, torch.bool) for _ in range(3))
    calls.add(_ATEN.lt.Scalar, (numbers, 0), below)
    calls.add(_ATEN.ge.Scalar, (numbers, count), above)
    calls.add(_ATEN.logical_or.default, (below, above), found)
    return found


def checked_labels(calls: WorkerEvents, labels: Layout, count: int, ignored: int) -> Layout:
    """A copy of labels, for which a call fails if one is neither from 0 to below `count` nor the ignored one."""
    beyond = out_of_range(calls, labels, count)
    counted, wrong = (calls.new(labels.shape, torch.bool) for _ in range(2))
    calls.add(_ATEN.ne.Scalar, (labels, ignored), counted)
    calls.add(_ATEN.logical_and.default, (beyond, counted), wrong)
    row = calls.new(labels.shape, torch.int64)
    nothing, checked = (calls.new(labels.shape, labels.dtype) for _ in range(2))
    calls.add(_ATEN._to_copy.default, (wrong,), row, dtype=torch.int64)
    table = calls.zeros((1,), labels.dtype)  # which has no row 1: its kernel raises, on whichever device
    calls.add(_ATEN.index.Tensor, (table, (row,)), nothing)
    calls.add(_ATEN.add.Tensor, (labels, nothing), checked)
    return checked
