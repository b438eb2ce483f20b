"""Pooling over windows, and its gradients."""

from __future__ import annotations

from math import inf
from typing import Any

from planner.partition.ops.broadcast import pair
from planner.partition.ops.layers.convolution import Window
from planner.partition.ops.registry import describes, unknown
from planner.partition.tdl import (
    Affine,
    Description,
    Expression,
    FirstMax,
    Max,
    Operand,
    Sum,
    Variable,
    as_expression,
    equal,
    index,
    indices,
    where,
    within,
)


def _kernel(size: Any) -> tuple[Variable, Variable]:
    rows, columns = pair(size)
    return index("dy", rows), index("dx", columns)


@describes("max_pool2d_with_indices.default")
def max_pool(op: Description, self: Operand, kernel_size: Any, stride: Any, padding: Any, dilation: Any) -> None:
    """The largest value under the window, and its place in the image as one number."""
    if len(self.shape) != 4:
        unknown(op)
        return
    n, c, h, w = indices("n c h w")
    dy, dx = _kernel(kernel_size)
    row, column = Window(2, stride or kernel_size, padding, dilation).over((h, w), (dy, dx))
    value = self.padded(-inf)[n, c, row, column]
    op.output(0)[n, c, h, w] = Max((dy, dx), value)
    op.output(1)[n, c, h, w] = FirstMax((dy, dx), value, row * self.shape[3] + column)


@describes("max_pool2d_with_indices_backward.default")
def max_pool_backward(
    op: Description, grad_output: Operand, self: Operand, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
    indices: Operand,
) -> None:  # fmt: skip
    """The gradients of all windows whose largest value was here."""
    if len(self.shape) != 4:
        unknown(op)
        return
    n, c, y, x = (index(name) for name in "ncyx")
    dy, dx = _kernel(kernel_size)
    place = (n, c, *Window(2, stride or kernel_size, padding, dilation).under((y, x), (dy, dx)))
    here = equal(indices.padded(-1)[place], y * self.shape[3] + x)
    op.output(0)[n, c, y, x] = Sum((dy, dx), where(here, grad_output.padded(0)[place], 0))


@describes("avg_pool2d.default")
def avg_pool(
    op: Description, self: Operand, kernel_size: Any, stride: Any, padding: Any, count_include_pad: bool,
    divisor_override: int | None,
) -> None:  # fmt: skip
    """The sum under the window divided by how many values it covers."""
    if len(self.shape) != 4:
        unknown(op)
        return
    n, c, h, w = indices("n c h w")
    dy, dx = _kernel(kernel_size)
    window = Window(2, stride or kernel_size, padding, 1)
    total = Sum((dy, dx), self.padded(0)[n, c, *window.over((h, w), (dy, dx))])
    start = (h * window.stride[0] - window.padding[0], w * window.stride[1] - window.padding[1])
    op.output(0)[n, c, h, w] = total / _covered(start, kernel_size, self, window, count_include_pad, divisor_override)


@describes("avg_pool2d_backward.default")
def avg_pool_backward(
    op: Description, grad_output: Operand, self: Operand, kernel_size: Any, stride: Any, padding: Any,
    count_include_pad: bool, divisor_override: int | None,
) -> None:  # fmt: skip
    """The gradients of all windows that cover the place, each divided by how many values its window covers."""
    if len(self.shape) != 4:
        unknown(op)
        return
    n, c, y, x = indices("n c y x")
    dy, dx = _kernel(kernel_size)
    window = Window(2, stride or kernel_size, padding, 1)
    grad = grad_output.padded(0)[n, c, *window.under((y, x), (dy, dx))]
    covered = _covered((y - dy, x - dx), kernel_size, self, window, count_include_pad, divisor_override)
    op.output(0)[n, c, y, x] = Sum((dy, dx), grad / covered)


def _covered(
    start: tuple[Affine, ...], kernel_size: Any, image: Operand, window: Window, padded: bool, override: int | None
) -> Expression:
    """How many values the average is over of the window that starts there."""
    if override is not None:
        return as_expression(override)
    counts = []
    for name, first, size, length, pad in zip(
        "uv", start, pair(kernel_size), image.shape[2:], window.padding, strict=True
    ):
        d = index(name, size)
        low, high = (-pad, length + pad) if padded else (0, length)
        counts.append(Sum(d, within(first + d, low, high)))
    return counts[0] * counts[1]
