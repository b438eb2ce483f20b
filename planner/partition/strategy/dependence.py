"""How a value depends on a split axis: not at all, place by place, or as a partial result that can be reduced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.partition.strategy.states import Split, State
from planner.partition.tdl import (
    Apply,
    Constant,
    Expression,
    Formula,
    Operand,
    Position,
    Read,
    Reduce,
    Reduction,
    Variable,
    reads,
)

#: More terms than this are not looked through.
_MOST_TERMS = 64
#: By operand how often it is a factor; one on which a term depends in another way counts twice.
Monomial = frozenset[tuple[Operand, int]]


@dataclass(frozen=True, slots=True)
class Dependence:
    """How a value depends on an axis.

    Args:
        local: it has the axis as a free index, so a worker can compute it for its chunk.
        partial: it is reduced over the axis, so workers' values must be combined like this.
        once: tensors that only the first worker may add to a partial sum, as often as they are read for that.
        broken: workers cannot compute it from their chunks.
    """

    local: bool = False
    partial: Reduction | None = None
    once: tuple[Operand, ...] = ()
    broken: bool = False


_BROKEN = Dependence(broken=True)
_SAME = Dependence()
_LOCAL = Dependence(local=True)


def dependence(value: Expression, axis: Variable, stages: Mapping[Operand, tuple[Formula, State]]) -> Dependence:
    """How a value depends on an axis, given how the stages that it reads are spread."""
    if isinstance(value, Read):
        return _read(value, axis, stages)
    if isinstance(value, Position):
        return _LOCAL if any(variable is axis for variable, _ in value.index.terms) else _SAME
    parts = [dependence(part, axis, stages) for part in value.parts]
    if any(part.broken for part in parts):
        return _BROKEN
    if isinstance(value, Reduce):
        return _reduced(value, axis, parts)
    if any(part.partial for part in parts):
        return _linear(value, parts) if isinstance(value, Apply) else _BROKEN
    return _LOCAL if any(part.local for part in parts) else _SAME


def _read(read: Read, axis: Variable, stages: Mapping[Operand, tuple[Formula, State]]) -> Dependence:
    used = any(axis is variable for place in read.places if place is not None for variable, _ in place.terms)
    if read.operand not in stages:
        return _LOCAL if used else _SAME
    formula, state = stages[read.operand]
    if isinstance(state, Split):  # each worker has its own chunk of the stage, and can read nothing else of it
        return _LOCAL if read.places[state.dimension] == formula.places[state.dimension] else _BROKEN
    return _LOCAL if used else _SAME


def _reduced(value: Reduce, axis: Variable, parts: list[Dependence]) -> Dependence:
    partials = {part.partial for part in parts if part.partial}
    if axis in value.variables:
        if partials or value.reduction is Reduction.FIRST_MAX:
            return _BROKEN
        return Dependence(partial=value.reduction)
    if not partials:
        return _LOCAL if any(part.local for part in parts) else _SAME
    return parts[0] if partials == {value.reduction} and not parts[0].once else _BROKEN


def _linear(value: Apply, parts: list[Dependence]) -> Dependence:
    """A function of partial sums that may be applied before they are reduced, because it is linear."""
    if any(part.local or part.partial not in (None, Reduction.SUM) for part in parts):
        return _BROKEN
    if value.function == "neg":
        return parts[0]
    if value.function == "mul" and not all(part.partial for part in parts):
        return next(part for part in parts if part.partial)
    if value.function == "div" and not parts[1].partial:
        return parts[0]
    if value.function in ("add", "sub"):
        once = tuple(operand for part in parts for operand in part.once)
        for term, part in zip(value.parts, parts, strict=True):
            if part.partial:
                continue
            terms = monomials(term, {})
            if terms is None or any(not any(degree == 1 for _, degree in monomial) for monomial in terms):
                return _BROKEN  # it would not vanish where its tensors are 0
            once += tuple(read.operand for read in reads(term))
        return Dependence(partial=Reduction.SUM, once=once)
    return _BROKEN


def monomials(value: Expression, stages: Mapping[Operand, Formula]) -> frozenset[Monomial] | None:
    """A value as a sum of products of tensors; None if it has too many terms."""
    if isinstance(value, Constant):
        return frozenset() if value.number == 0 else frozenset([frozenset()])
    if isinstance(value, Read):
        if value.operand in stages:
            return monomials(stages[value.operand].value, stages)
        # padded by another value than 0, it is not linear
        return frozenset([frozenset([(value.operand, 1 if not value.padding else 2)])])
    parts = [monomials(part, stages) for part in value.parts]
    if any(part is None for part in parts):
        return None
    known = [part for part in parts if part is not None]
    if isinstance(value, Reduce) and value.reduction is Reduction.SUM:
        return known[0]
    if isinstance(value, Apply):
        if value.function in ("add", "sub", "neg"):
            return _few(frozenset().union(*known))
        if value.function == "mul":
            return _few(frozenset(_times(left, right) for left in known[0] for right in known[1]))
        if value.function == "div":
            return _few(frozenset(_times(left, _other(value.parts[1:], stages)) for left in known[0]))
        if value.function == "where":
            condition = _other(value.parts[:1], stages)
            return _few(frozenset(_times(condition, term) for term in known[1] | known[2]))
    return frozenset([_other([value], stages)])


def _other(values: Sequence[Expression], stages: Mapping[Operand, Formula]) -> Monomial:
    """A term that depends on tensors in some other way than as a product."""
    found: set[Operand] = set()
    for read in (read for value in values for read in reads(value)):
        if read.operand in stages:
            found |= {operand for operand, _ in _other([stages[read.operand].value], stages)}
        else:
            found.add(read.operand)
    return frozenset((operand, 2) for operand in found)


def _times(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for operand, degree in right:
        powers[operand] = min(powers.get(operand, 0) + degree, 2)
    return frozenset(powers.items())


def _few(terms: frozenset[Monomial]) -> frozenset[Monomial] | None:
    return terms if len(terms) <= _MOST_TERMS else None
