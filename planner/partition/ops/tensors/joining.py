"""Operators that move elements: joined, stacked, padded, or put back where a slice was taken."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate
from operator import add
from typing import Any

from planner.partition.ops.registry import describes
from planner.partition.tdl import (
    Affine,
    Description,
    Expression,
    Operand,
    Variable,
    counted,
    equal,
    exactly,
    index,
    where,
)


@describes("cat.default")
def cat(op: Description, tensors: Sequence[Operand], dim: int) -> None:
    """Tensors one after the other along a dimension."""
    out = op.output(0)
    tensors = [tensor for tensor in tensors if tensor.shape != (0,)]
    i: list[Affine] = list(counted("i", len(out.shape)))
    dim %= len(i)
    sizes = [tensor.shape[dim] for tensor in tensors]
    if len(set(sizes)) == 1:  # the same place in each is one axis: gates, or heads of queries, keys and values
        part, inner = index("part", len(tensors)), index("inner", sizes[0])
        i[dim] = inner
        value = _chosen(part, [tensor[tuple(i)] for tensor in tensors])
        i[dim] = part * sizes[0] + inner
        out[tuple(i)] = value
        return
    pieces: list[Expression] = []
    for tensor, start in zip(tensors, accumulate(sizes, initial=0), strict=False):
        places = i.copy()
        places[dim] = i[dim] - start
        pieces.append(tensor.padded(0)[tuple(places)])
    out[tuple(i)] = reduce(add, pieces)


@describes("stack.default")
def stack(op: Description, tensors: Sequence[Operand], dim: int) -> None:
    """Tensors along a new dimension."""
    out = op.output(0)
    i = counted("i", len(out.shape))
    dim %= len(i)
    out[i] = _chosen(i[dim], [tensor[i[:dim] + i[dim + 1 :]] for tensor in tensors])


@describes("constant_pad_nd.default")
def pad(op: Description, self: Operand, pad: Sequence[int], value: Any) -> None:
    """The tensor with a number around it, or with its borders cut off."""
    out = op.output(0)
    i: list[Affine] = list(counted("i", len(out.shape)))
    places = i.copy()
    for number in range(len(pad) // 2):
        places[-1 - number] = i[-1 - number] - pad[2 * number]
    out[tuple(i)] = self.padded(value)[tuple(places)] * 1


@describes("slice_backward.default")
def slice_backward(op: Description, grad_output: Operand, dim: int, start: int, step: int) -> None:
    """The gradient where the slice was taken, else 0."""
    out = op.output(0)
    i: list[Affine] = list(counted("i", len(out.shape)))
    dim %= len(i)
    start = max(start + out.shape[dim], 0) if start < 0 else start
    places = i.copy()
    places[dim] = exactly(i[dim] - start, step)
    out[tuple(i)] = grad_output.padded(0)[tuple(places)] * 1


@describes("select_backward.default")
def select_backward(op: Description, grad_output: Operand, dim: int, index: int) -> None:
    """The gradient where the slice was taken, else 0."""
    out = op.output(0)
    i = counted("i", len(out.shape))
    dim %= len(i)
    out[i] = where(equal(i[dim], index % out.shape[dim]), grad_output[i[:dim] + i[dim + 1 :]], 0)


def _chosen(part: Variable, values: Sequence[Expression]) -> Expression:
    """The value whose number `part` is."""
    chosen = values[-1]
    for number, value in reversed(list(enumerate(values[:-1]))):
        chosen = where(equal(part, number), value, chosen)
    return chosen
