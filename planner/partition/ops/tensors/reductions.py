"""Reductions over dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from planner.partition.ops.registry import describes
from planner.partition.tdl import (
    Affine,
    Description,
    Expression,
    Max,
    Min,
    Operand,
    Prod,
    Sum,
    Variable,
    apply,
    counted,
)

Reducer = Callable[[Sequence[Variable], Expression], Expression]


def reduce_dimensions(op: Description, x: Operand, dim: Any, keepdim: bool, reducer: Reducer, scale: bool) -> None:
    """Reduce some dimensions of a tensor, all of them if none is named, and divide by their size if `scale`."""
    rank = len(x.shape)
    named = [dim] if isinstance(dim, int) else list(dim or range(rank))
    gone = sorted({number % rank for number in named}) if rank else []
    i = counted("i", rank)
    places: list[Affine | int] = []
    for number, variable in enumerate(i):
        if number not in gone:
            places.append(variable)
        elif keepdim:
            places.append(0)
    value = reducer([i[number] for number in gone], x[i])
    op.output(0)[tuple(places)] = value / prod(x.shape[number] for number in gone) if scale else value


@describes("sum.dim_IntList")
def sum_over(op: Description, self: Operand, dim: Any, keepdim: bool) -> None:
    """The sum over some dimensions."""
    reduce_dimensions(op, self, dim, keepdim, Sum, False)


@describes("mean.dim")
def mean_over(op: Description, self: Operand, dim: Any, keepdim: bool) -> None:
    """The mean over some dimensions."""
    reduce_dimensions(op, self, dim, keepdim, Sum, True)


@describes("sum.default")
def sum_all(op: Description, self: Operand) -> None:
    """The sum of all elements."""
    reduce_dimensions(op, self, None, False, Sum, False)


@describes("mean.default")
def mean_all(op: Description, self: Operand) -> None:
    """The mean of all elements."""
    reduce_dimensions(op, self, None, False, Sum, True)


@describes("amax.default")
def amax(op: Description, self: Operand, dim: Any, keepdim: bool) -> None:
    """The largest element over some dimensions."""
    reduce_dimensions(op, self, dim, keepdim, Max, False)


@describes("amin.default")
def amin(op: Description, self: Operand, dim: Any, keepdim: bool) -> None:
    """The smallest element over some dimensions."""
    reduce_dimensions(op, self, dim, keepdim, Min, False)


@describes("prod.dim_int")
def product_over(op: Description, self: Operand, dim: Any, keepdim: bool) -> None:
    """The product over one dimension."""
    reduce_dimensions(op, self, dim, keepdim, Prod, False)


@describes("any.dim", "any.dims")
def any_over(op: Description, self: Operand, dim: Any, keepdim: bool) -> None:
    """Whether any element over some dimensions is not 0."""
    reduce_dimensions(op, self, dim, keepdim, lambda over, x: Max(over, apply("ne", x, 0)), False)


@describes("all.dim", "all.dims")
def all_over(op: Description, self: Operand, dim: Any, keepdim: bool) -> None:
    """Whether no element over some dimensions is 0."""
    reduce_dimensions(op, self, dim, keepdim, lambda over, x: Min(over, apply("ne", x, 0)), False)
