"""Softmax and its logarithm along one dimension: the largest value and the sum are stages."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from planner.partition.ops.registry import describes, unknown
from planner.partition.tdl import Description, Max, Operand, StageTarget, Sum, Variable, apply, counted, equal, where


@dataclass(frozen=True)
class Along:
    """The coordinates of a tensor along one dimension and across it.

    Args:
        all: all coordinates.
        rest: those but the one along the dimension.
        along: the one along it.
        shape: the shape without the dimension.
    """

    all: tuple[Variable, ...]
    rest: tuple[Variable, ...]
    along: Variable
    shape: tuple[int, ...]


def along_dimension(x: Operand, dim: int) -> Along:
    """The coordinates of a tensor that has dimensions."""
    i = counted("i", len(x.shape))
    dim %= len(x.shape)
    return Along(i, i[:dim] + i[dim + 1 :], i[dim], x.shape[:dim] + x.shape[dim + 1 :])


def _statistics(op: Description, x: Operand, at: Along) -> tuple[StageTarget, StageTarget]:
    largest = op.stage("largest", at.shape)
    largest[at.rest] = Max(at.along, x[at.all])
    total = op.stage("sum", at.shape)
    total[at.rest] = Sum(at.along, apply("exp", x[at.all] - largest[at.rest]))
    return largest, total


@describes("_softmax.default")
def softmax(op: Description, self: Operand, dim: int) -> None:
    """exp(x - max) / sum."""
    if not self.shape:
        unknown(op)
        return
    at = along_dimension(self, dim)
    largest, total = _statistics(op, self, at)
    op.output(0)[at.all] = apply("exp", self[at.all] - largest[at.rest]) / total[at.rest]


@describes("_safe_softmax.default")
def safe_softmax(op: Description, self: Operand, dim: int) -> None:
    """Softmax, which is 0 where all values are -infinity."""
    if not self.shape:
        unknown(op)
        return
    at = along_dimension(self, dim)
    largest, total = _statistics(op, self, at)
    value = apply("exp", self[at.all] - largest[at.rest]) / total[at.rest]
    op.output(0)[at.all] = where(equal(largest[at.rest], -inf), 0, value)


@describes("_log_softmax.default")
def log_softmax(op: Description, self: Operand, dim: int) -> None:
    """X - max - log(sum)."""
    if not self.shape:
        unknown(op)
        return
    at = along_dimension(self, dim)
    largest, total = _statistics(op, self, at)
    op.output(0)[at.all] = self[at.all] - largest[at.rest] - apply("log", total[at.rest])


@describes("_softmax_backward_data.default")
def softmax_backward(op: Description, grad_output: Operand, output: Operand, dim: int) -> None:
    """Y (gradient - sum of gradient y)."""
    if not output.shape:
        unknown(op)
        return
    at = along_dimension(output, dim)
    total = op.stage("gradient times output", at.shape)
    total[at.rest] = Sum(at.along, grad_output[at.all] * output[at.all])
    op.output(0)[at.all] = output[at.all] * (grad_output[at.all] - total[at.rest])


@describes("_log_softmax_backward_data.default")
def log_softmax_backward(op: Description, grad_output: Operand, output: Operand, dim: int) -> None:
    """Gradient - exp(y) times the sum of gradients."""
    if not output.shape:
        unknown(op)
        return
    at = along_dimension(output, dim)
    total = op.stage("gradient sum", at.shape)
    total[at.rest] = Sum(at.along, grad_output[at.all])
    op.output(0)[at.all] = grad_output[at.all] - apply("exp", output[at.all]) * total[at.rest]
