"""Products of matrices."""

from __future__ import annotations

from typing import Any

from planner.partition.ops.broadcast import at
from planner.partition.ops.registry import describes, unknown
from planner.partition.tdl import Description, Operand, Sum, Variable, apply, index, indices, where


@describes("mm.default")
def mm(op: Description, self: Operand, mat2: Operand) -> None:
    """The product of two matrices."""
    out = op.output(0)
    i, j, k = indices("i j k")
    out[i, j] = Sum(k, self[i, k] * mat2[k, j])


@describes("addmm.default")
def addmm(op: Description, self: Operand, mat1: Operand, mat2: Operand, beta: Any, alpha: Any) -> None:
    """A matrix, or a row or column for all, plus the product of two."""
    out = op.output(0)
    i, j, k = indices("i j k")
    product = Sum(k, mat1[i, k] * mat2[k, j])
    out[i, j] = _scaled(at(self, (i, j)), beta) + _scaled(product, alpha)


@describes("bmm.default")
def bmm(op: Description, self: Operand, mat2: Operand) -> None:
    """The product of two matrices per batch entry."""
    out = op.output(0)
    n, i, j, k = indices("n i j k")
    out[n, i, j] = Sum(k, self[n, i, k] * mat2[n, k, j])


@describes("baddbmm.default")
def baddbmm(op: Description, self: Operand, batch1: Operand, batch2: Operand, beta: Any, alpha: Any) -> None:
    """Per batch entry a matrix plus the product of two."""
    out = op.output(0)
    n, i, j, k = indices("n i j k")
    product = Sum(k, batch1[n, i, k] * batch2[n, k, j])
    out[n, i, j] = _scaled(at(self, (n, i, j)), beta) + _scaled(product, alpha)


@describes("mv.default")
def mv(op: Description, self: Operand, vec: Operand) -> None:
    """The product of a matrix and a vector."""
    out = op.output(0)
    i, k = indices("i k")
    out[i] = Sum(k, self[i, k] * vec[k])


@describes("dot.default")
def dot(op: Description, self: Operand, tensor: Operand) -> None:
    """The product of two vectors."""
    out = op.output(0)
    (k,) = indices("k")
    out[()] = Sum(k, self[k] * tensor[k])


@describes("_grouped_mm.default")
def grouped_mm(op: Description, self: Operand, mat2: Operand, offs: Operand, bias: Any) -> None:
    """Rows of `self`, or columns where `mat2` is a matrix as well, in groups, each times its own matrix.

    Group e ends before offs[e] and begins where the one before it ends.
    """
    out = op.output(0)
    if bias is not None or len(self.shape) != 2:
        unknown(op)
        return
    i, j, k = indices("i j k")
    e = index("e", offs.shape[0])

    def belongs(place: Variable) -> Any:
        return apply("mul", apply("ge", place, offs.padded(0)[e - 1]), apply("lt", place, offs[e]))

    if len(mat2.shape) == 3:
        out[i, j] = Sum((e, k), where(belongs(i), self[i, k] * mat2[e, k, j], 0))
    else:
        out[e, i, j] = Sum(k, where(belongs(k), self[i, k] * mat2[k, j], 0))


def _scaled(value: Any, factor: Any) -> Any:
    return value if factor == 1 else value * factor
