"""Elements chosen by whole numbers in another tensor, and orders along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.partition.ops.registry import describes, unknown
from planner.partition.tdl import (
    Affine,
    Description,
    Operand,
    Sum,
    Variable,
    apply,
    counted,
    equal,
    index,
    opaque,
    where,
)


def _is(chosen: Any, row: Variable) -> Any:
    """Whether a number, which counts from the end if it is negative, is that of a row."""
    return equal(apply("remainder", chosen, row.size), row)


@describes("index.Tensor")
def take(op: Description, self: Operand, indices: Sequence[Operand | None]) -> None:
    """Rows by number: the sum over all rows, of which one counts; other ways of choosing are not described."""
    if len(indices) != 1 or indices[0] is None or indices[0].dtype in ("bool", "uint8"):
        unknown(op)
        return
    i = counted("i", len(indices[0].shape))
    j = counted("j", len(self.shape) - 1)
    v = index("v", self.shape[0])
    op.output(0)[*i, *j] = Sum(v, where(_is(indices[0][i], v), self[v, *j], 0))


@describes("index_put.default")
def put(op: Description, self: Operand, indices: Sequence[Operand | None], values: Operand, accumulate: bool) -> None:
    """Values added to rows by number; other ways of writing are not described."""
    chosen = indices[0] if len(indices) == 1 else None
    if chosen is None or chosen.dtype in ("bool", "uint8") or not accumulate:
        unknown(op)
        return
    if values.shape != chosen.shape + self.shape[1:]:
        unknown(op)
        return
    i = counted("i", len(chosen.shape))
    j = counted("j", len(self.shape) - 1)
    v = index("v", self.shape[0])
    op.output(0)[v, *j] = self[v, *j] + Sum(i, where(_is(chosen[i], v), values[*i, *j], 0))


@describes("gather.default")
def gather(op: Description, self: Operand, dim: int, index: Operand) -> None:
    """At every place, the element whose number along a dimension is given there."""
    rank = len(self.shape)
    dim %= max(rank, 1)
    if rank == 0 or any(self.shape[d] != index.shape[d] for d in range(rank) if d != dim):
        unknown(op)
        return
    i: list[Affine] = list(counted("i", rank))
    v = Variable("v")
    places = i.copy()
    places[dim] = v
    op.output(0)[tuple(i)] = Sum(v, where(equal(index[tuple(i)], v), self[tuple(places)], 0))


@describes("topk.default", "sort.default", "cumsum.default", "cumprod.default")
def along(op: Description, self: Operand, dim: int) -> None:
    """Some function of all elements along a dimension."""
    if not self.shape:
        unknown(op)
        return
    i = counted("i", len(self.shape))
    dim %= len(i)
    place = tuple(slice(None) if number == dim else variable for number, variable in enumerate(i))
    for number in range(len(op.shapes)):
        op.output(number)[i] = opaque(self[place])
