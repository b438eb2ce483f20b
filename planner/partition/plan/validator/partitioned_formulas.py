"""What becomes of a formula when workers divide the values of one index variable, or run it on partial sums."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from planner.partition.tdl import (
    Apply,
    Constant,
    Description,
    Expression,
    Formula,
    Operand,
    Position,
    Read,
    Reduce,
    Reduction,
    Variable,
)

#: Functions that are finite wherever their arguments are.
_FINITE = {"add", "sub", "mul", "neg", "where", "eq", "ne", "ge", "gt", "le", "lt", "abs", "maximum", "minimum"}


@dataclass(frozen=True)
class WorkersValues:
    """The values that workers find for one formula.

    Args:
        problem: why they are of no use; empty if they are.
        local: each worker finds other ones, for its own coordinates.
        reduction: they are partial results that must be combined like this.
        once: operands that only the first worker may use, all others zeros.
    """

    problem: str = ""
    local: bool = False
    reduction: Reduction | None = None
    once: frozenset[Operand] = field(default_factory=frozenset)


def divided(value: Expression, axis: Variable, split_stages: Collection[Operand] = ()) -> WorkersValues:
    """What workers find if each has a part of an index variable's values.

    Args:
        value: what the formula computes.
        axis: the variable.
        split_stages: stages of which each worker has its own coordinates only.
    """
    match value:
        case Constant():
            return WorkersValues()
        case Read():
            indexed = any(place is not None and _uses(place.terms, axis) for place in value.places)
            return WorkersValues(local=indexed or value.operand in split_stages)
        case Position():
            return WorkersValues(local=_uses(value.index.terms, axis))
    parts = [divided(part, axis, split_stages) for part in value.parts]
    broken = next((part for part in parts if part.problem), None)
    if broken:
        return broken
    partial = [part for part in parts if part.reduction]
    if isinstance(value, Reduce):
        return _reduced(value, axis, parts)
    if not partial:
        return WorkersValues(local=any(part.local for part in parts))
    if not isinstance(value, Apply) or any(part.local or part.reduction not in (None, Reduction.SUM) for part in parts):
        return WorkersValues("it applies a function to results that are not complete on any worker")
    return _function_of_sums(value, parts)


def _reduced(value: Reduce, axis: Variable, parts: list[WorkersValues]) -> WorkersValues:
    inside = {part.reduction for part in parts} - {None}
    if axis in value.variables:
        if inside or value.reduction is Reduction.FIRST_MAX:
            return WorkersValues(f"workers' results of {value.reduction.value} cannot be combined")
        return WorkersValues(reduction=value.reduction)
    if not inside:
        return WorkersValues(local=any(part.local for part in parts))
    if inside == {value.reduction} and len(parts) == 1 and not parts[0].once:
        return parts[0]
    return WorkersValues(f"it reduces by {value.reduction.value} what is not complete on any worker")


def _function_of_sums(value: Apply, parts: list[WorkersValues]) -> WorkersValues:
    sums = [number for number, part in enumerate(parts) if part.reduction]
    linear = (
        value.function == "neg"
        or (value.function == "mul" and len(sums) == 1)
        or (value.function == "div" and sums == [0])
    )
    if linear:
        return parts[sums[0]]
    if value.function not in ("add", "sub"):
        return WorkersValues(f"it applies {value.function} to sums that are not complete on any worker")
    once = frozenset(operand for part in parts for operand in part.once)
    for number, term in enumerate(value.parts):
        if number in sums:
            continue
        operands = frozenset(read.operand for read in _reads(term))
        if not _vanishes(term, operands):
            return WorkersValues("it adds to a sum what would be added by every worker")
        once |= operands
    return WorkersValues(reduction=Reduction.SUM, once=once)


def _vanishes(value: Expression, zeros: frozenset[Operand]) -> bool:
    """Whether a value is 0 if some tensors are."""
    match value:
        case Constant():
            return value.number == 0
        case Read():
            return value.operand in zeros and not value.padding
        case Apply(function="mul"):
            return any(_vanishes(part, zeros) for part in value.parts) and _is_finite(value, zeros)
        case Apply(function="add" | "sub" | "neg"):
            return all(_vanishes(part, zeros) for part in value.parts)
        case Apply(function="where"):
            return all(_vanishes(part, zeros) for part in value.parts[1:])
        case Apply(function="div"):
            below = {read.operand for read in _reads(value.parts[1])}
            return _vanishes(value.parts[0], zeros) and not below & zeros
        case Reduce(reduction=Reduction.SUM):
            return _vanishes(value.parts[0], zeros)
    return False


def _is_finite(value: Expression, zeros: frozenset[Operand]) -> bool:
    """Whether nothing in a value is infinite because some tensors are 0, so that 0 times it is 0."""
    if isinstance(value, Apply) and value.function not in _FINITE:
        below = value.parts[1:] if value.function == "div" else value.parts
        if any(read.operand in zeros for part in below for read in _reads(part)):
            return False
    return all(_is_finite(part, zeros) for part in value.parts)


def used_elsewhere(description: Description, once: frozenset[Operand], found: int) -> list[Operand]:
    """The operands that only the first worker may use but that are read more often than was found."""
    total = sum(1 for formula in description.formulas for read in _reads(formula.value) if read.operand in once)
    strangers = [operand for operand in once if operand not in description.inputs]
    return strangers or (sorted(once, key=lambda operand: operand.name) if total > found else [])


def count_reads(value: Expression, operands: frozenset[Operand]) -> int:
    """How often a formula reads some operands."""
    return sum(1 for read in _reads(value) if read.operand in operands)


def reached(description: Description) -> list[Formula]:
    """The formulas of all outputs, and of the stages that they need."""
    stages = {stage.operand: stage for stage in description.stages}
    found: dict[int, Formula] = {}
    waiting = [description.outputs[number] for number in sorted(description.outputs)]
    while waiting:
        formula = waiting.pop()
        if id(formula) not in found:
            found[id(formula)] = formula
            waiting += [stages[read.operand] for read in _reads(formula.value) if read.operand in stages]
    return [formula for formula in description.formulas if id(formula) in found]


def formula_reads(formula: Formula) -> list[Read]:
    """Every read of a formula."""
    return list(_reads(formula.value))


def is_linear(value: Expression, sums: Collection[Operand], stages: Mapping[Operand, Formula]) -> bool:
    """Whether a value is a sum of products that each have exactly one of some tensors, to the power of one."""
    return _degree(value, sums, stages) in (1, None)


def _degree(value: Expression, sums: Collection[Operand], stages: Mapping[Operand, Formula]) -> int | None:
    """0 if it does not depend on the tensors, 1 if it is linear in them, 2 for all else, None for the number 0."""
    match value:
        case Constant():
            return None if value.number == 0 else 0
        case Position():
            return 0
        case Read():
            if value.operand in stages:
                return _degree(stages[value.operand].value, sums, stages)
            if value.operand not in sums:
                return 0
            return 2 if value.padding else 1
    degrees = [_degree(part, sums, stages) for part in value.parts]
    known = [degree for degree in degrees if degree is not None]
    if isinstance(value, Apply) and value.function == "mul" and None in degrees:
        return None
    if not any(known):
        keeps_zero = isinstance(value, Reduce) or (isinstance(value, Apply) and value.function in ("neg", "add", "sub"))
        return None if keeps_zero and not known else 0
    if 2 in known:
        return 2
    match value:
        case Reduce(reduction=Reduction.SUM) | Apply(function="neg"):
            return known[0]
        case Apply(function="add" | "sub"):
            return 1 if set(known) == {1} else 2
        case Apply(function="mul"):
            return min(sum(known), 2)
        case Apply(function="div"):
            return 1 if degrees[0] == 1 and degrees[1] == 0 else 2
        case Apply(function="where"):
            return 1 if degrees[0] in (0, None) and set(degrees[1:]) <= {1, None} else 2
    return 2


def _uses(terms: tuple[tuple[Variable, int], ...], axis: Variable) -> bool:
    return any(variable is axis for variable, _ in terms)


def _reads(value: Expression) -> Iterator[Read]:
    if isinstance(value, Read):
        yield value
    for part in value.parts:
        yield from _reads(part)
