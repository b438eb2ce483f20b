"""What a division of an op means: what each worker needs of every input, and what it leaves of every output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from planner.partition.op_strategies import SplittableOp
from planner.partition.plan.partition_plan import AxisDivision, Division, LinearDivision
from planner.partition.plan.validator.index_sets import (
    Mask,
    Progressions,
    attained_places,
    interval,
    of_whole_factors,
    part_of_dimension,
    part_of_range,
    united,
)
from planner.partition.plan.validator.partitioned_formulas import (
    count_reads,
    divided,
    formula_reads,
    is_linear,
    reached,
    used_elsewhere,
)
from planner.partition.strategy import Partial, Replicated, Split, State, Unread
from planner.partition.tdl import Formula, Operand, Read, Reduction, Variable

_SUM = Partial(Reduction.SUM)
#: Per worker the needed indices of each dimension; None for a worker that needs nothing.
Boxes = tuple[tuple[Mask, ...] | None, ...]


@dataclass(frozen=True, eq=False)
class OpShare:
    """What one division of an op means for a number of workers.

    Args:
        problem: why it is not possible; empty if it is.
        wants: per input of the op, the state in which it is needed.
        gives: per output of the op, the state in which it is left.
        boxes: by place of an input with a halo, what exactly each worker needs of it.
        reduced: name and number of values of the stages that workers combine while the op runs.
        cut_stages: the stages of which each worker has a part.
    """

    problem: str
    wants: tuple[State, ...] = ()
    gives: tuple[State, ...] = ()
    boxes: Mapping[int, Boxes] | None = None
    reduced: tuple[tuple[str, int], ...] = ()
    cut_stages: frozenset[str] = frozenset()


def share_of(op: SplittableOp, division: Division, workers: int) -> OpShare:
    """What a division means for so many workers.

    Args:
        op: the op, of which only the description is used.
        division: how it is divided.
        workers: how many there are at the level.
    """
    description = op.description
    read = {operand for formula in reached(description) for operand in _operands(formula)}
    whole = tuple(Replicated() if operand in read else Unread() for operand in description.inputs)
    if division is None:
        return OpShare("", whole, (Replicated(),) * len(op.outputs))
    if isinstance(division, LinearDivision):
        return _linear(op, division, whole)
    return _along_axis(op, division, workers)


def _operands(formula: Formula) -> set[Operand]:
    return {read.operand for read in formula_reads(formula)}


def _linear(op: SplittableOp, division: LinearDivision, whole: tuple[State, ...]) -> OpShare:
    description = op.description
    if not division.inputs or len(set(division.inputs)) < len(division.inputs):
        return OpShare("takes partial sums of no input, or of one twice")
    if any(not 0 <= place < len(description.inputs) for place in division.inputs):
        return OpShare(f"takes partial sums of input {max(division.inputs)}, which it does not have")
    sums = {description.inputs[place] for place in division.inputs}
    stages = {stage.operand: stage for stage in description.stages if stage.operand is not None}
    for number in op.outputs:
        if description.shapes[number] is None:
            continue
        formula = description.outputs.get(number)
        if formula is None or not is_linear(formula.value, sums, stages):
            places = ", ".join(str(place) for place in division.inputs)
            return OpShare(f"takes partial sums of input {places}, but output {number} is not linear in them")
    wants = tuple(_SUM if place in division.inputs else state for place, state in enumerate(whole))
    return OpShare("", wants, tuple(Replicated() if description.shapes[n] is None else _SUM for n in op.outputs))


def _along_axis(op: SplittableOp, division: AxisDivision, workers: int) -> OpShare:
    description = op.description
    axes = [axis for axis in description.axes if axis.name == division.axis]
    if len(axes) != 1:
        return OpShare(f"divides index {division.axis[:40]}, which its description does not have")
    (axis,) = axes
    if division.outer * division.size * division.inner != axis.size:
        factors = f"{division.outer} x {division.size} x {division.inner}"
        return OpShare(f"divides index {axis.name} as {factors}, but it takes {axis.size} values")
    if division.size < workers:
        return OpShare(f"divides {division.size} values of index {axis.name}, so worker 0 of {workers} gets none")
    shape = division.outer, division.size, division.inner
    ranges = [{axis: part_of_range(*shape, workers, worker)} for worker in range(workers)]
    gives: dict[int, State] = {}
    reduced: list[tuple[str, int]] = []
    split_stages: dict[Operand, list[Mask]] = {}
    split_at: dict[Operand, int] = {}
    once: frozenset[Operand] = frozenset()
    once_reads = 0
    formulas = reached(description)
    for formula in formulas:
        for read in formula_reads(formula):
            if read.operand in split_stages and not _is_held(read, split_at, split_stages, ranges):
                return OpShare(f"divides index {axis.name}, but reads of {read.operand.name} what other workers have")
        found = divided(formula.value, axis, split_stages)
        coordinate = axis in formula.variables
        if found.problem or (coordinate and found.reduction) or (found.local and not coordinate):
            why = found.problem or "its values would be different on every worker"
            return OpShare(f"divides index {axis.name}, but for {formula.target} {why}")
        once |= found.once
        once_reads += count_reads(formula.value, found.once)
        if coordinate:
            state: State | None = _written(formula, axis, division, ranges, workers)
            if state is None:
                return OpShare(f"divides index {axis.name}, but {formula.target} is not written in such parts")
        else:
            state = Partial(found.reduction) if found.reduction else Replicated()
        if formula.operand is None:
            gives[int(formula.target.split()[-1])] = state
        elif isinstance(state, Split):
            size = formula.shape[state.dimension]
            written = formula.places[state.dimension]
            split_stages[formula.operand] = [attained_places(written, each, size) for each in ranges]
            split_at[formula.operand] = state.dimension
        elif isinstance(state, Partial):
            reduced.append((formula.target, prod(formula.shape)))
    if wrong := used_elsewhere(description, once, once_reads):
        return OpShare(f"divides index {axis.name}, but only one worker may use {wrong[0].name}, and all need it")
    for number in op.outputs:
        if description.shapes[number] is None:  # it has no elements
            gives[number] = Replicated()
    if any(number not in gives for number in op.outputs):
        return OpShare(f"divides index {axis.name}, but an output has no formula")
    wants: list[State] = []
    boxes: dict[int, Boxes] = {}
    for place, operand in enumerate(description.inputs):
        reads = [read for formula in formulas for read in formula_reads(formula) if read.operand is operand]
        want = _needed(reads, operand, axis, division, ranges, workers)
        if isinstance(want, Split) and want.halo:
            if division.outer > 1 or division.inner > 1:
                return OpShare(f"divides index {axis.name} in strides, but input {place} is not read in whole factors")
            boxes[place] = _boxes(reads, operand, ranges)
        wants.append(want)
    cut = frozenset(f.target for f in description.stages if axis in f.variables)
    return OpShare("", tuple(wants), tuple(gives[n] for n in op.outputs), boxes, tuple(reduced), cut)


def _is_held(
    read: Read, split_at: Mapping[Operand, int], held: Mapping[Operand, list[Mask]],
    ranges: list[dict[Variable, Progressions]],
) -> bool:  # fmt: skip
    """Whether every worker reads of a stage only what it has itself."""
    dimension = split_at[read.operand]
    place = read.places[dimension]
    if place is None:
        return False
    size = read.operand.shape[dimension]
    pairs = zip(ranges, held[read.operand], strict=True)
    return all(not bool((attained_places(place, each, size) & ~own).any()) for each, own in pairs)


def _written(
    formula: Formula, axis: Variable, division: AxisDivision, ranges: list[dict[Variable, Progressions]], workers: int
) -> Split | None:
    for dimension, (place, size) in enumerate(zip(formula.places, formula.shape, strict=True)):
        for variable, coefficient in place.terms:
            if variable is axis:
                masks = [attained_places(place, each, size) for each in ranges]
                return _as_split(formula.shape, dimension, coefficient, division, masks, workers)
    return None


def _as_split(
    shape: tuple[int, ...], dimension: int, coefficient: int, division: AxisDivision, masks: list[Mask], workers: int
) -> Split | None:
    """The split that gives every worker exactly the masked indices of a dimension; None if none does."""
    inner, size = coefficient * division.inner, shape[dimension]
    if inner < 1 or size % (inner * division.size):
        return None
    split = Split(dimension, size // (inner * division.size), division.size, inner)
    parts = (part_of_dimension(shape, split, workers, worker) for worker in range(workers))
    return split if all(np.array_equal(mask, part) for mask, part in zip(masks, parts, strict=True)) else None


def _needed(
    reads: list[Read], operand: Operand, axis: Variable, division: AxisDivision,
    ranges: list[dict[Variable, Progressions]], workers: int,
) -> State:  # fmt: skip
    """The state in which an operand is needed."""
    if not reads:
        return Unread()
    splits: set[Split] = set()
    for read in reads:
        used = [
            (dimension, place, coefficient)
            for dimension, place in enumerate(read.places) if place is not None
            for variable, coefficient in place.terms if variable is axis
        ]  # fmt: skip
        if len(used) != 1:
            return Replicated()
        ((dimension, place, coefficient),) = used
        size = operand.shape[dimension]
        split = None
        if of_whole_factors(place, size):
            masks = [attained_places(place, each, size) for each in ranges]
            split = _as_split(operand.shape, dimension, coefficient, division, masks, workers)
        splits.add(split or Split(dimension, 1, size, 1, halo=True))
    if len(splits) == 1:
        return splits.pop()
    dimensions = {split.dimension for split in splits}
    if len(dimensions) > 1 or any(split.outer > 1 or split.inner > 1 for split in splits):
        return Replicated()
    dimension = dimensions.pop()
    return Split(dimension, 1, operand.shape[dimension], 1, halo=True)


def _boxes(reads: list[Read], operand: Operand, ranges: list[dict[Variable, Progressions]]) -> Boxes:
    """Per worker, the smallest box that has all that it reads."""
    found: list[tuple[Mask, ...] | None] = []
    for each in ranges:
        rows = []
        for read in reads:
            row = []
            for place, size in zip(read.places, operand.shape, strict=True):
                mask = np.ones(size, bool) if place is None else attained_places(place, each, size)
                row.append(mask if place is None or of_whole_factors(place, size) else interval(mask))
            if all(mask.any() for mask in row):
                rows.append(row)
        if not rows:
            found.append(None)
            continue
        united_rows = [united(masks) for masks in zip(*rows, strict=True)]
        found.append(tuple(mask if len(rows) == 1 else interval(mask) for mask in united_rows))
    return tuple(found)
