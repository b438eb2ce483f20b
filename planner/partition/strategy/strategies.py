"""Every way of splitting an op, derived from its description alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from math import prod

from planner.partition.strategy.dependence import Monomial, dependence, monomials
from planner.partition.strategy.states import Partial, Replicated, Split, State, Unread, chunk
from planner.partition.tdl import (
    Description,
    Formula,
    Index,
    Operand,
    Reduction,
    Region,
    Variable,
    digits,
    reads,
    regions,
)

_MOST_CHOICES = 64


@dataclass(frozen=True, slots=True)
class StageReduction:
    """An intermediate result that all workers combine while the op runs, and that each of them then has.

    Args:
        name: what the description calls it.
        elements: how many values it has.
        reduction: how workers' values become one.
    """

    name: str
    elements: int
    reduction: Reduction


@dataclass(frozen=True, eq=False)
class Strategy:
    """One way of splitting an op over workers.

    Args:
        axis: the index variable whose values are divided among the workers; None where each worker runs the whole op
            on its partial sums (the op is linear in them).
        inputs: per input of the op, how it must be spread before.
        outputs: per output of the description, how it is spread afterwards; None for an output that is not made.
        once: inputs that only the first worker may use; all others take zeros in their place.
        stages: what workers combine while the op runs.
        strided: the axis may also be cut by any factor of it instead of into contiguous chunks, because every index
            that contains it is made of whole factors.
    """

    axis: Variable | None
    inputs: tuple[State, ...]
    outputs: tuple[State | None, ...]
    once: frozenset[int] = frozenset()
    stages: tuple[StageReduction, ...] = ()
    strided: bool = False

    @property
    def name(self) -> str:
        """The axis's name."""
        return "partial sums" if self.axis is None else self.axis.name

    def workers(self) -> int:
        """The most workers it serves."""
        return 1 << 62 if self.axis is None else self.axis.size


def strategies(description: Description) -> tuple[Strategy, ...]:
    """All strategies of an op but the one that is always possible: every worker computes everything.

    Left out are axes along which no input becomes smaller, unless a formula says how and more is divided of the outputs
    than every worker reads, and axes that only move a window over a larger one (a convolution's kernel).
    """
    found = [strategy for axis in description.axes if (strategy := split_along(description, axis))]
    return (*found, *_linear_strategies(description))


def split_along(description: Description, axis: Variable) -> Strategy | None:
    """The strategy that divides the values of one index variable; None if there is none that helps."""
    if axis.size < 2 or _moves_a_window(description, axis):
        return None
    stages: dict[Operand, tuple[Formula, State]] = {}
    reduced: list[StageReduction] = []
    once: Counter[Operand] = Counter()
    outputs: list[State | None] = [None] * len(description.shapes)
    for formula in description.formulas:
        found = dependence(formula.value, axis, stages)
        if found.broken:
            return None
        state: State = Replicated()
        if axis in formula.variables:
            if found.partial:
                return None
            state = written(formula, axis)
        elif found.local:
            return None
        elif found.partial:
            state = Partial(found.partial)
            once.update(found.once)
        if formula.operand is None:
            outputs[int(formula.target.split()[-1])] = state
            continue
        if isinstance(state, Partial):
            reduced.append(StageReduction(formula.target, prod(formula.shape), state.reduction))
            state = Replicated()
        stages[formula.operand] = formula, state
    read = Counter(read.operand for formula in description.formulas for read in reads(formula.value))
    if any(operand not in description.inputs or count < read[operand] for operand, count in once.items()):
        return None  # what only one worker has a value of, others need for something else
    if all(isinstance(state, Replicated | None) for state in outputs) and not reduced:
        return None
    inputs = tuple(_needed(description, operand, axis) for operand in description.inputs)
    if not any(isinstance(state, Split) for state in inputs):
        everywhere = sum(prod(operand.shape) for operand, state in zip(description.inputs, inputs, strict=True)
                         if isinstance(state, Replicated))  # fmt: skip
        divided = sum(prod(shape) for shape, state in zip(description.shapes, outputs, strict=True)
                      if shape is not None and isinstance(state, Split))  # fmt: skip
        if divided <= everywhere or description.opaque:
            return None
    places = {number for number, operand in enumerate(description.inputs) if operand in once}
    return Strategy(axis, inputs, tuple(outputs), frozenset(places), tuple(reduced), _is_strided(description, axis))


def needs(description: Description, strategy: Strategy, workers: int, worker: int) -> tuple[Region | None, ...]:
    """What one worker needs of every input, exactly; None for nothing of it.

    Args:
        description: the op.
        strategy: one of its strategies.
        workers: how many there are, at most `strategy.workers()`.
        worker: which of them, from 0.
    """
    ranges = {} if strategy.axis is None else {strategy.axis: chunk(strategy.axis.size, workers, worker)}
    return regions(description, description.outputs.values(), ranges)


def written(formula: Formula, axis: Variable) -> Split:
    """How an output is spread whose coordinate is divided."""
    for dimension, (place, size) in enumerate(zip(formula.places, formula.shape, strict=True)):
        if (split := _digit(dimension, place, size, axis)) is not None:
            return split
    raise AssertionError(f"{axis} is no coordinate of {formula.target}")


def _digit(dimension: int, place: Index, size: int, axis: Variable) -> Split | None:
    """The split of a dimension whose index has the axis as one of its factors."""
    factors = digits(place, size)
    if factors is None or axis not in factors:
        return None
    number = factors.index(axis)
    outer = prod(factor.size for factor in factors[:number])
    return Split(dimension, outer, axis.size, prod(factor.size for factor in factors[number + 1 :]))


def _needed(description: Description, operand: Operand, axis: Variable) -> State:
    found: set[Split | None] = set()
    for formula in description.formulas:
        for read in reads(formula.value):
            if read.operand is not operand:
                continue
            here: set[Split | None] = set()
            for dimension, (place, size) in enumerate(zip(read.places, operand.shape, strict=True)):
                if place is None or all(variable is not axis for variable, _ in place.terms):
                    continue
                here.add(_digit(dimension, place, size, axis) or Split(dimension, 1, size, 1, halo=True))
            found |= here if len(here) == 1 else {None}  # a diagonal is not followed
    if not found:
        return Unread()
    if None in found:
        return Replicated()
    splits = {split for split in found if split is not None}
    if len(splits) == 1:
        return splits.pop()
    dimensions = {split.dimension for split in splits}
    if len(dimensions) > 1 or any(split.outer > 1 or split.inner > 1 for split in splits):
        return Replicated()
    dimension = dimensions.pop()
    return Split(dimension, 1, operand.shape[dimension], 1, halo=True)


def _moves_a_window(description: Description, axis: Variable) -> bool:
    """Whether an index contains the axis as the lesser part of a sum that is not made of factors."""
    for formula in description.formulas:
        for read in reads(formula.value):
            for place, size in zip(read.places, read.operand.shape, strict=True):
                if place is None or digits(place, size) is not None:
                    continue
                spans = {variable: abs(factor) * (variable.size - 1) for variable, factor in place.terms}
                if axis in spans and any(span > spans[axis] for other, span in spans.items() if other is not axis):
                    return True
    return False


def _is_strided(description: Description, axis: Variable) -> bool:
    for formula in description.formulas:
        for read in reads(formula.value):
            for place, size in zip(read.places, read.operand.shape, strict=True):
                if place is not None and any(v is axis for v, _ in place.terms) and digits(place, size) is None:
                    return False
    return True


def _linear_strategies(description: Description) -> list[Strategy]:
    """The sets of inputs in which all outputs are linear together: their partial sums may stay partial."""
    stages = {stage.operand: stage for stage in description.stages if stage.operand is not None}
    made = [number for number, shape in enumerate(description.shapes) if shape is not None]
    if not made or any(number not in description.outputs for number in made):
        return []
    terms: set[Monomial] = set()
    for number in made:
        found = monomials(description.outputs[number].value, stages)
        if not found:
            return []
        terms |= found
    candidates = [[operand for operand, degree in term if degree == 1] for term in terms]
    if prod(len(candidate) for candidate in candidates) > _MOST_CHOICES:
        return []
    sets = {frozenset(choice) for choice in product(*candidates)}
    fitting = [chosen for chosen in sets if all(sum(d for o, d in term if o in chosen) == 1 for term in terms)]
    read = {read.operand for formula in description.formulas for read in reads(formula.value)}
    outputs = tuple(None if shape is None else Partial(Reduction.SUM) for shape in description.shapes)
    result = [
        tuple(
            Partial(Reduction.SUM) if operand in chosen else Replicated() if operand in read else Unread()
            for operand in description.inputs
        )
        for chosen in fitting
    ]
    return [Strategy(None, inputs, outputs) for inputs in sorted(result, key=str)]
