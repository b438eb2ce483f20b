"""Interval analysis: which region of which input a chunk of the output needs. Workers are not known here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from planner.partition.tdl.description import Description, Formula
from planner.partition.tdl.expression import Operand, Read, reads
from planner.partition.tdl.index import Variable, digits
from planner.partition.tdl.interval import Range, attained


@dataclass(frozen=True, slots=True)
class Digit:
    """One factor of a dimension: of its `size` values, those from `start` to below `stop` are needed."""

    size: int
    start: int
    stop: int

    @property
    def whole(self) -> bool:
        """Whether all values are needed."""
        return self.start == 0 and self.stop == self.size


#: What is needed of a dimension: a product of intervals, one per factor, the outermost first.
Extent = tuple[Digit, ...]


@dataclass(frozen=True, slots=True)
class Region:
    """What is needed of a tensor, as an extent per dimension.

    A dimension with one factor is needed from `start` to below `stop`; with several it is seen in that shape, so
    `(Digit(4, 0, 4), Digit(512, 0, 256))` is the first half of each quarter.
    """

    extents: tuple[Extent, ...]

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return prod(digit.stop - digit.start for extent in self.extents for digit in extent)

    @property
    def whole(self) -> bool:
        """Whether it is all of the tensor."""
        return all(digit.whole for extent in self.extents for digit in extent)


def regions(
    description: Description, formulas: Iterable[Formula], ranges: Mapping[Variable, Range]
) -> tuple[Region | None, ...]:
    """What some outputs, restricted to a chunk, need of every input.

    Args:
        description: the op.
        formulas: the outputs (or stages) of which the chunk is a part.
        ranges: by index variable the values that it is restricted to: coordinates of the outputs, and variables of
            reductions for a partial result. Others take all their values.

    Returns:
        Per input the smallest region (a box) that contains all elements read, or None if it is not read.
    """
    stages = {stage.operand: stage for stage in description.stages}
    found: dict[Operand, list[Region]] = {}
    waiting = list(formulas)
    done: set[int] = set()
    while waiting:
        formula = waiting.pop()
        if id(formula) in done:
            continue
        done.add(id(formula))
        for read in reads(formula.value):
            if read.operand in stages:
                waiting.append(stages[read.operand])
            elif (region := read_region(read, ranges)) is not None:
                found.setdefault(read.operand, []).append(region)
    return tuple(_hull(operand, found[operand]) if operand in found else None for operand in description.inputs)


def chunk_ranges(formula: Formula, chunk: tuple[Range, ...]) -> dict[Variable, Range]:
    """The ranges of an output's coordinates that cover a box of it, given as a range of indices per dimension."""
    ranges: dict[Variable, Range] = {}
    for place, size, interval in zip(formula.places, formula.shape, chunk, strict=True):
        inner = size
        start, stop = interval
        for variable in digits(place, size) or ():
            inner //= variable.size
            first, last = start // inner, (stop - 1) // inner
            ranges[variable] = (first, last + 1)
            if first != last:
                break  # more than one of the outer values: all of the inner ones
            start, stop = start - first * inner, stop - first * inner
    return ranges


def read_region(read: Read, ranges: Mapping[Variable, Range]) -> Region | None:
    """The region of one read, or None if every element is outside of the tensor."""
    extents: list[Extent] = []
    for place, size in zip(read.places, read.operand.shape, strict=True):
        if place is None:
            extents.append((Digit(size, 0, size),))
        elif (factors := digits(place, size)) is not None:
            extents.append(tuple(Digit(factor.size, *ranges.get(factor, (0, factor.size))) for factor in factors))
        else:
            first, last = attained(place, ranges, size if read.padding is not None else None)
            if last < first:
                return None
            extents.append((Digit(size, first, last + 1),))
    return Region(tuple(extents))


def _hull(operand: Operand, parts: list[Region]) -> Region:
    return Region(
        tuple(
            _extent_hull(size, [part.extents[dimension] for part in parts])
            for dimension, size in enumerate(operand.shape)
        )
    )


def _extent_hull(size: int, extents: list[Extent]) -> Extent:
    factors = {tuple(digit.size for digit in extent) for extent in extents}
    if len(factors) > 1:  # seen in different shapes: from the first to the last element of any
        extents = [(_flat(size, extent),) for extent in extents]
    return tuple(
        Digit(column[0].size, min(digit.start for digit in column), max(digit.stop for digit in column))
        for column in zip(*extents, strict=True)
    )


def _flat(size: int, extent: Extent) -> Digit:
    first = last = 0
    for digit in extent:
        first, last = first * digit.size + digit.start, last * digit.size + digit.stop - 1
    return Digit(size, first, last + 1)
