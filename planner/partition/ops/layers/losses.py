"""Loss functions and their gradients."""

from __future__ import annotations

from math import prod
from typing import Any

from planner.partition.ops.broadcast import at
from planner.partition.ops.registry import describes, unknown
from planner.partition.tdl import Description, Expression, Operand, Sum, Variable, apply, counted, equal, indices, where

_NONE, _MEAN = 0, 1  # how a loss is reduced; 2 is a sum


@describes("nll_loss_forward.default")
def nll_loss(
    op: Description, self: Operand, target: Operand, weight: Operand | None, reduction: int, ignore_index: int
) -> None:
    """Minus the value at each row's target, weighted and averaged over the rows whose target is not ignored."""
    if len(self.shape) != 2 or reduction == _NONE:
        unknown(op)
        return
    n, c = indices("n c")
    total = op.stage("total weight", ())
    total[()] = Sum(n, _counted(n, target, weight, ignore_index))
    loss = op.stage("total loss", ())
    loss[()] = -Sum((n, c), where(_hit(n, c, target, ignore_index), _weighted(self[n, c], weight, c), 0))
    op.output(0)[()] = loss[()] / total[()] if reduction == _MEAN else loss[()] * 1
    op.output(1)[()] = total[()] * 1


@describes("nll_loss_backward.default")
def nll_loss_backward(
    op: Description, grad_output: Operand, self: Operand, target: Operand, weight: Operand | None, reduction: int,
    ignore_index: int, total_weight: Operand,
) -> None:  # fmt: skip
    """Minus the gradient at each row's target, else 0."""
    if len(self.shape) != 2 or reduction == _NONE:
        unknown(op)
        return
    n, c = indices("n c")
    grad = _weighted(-grad_output[()], weight, c)
    grad = grad / total_weight[()] if reduction == _MEAN else grad
    op.output(0)[n, c] = where(_hit(n, c, target, ignore_index), grad, 0)


@describes("mse_loss.default")
def mse_loss(op: Description, self: Operand, target: Operand, reduction: int) -> None:
    """The squared difference, averaged or summed."""
    i = counted("i", len(self.shape))
    square = (self[i] - target[i]) * (self[i] - target[i])
    if reduction == _NONE:
        op.output(0)[i] = square
    else:
        op.output(0)[()] = Sum(i, square) / (prod(self.shape) if reduction == _MEAN else 1)


@describes("mse_loss_backward.default")
def mse_loss_backward(op: Description, grad_output: Operand, self: Operand, target: Operand, reduction: int) -> None:
    """Twice the difference times the gradient."""
    i = counted("i", len(self.shape))
    value = 2 * (self[i] - target[i]) * at(grad_output, i)
    op.output(0)[i] = value / prod(self.shape) if reduction == _MEAN else value


def _hit(n: Variable, c: Variable, target: Operand, ignored: int) -> Expression:
    return equal(target[n], c) * apply("ne", target[n], ignored)


def _weighted(value: Expression, weight: Operand | None, c: Variable) -> Expression:
    return value if weight is None else value * weight[c]


def _counted(n: Variable, target: Operand, weight: Operand | None, ignored: int) -> Any:
    counts = apply("ne", target[n], ignored) * 1
    if weight is None:
        return counts
    (k,) = indices("k")
    return counts * Sum(k, where(equal(target[n], k), weight[k], 0))
