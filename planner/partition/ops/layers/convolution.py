"""Convolutions of any number of dimensions, with stride, padding, dilation and groups, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.partition.ops.broadcast import pair
from planner.partition.ops.registry import describes
from planner.partition.tdl import Affine, Description, Operand, Sum, Variable, counted, exactly, index, indices


class Window:
    """How the places of two images belong together through the places of a kernel that moves over the larger one."""

    def __init__(self, rank: int, stride: Any, padding: Any, dilation: Any) -> None:
        self.stride, self.padding, self.dilation = pair(stride, rank), pair(padding, rank), pair(dilation, rank)

    def over(self, small: Sequence[Affine], kernel: Sequence[Affine]) -> tuple[Affine, ...]:
        """Where the kernel's place `kernel` is in the large image when the kernel is at `small`."""
        return tuple(
            p * step + d * apart - pad
            for p, d, step, pad, apart in zip(small, kernel, self.stride, self.padding, self.dilation, strict=True)
        )

    def under(self, large: Sequence[Affine], kernel: Sequence[Affine]) -> tuple[Affine, ...]:
        """Where the kernel is when its place `kernel` is at `large` in the large image."""
        return tuple(
            exactly(y - d * apart + pad, step)
            for y, d, step, pad, apart in zip(large, kernel, self.stride, self.padding, self.dilation, strict=True)
        )


def channel(group: Variable, member: Variable) -> Affine:
    """A channel by its group and its number in it."""
    return member if group.size == 1 else group * member.size + member


@describes("convolution.default")
def convolution(
    op: Description, input: Operand, weight: Operand, bias: Operand | None, stride: Any, padding: Any, dilation: Any,
    transposed: bool, groups: int,
) -> None:  # fmt: skip
    """Every output channel sums its group's input channels under the window; transposed, it spreads them."""
    out = op.output(0)
    rank = len(input.shape) - 2
    window = Window(rank, stride, padding, dilation)
    (n,) = indices("n")
    y, d = counted("y", rank), counted("d", rank)
    g, o, c = index("g", groups), index("o", out.shape[1] // groups), index("c", input.shape[1] // groups)
    x = input.padded(0)
    if transposed:
        product = x[n, channel(g, c), *window.under(y, d)] * weight[channel(g, c), o, *d]
    else:
        product = x[n, channel(g, c), *window.over(y, d)] * weight[channel(g, o), c, *d]
    value = Sum((c, *d), product)
    out[n, channel(g, o), *y] = value if bias is None else value + bias[channel(g, o)]


@describes("convolution_backward.default")
def convolution_backward(
    op: Description, grad_output: Operand, input: Operand, weight: Operand, stride: Any, padding: Any, dilation: Any,
    transposed: bool, groups: int, output_mask: Sequence[bool],
) -> None:  # fmt: skip
    """The gradients with regard to input, weight and bias, each with a formula of its own."""
    rank = len(input.shape) - 2
    window = Window(rank, stride, padding, dilation)
    (n,) = indices("n")
    y, x, d = counted("y", rank), counted("x", rank), counted("d", rank)
    g = index("g", groups)
    o, c = index("o", grad_output.shape[1] // groups), index("c", input.shape[1] // groups)
    of_output, of_input = channel(g, o), channel(g, c)
    if output_mask[0]:
        grad = grad_output.padded(0)
        if transposed:
            product = grad[n, of_output, *window.over(x, d)] * weight[of_input, o, *d]
        else:
            product = grad[n, of_output, *window.under(x, d)] * weight[of_output, c, *d]
        op.output(0)[n, of_input, *x] = Sum((o, *d), product)
    if output_mask[1] and transposed:
        product = input[n, of_input, *x] * grad_output.padded(0)[n, of_output, *window.over(x, d)]
        op.output(1)[of_input, o, *d] = Sum((n, *x), product)
    elif output_mask[1]:
        product = grad_output[n, of_output, *y] * input.padded(0)[n, of_input, *window.over(y, d)]
        op.output(1)[of_output, c, *d] = Sum((n, *y), product)
    if output_mask[2]:
        op.output(2)[of_output] = Sum((n, *y), grad_output[n, of_output, *y])
