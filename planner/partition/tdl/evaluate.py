"""The meaning of the language: the value of a formula on tensors, for all of an output or for a chunk of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType

import torch
from torch import Tensor

from planner.errors import StowageError
from planner.partition.tdl.description import Description, Formula
from planner.partition.tdl.expression import (
    Apply,
    Constant,
    Expression,
    Operand,
    Position,
    Read,
    Reduce,
    Reduction,
)
from planner.partition.tdl.index import Index, Variable
from planner.partition.tdl.interval import Range

#: What the element-wise functions of formulas compute, by name.
FUNCTIONS: Mapping[str, Callable[..., Tensor]] = MappingProxyType(
    {name: getattr(torch, name) for name in (
        "abs", "add", "ceil", "clamp", "cos", "div", "eq", "erf", "exp", "floor", "fmod", "ge", "gt", "le", "log",
        "log1p", "logical_not", "lt", "maximum", "minimum", "mul", "ne", "neg", "pow", "remainder", "round", "rsqrt",
        "sign", "sin", "sqrt", "sub", "tanh", "trunc", "where", "atan2", "sigmoid", "expm1", "reciprocal",
        "logical_and", "logical_or", "logical_xor", "isnan",
    )}
)  # fmt: skip


def evaluate(
    description: Description,
    formula: Formula,
    tensors: Mapping[Operand, Tensor],
    ranges: Mapping[Variable, Range] | None = None,
) -> Tensor:
    """The values of an output or a stage; where a chunk does not reach they are NaN.

    Args:
        description: the op.
        formula: one of its outputs or stages.
        tensors: values of its inputs, and of the stages that the formula reads.
        ranges: restrictions of index variables: coordinates for a chunk, variables of reductions for a partial result.

    Returns:
        A tensor of float64 in the formula's shape.

    Raises:
        StowageError: an opaque function or an unknown number is in the formula.
    """
    scope = formula.variables
    limits = {variable: (0, variable.size) for variable in description.axes} | dict(ranges or {})
    value = _value(formula.value, scope, tensors, limits).double()
    sizes = [limits[variable][1] - limits[variable][0] for variable in scope]
    result = torch.full(formula.shape, torch.nan, dtype=torch.float64)
    where = [_positions(place, scope, limits) for place in formula.places]
    if not where:
        return value.reshape(())
    result[tuple(index.expand(sizes) for index in where)] = value.expand(sizes)
    return result


def _value(
    part: Expression, scope: Sequence[Variable], tensors: Mapping[Operand, Tensor], limits: Mapping[Variable, Range]
) -> Tensor:
    """A value with one dimension per variable in scope, of size 1 where it does not depend on it."""
    if isinstance(part, Constant):
        if isinstance(part.number, str):
            raise StowageError(f"the number {part.number} is not known")
        return torch.full([1] * len(scope), float(part.number), dtype=torch.float64)
    if isinstance(part, Position):
        return _positions(part.index, scope, limits).double()
    if isinstance(part, Read):
        return _read(part, scope, tensors[part.operand], limits)
    if isinstance(part, Apply):
        return FUNCTIONS[part.function](*_conditioned(part, [_value(p, scope, tensors, limits) for p in part.parts]))
    if isinstance(part, Reduce):
        return _reduced(part, scope, tensors, limits)
    raise StowageError("an opaque function has no value")


def _conditioned(part: Apply, values: list[Tensor]) -> list[Tensor]:
    return [values[0] != 0, *values[1:]] if part.function == "where" else values


def _positions(index: Index, scope: Sequence[Variable], limits: Mapping[Variable, Range]) -> Tensor:
    """The undivided values of an index, with a dimension per variable in scope."""
    total = torch.full([1] * len(scope), index.constant)
    for variable, coefficient in index.terms:
        shape = [1] * len(scope)
        shape[scope.index(variable)] = -1
        total = total + coefficient * torch.arange(*limits[variable]).view(shape)
    return total


def _read(read: Read, scope: Sequence[Variable], tensor: Tensor, limits: Mapping[Variable, Range]) -> Tensor:
    inside = torch.ones([1] * len(scope), dtype=torch.bool)
    places = []
    for place, size in zip(read.places, tensor.shape, strict=True):
        if place is None:
            raise StowageError("a slice has no value")
        index = _positions(place, scope, limits)
        inside = inside & (index % place.divisor == 0)
        index = torch.div(index, place.divisor, rounding_mode="floor")
        inside = inside & (index >= 0) & (index < size)
        places.append(index.clamp(0, max(size - 1, 0)))
    found = tensor.double()[tuple(places)] if places else tensor.double().reshape([1] * len(scope))
    if read.padding is None:
        if not bool(inside.all()):
            raise StowageError(f"{read.operand.name} of shape {list(tensor.shape)} is read out of its bounds")
        return found
    return torch.where(inside, found, read.padding)


def _reduced(
    part: Reduce, scope: Sequence[Variable], tensors: Mapping[Operand, Tensor], limits: Mapping[Variable, Range]
) -> Tensor:
    inner = [*scope, *part.variables]
    sizes = [limits[variable][1] - limits[variable][0] for variable in part.variables]
    bodies: list[Tensor] = []
    for part_of in part.parts:
        value = _value(part_of, inner, tensors, limits)
        lead = value.shape[: len(scope)]
        bodies.append(value.expand(*lead, *sizes).reshape(*lead, prod(sizes)))
    first = bodies[0]
    if part.reduction is Reduction.SUM:
        return first.sum(-1)
    if part.reduction is Reduction.PROD:
        return first.prod(-1)
    if part.reduction is Reduction.MAX:
        return first.amax(-1)
    if part.reduction is Reduction.MIN:
        return first.amin(-1)
    first = first.nan_to_num(nan=torch.inf) + torch.zeros_like(bodies[1])  # both in the shape of both
    answers = bodies[1] + torch.zeros_like(first)
    place = (first == first.amax(-1, keepdim=True)).to(torch.int8).argmax(-1, keepdim=True)
    return answers.gather(-1, place)[..., 0]
