"""Operators that make a tensor out of numbers alone."""

from __future__ import annotations

from typing import Any

from planner.partition.ops.registry import describes
from planner.partition.tdl import Description, as_expression, counted


def _filled(op: Description, value: Any) -> None:
    out = op.output(0)
    out[counted("i", len(out.shape))] = as_expression(value)


@describes("zeros.default", "new_zeros.default", "zeros_like.default", "zero_.default")
def zeros(op: Description) -> None:
    """0 everywhere."""
    _filled(op, 0)


@describes("ones.default", "new_ones.default", "ones_like.default")
def ones(op: Description) -> None:
    """1 everywhere."""
    _filled(op, 1)


@describes("full.default", "full_like.default", "new_full.default")
def full(op: Description, fill_value: Any) -> None:
    """One number everywhere."""
    _filled(op, fill_value)


@describes("scalar_tensor.default")
def scalar(op: Description, s: Any) -> None:
    """One number."""
    _filled(op, s)


@describes("arange.default")
def arange(op: Description) -> None:
    """0, 1, 2, ..."""
    out = op.output(0)
    (i,) = counted("i", 1)
    out[i] = as_expression(i)


@describes("arange.start")
def arange_from(op: Description, start: Any) -> None:
    """Start, start + 1, ..."""
    out = op.output(0)
    (i,) = counted("i", 1)
    out[i] = as_expression(i) + start


@describes("arange.start_step")
def arange_by(op: Description, start: Any, step: Any) -> None:
    """Start, start + step, ..."""
    out = op.output(0)
    (i,) = counted("i", 1)
    out[i] = as_expression(i) * step + start
