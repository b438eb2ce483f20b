"""Which descriptions are made of calls: of known functions and reductions of tensors that are read place by place."""

from __future__ import annotations

from math import prod

from planner.partition.tdl import (
    FUNCTIONS,
    Apply,
    Constant,
    Description,
    Expression,
    Formula,
    Index,
    Position,
    Read,
    Reduce,
    Reduction,
    Variable,
    digits,
)

#: Reductions that are calls.
REDUCTIONS = frozenset({Reduction.SUM, Reduction.MAX, Reduction.MIN})
#: Functions whose second argument may be a number.
NUMBER_SECOND = frozenset({
    "add", "sub", "mul", "div", "pow", "eq", "ge", "gt", "le", "lt", "ne", "remainder", "fmod"
})  # fmt: skip
#: Functions whose first argument may be a number where the second is a tensor.
NUMBER_FIRST = frozenset({"add", "sub", "mul", "div", "pow", "eq", "ne"})
#: A formula's intermediate values may be so many times as large as the largest tensor of its op.
_LARGEST = 4

#: The variables that a value depends on; None for a number.
_Scope = frozenset[Variable] | None


class _NoCallError(Exception):
    """A part of a formula that is no call."""


def only_variable(place: Index) -> Variable | None:
    """The variable that an index is; None if it is more or less than one."""
    if len(place.terms) != 1 or place.constant or place.divisor != 1 or place.terms[0][1] != 1:
        return None
    return place.terms[0][0]


def formula_obstacle(description: Description) -> str:
    """Why what a description says is not made of calls; empty if it is."""
    shapes = [operand.shape for operand in description.inputs]
    shapes += [tuple(variable.size for variable in formula.variables) for formula in description.outputs.values()]
    most = _LARGEST * max((prod(shape) for shape in shapes), default=1)
    try:
        for formula in description.formulas:
            _check(formula, most)
    except _NoCallError as error:
        return str(error)
    return ""


def _check(formula: Formula, most: int) -> None:
    for place, size in zip(formula.places, formula.shape, strict=True):
        whole = only_variable(place) if formula.operand is not None else digits(place, size)
        if size != 1 and whole is None:
            raise _NoCallError(f"{formula.target} is not written place by place")
    if _scope(formula.value, most) is None:
        raise _NoCallError("its formula is a number")


def _scope(part: Expression, most: int) -> _Scope:
    if isinstance(part, Constant):
        if isinstance(part.number, str):
            raise _NoCallError(f"the number {part.number} is not known")
        return None
    if isinstance(part, Read):
        return _read(part)
    if isinstance(part, Position):
        if part.index.divisor != 1:
            raise _NoCallError("its formula divides an index")
        return frozenset(variable for variable, _ in part.index.terms) or None
    scopes = [_scope(each, most) for each in part.parts]
    tensors = [scope for scope in scopes if scope is not None]
    found: _Scope = frozenset().union(*tensors) if tensors else None
    if isinstance(part, Apply):
        _check_function(part.function, [scope is None for scope in scopes])
    elif not isinstance(part, Reduce) or part.reduction not in REDUCTIONS:
        raise _NoCallError("its formula is not made of known functions and reductions")
    elif found is None:
        raise _NoCallError("its formula reduces a number")
    else:
        found -= frozenset(part.variables)
    if found is not None and (values := prod(variable.size for variable in found)) > most:
        raise _NoCallError(f"its formula needs {values:,} values at once")
    return found


def _read(read: Read) -> frozenset[Variable]:
    found: list[Variable] = []
    for place, size in zip(read.places, read.operand.shape, strict=True):
        variable = None if place is None else only_variable(place)
        if place is None or (variable is None and (place.terms or size > 1)):
            raise _NoCallError(f"its formula reads {read.operand.name} in more than its places one by one")
        if variable is not None:
            found.append(variable)
    if len(set(found)) < len(found):
        raise _NoCallError(f"its formula reads a diagonal of {read.operand.name}")
    return frozenset(found)


def _check_function(name: str, numbers: list[bool]) -> None:
    if name not in FUNCTIONS:
        raise _NoCallError(f"its formula computes {name}, which is no known function")
    if all(numbers) or not any(numbers) or name == "where":
        return
    if (numbers[0] and name not in NUMBER_FIRST) or (not numbers[0] and name not in NUMBER_SECOND):
        raise _NoCallError(f"its formula computes {name} of a number and a tensor")
