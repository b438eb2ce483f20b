"""The elimination of one variable: the least sum of tables over its values, and the value it is reached for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from planner.jit import kernel
from planner.partition.search.factors.min_sum import Costs

Ints = NDArray[np.int64]
#: No more entries are gone through at a time, so that they stay near the processor.
_LONGEST_ROW = 4096


@dataclass(frozen=True, eq=False)
class LeastOf:
    """The least of several costs as a function of some variables, of which each may depend on fewer.

    Args:
        variables: all of them, in ascending order.
        costs: the costs, with one dimension for each variable, of size 1 where they do not depend on it.
    """

    variables: tuple[int, ...]
    costs: tuple[Costs, ...]

    def times(self, count: int) -> LeastOf:
        """The cost of as many."""
        return self if count == 1 else LeastOf(self.variables, tuple(each * count for each in self.costs))

    def whole(self, choices: Sequence[int]) -> Costs:
        """The costs as one table.

        Args:
            choices: how many values each variable has, whether or not anything depends on it.
        """
        sizes = [choices[variable] for variable in self.variables]
        return np.broadcast_to(reduce(np.minimum, self.costs), sizes)


class Scratch:
    """Memory for one elimination, which is used again for the next."""

    def __init__(self) -> None:
        self._memory, self._total = np.empty(0), np.empty(0)

    def total(self, costs: Sequence[Costs]) -> Costs:
        """The sum of tables of one shape; overwritten by the next call."""
        first = np.ascontiguousarray(costs[0])
        if len(costs) == 1:
            return first
        if len(self._total) < first.size:
            self._total = np.empty(first.size)
        total = np.add(first, costs[1], out=self._total[: first.size].reshape(first.shape))
        for more in costs[2:]:
            total += more
        return total

    def filled(self, parts: Sequence[Costs]) -> Costs:
        """All numbers of some arrays in their order, one array after another; overwritten by the next call."""
        size = sum(part.size for part in parts)
        if len(self._memory) < size:
            self._memory = np.empty(size)
        first = 0
        for part in parts:
            self._memory[first : first + part.size].reshape(part.shape)[...] = part
            first += part.size
        return self._memory


def least_over(
    variable: int, rest: tuple[int, ...], terms: Sequence[LeastOf], choices: Sequence[int], scratch: Scratch
) -> tuple[Costs, NDArray[np.int16]]:
    """The least sum of terms over a variable, by the values of the rest, and the value it is reached for.

    What a term of several costs is at all values of its variables is never written down: it can have a hundred times as
    many entries as they have.

    Args:
        variable: which is eliminated.
        rest: all other variables that the terms depend on, in ascending order.
        terms: what is summed up; each depends on the variable.
        choices: how many values each variable has.
        scratch: memory to use.
    """
    tables = [term for term in terms if len(term.costs) == 1 and term.costs[0].size == _size(term.variables, choices)]
    around = max((term.variables for term in tables), key=lambda own: _size(own, choices), default=())
    # tables of the largest scope are read where they are
    large = scratch.total([term.costs[0] for term in tables if term.variables == around] or [np.zeros(1)])
    in_large = _strides(large.shape, around) if around else {}
    others = [term for term in terms if term.variables != around or term not in tables]
    order = _order(rest, choices, in_large)
    last = order[-1] if order else None
    varying = [any(_varies(costs, term.variables, last) for costs in term.costs) for term in others]
    parts, strides, steps, ends = list[Costs](), list[list[int]](), list[int](), list[int]()
    for place in np.argsort(varying, kind="stable"):
        term = others[place]
        own = [other for other in (variable, *order) if other in term.variables]
        axes = [term.variables.index(other) for other in own]
        for costs in sorted(term.costs, key=lambda each: _varies(each, term.variables, last)):
            parts.append(costs.transpose(axes))
            step = _strides(parts[-1].shape, own)
            strides.append([step.get(other, 0) for other in order])
            steps.append(step[variable])
        ends.append(len(parts))
    strides.append([in_large.get(other, 0) for other in order])
    shape, joined = _joined([choices[other] for other in order], np.array(strides, np.int64).reshape(len(strides), -1))
    starts = np.cumsum([0, *(part.size for part in parts)])[:-1]
    least, best = np.empty(prod(shape)), np.empty(prod(shape), np.int16)
    _eliminate(
        scratch.filled(parts), starts, joined[:-1], np.array(steps, np.int64), np.array(ends, np.int64),
        len(others) - sum(varying), large.ravel(), joined[-1], in_large.get(variable, 0),
        np.array(shape, np.int64), choices[variable], least, best,
    )  # fmt: skip
    back = [order.index(other) for other in rest]
    sizes = [choices[other] for other in order]
    return np.asarray(least.reshape(sizes).transpose(back), order="C"), best.reshape(sizes).transpose(back)


def _order(rest: Sequence[int], choices: Sequence[int], in_large: Mapping[int, int]) -> list[int]:
    """The order in which values are gone through: the one with the most values last, since it is quick to go through.

    Of several with as many, that comes last which is nearest in the largest table.
    """
    last = max(rest, key=lambda other: (choices[other], -in_large.get(other, 0), other), default=None)
    return sorted(rest, key=lambda other: (other == last, other))


def _joined(shape: list[int], strides: Ints) -> tuple[list[int], Ints]:
    """The same entries by fewer dimensions: those that nothing tells apart are gone through as one.

    Args:
        shape: how many values each dimension has.
        strides: per array, and dimension, how many entries the next value is further on.

    Returns:
        The same for what is left, at least one dimension.
    """
    if not shape:
        return [1], np.zeros((len(strides), 1), np.int64)
    sizes, columns = [shape[-1]], [strides[:, -1]]
    for size, column in zip(reversed(shape[:-1]), strides.T[-2::-1], strict=True):
        inner = sizes[-1]
        if (column == columns[-1] * inner).all() and (len(sizes) > 1 or size * inner <= _LONGEST_ROW):
            sizes[-1] *= size
        else:
            sizes.append(size)
            columns.append(column)
    return sizes[::-1], np.ascontiguousarray(np.stack(columns[::-1], 1))


def _size(variables: Sequence[int], choices: Sequence[int]) -> int:
    return prod(choices[variable] for variable in variables)


def _varies(costs: Costs, variables: tuple[int, ...], other: int | None) -> bool:
    """Whether costs depend on a variable."""
    return other in variables and costs.shape[variables.index(other)] > 1


def _strides(shape: Sequence[int], variables: Sequence[int]) -> dict[int, int]:
    """By how many entries the next value of a variable is further on; 0 where nothing depends on it."""
    found, wide = dict[int, int](), 1
    for variable, size in zip(reversed(variables), reversed(shape), strict=True):
        found[variable] = wide if size > 1 else 0
        wide *= size
    return found


@kernel
def _eliminate(
    memory: Costs, starts: Ints, strides: Ints, steps: Ints, ends: Ints, still: int, large: Costs, large_strides: Ints,
    large_step: int, shape: Ints, count: int, least: Costs, best: NDArray[np.int16],
) -> None:  # fmt: skip
    """Sum terms and take the least over a variable; the first `still` terms do not depend on the last of the rest.

    The parts of a term, of which the least counts, end before `ends` of it; those come first that do not depend on the
    last of the rest.
    """
    dimensions = len(shape)
    last, large_last = shape[dimensions - 1], large_strides[dimensions - 1]
    at = starts.copy()
    large_at = 0
    index = np.zeros(dimensions, np.int64)
    total, here = np.empty(last), np.empty(last)
    for row in range(least.shape[0] // last):
        low_row, best_row = least[row * last : (row + 1) * last], best[row * last : (row + 1) * last]
        for value in range(count):
            low, part = 0.0, 0
            for term in range(still):
                cheapest = np.inf
                while part < ends[term]:
                    cheapest = min(cheapest, memory[at[part] + value * steps[part]])
                    part += 1
                low += cheapest
            first = large_at + value * large_step
            if large_last == 1:
                given = large[first : first + last]
                for entry in range(last):
                    total[entry] = low + given[entry]
            else:
                for entry in range(last):
                    total[entry] = low + large[first + entry * large_last]
            for term in range(still, len(ends)):
                most = np.inf
                while strides[part, dimensions - 1] == 0:
                    most = min(most, memory[at[part] + value * steps[part]])
                    part += 1
                start = at[part] + value * steps[part]
                given = memory[start : start + last]
                part += 1
                if part == ends[term]:
                    for entry in range(last):
                        total[entry] += min(most, given[entry])
                    continue
                for entry in range(last):
                    here[entry] = min(most, given[entry])
                while part < ends[term]:
                    start = at[part] + value * steps[part]
                    given = memory[start : start + last]
                    for entry in range(last):
                        here[entry] = min(here[entry], given[entry])
                    part += 1
                for entry in range(last):
                    total[entry] += here[entry]
            if value == 0:
                low_row[:] = total
                best_row[:] = 0
                continue
            for entry in range(last):
                if total[entry] < low_row[entry]:
                    low_row[entry] = total[entry]
                    best_row[entry] = value
        for dimension in range(dimensions - 2, -1, -1):
            index[dimension] += 1
            for part in range(len(starts)):
                at[part] += strides[part, dimension]
            large_at += large_strides[dimension]
            if index[dimension] < shape[dimension]:
                break
            for part in range(len(starts)):
                at[part] -= strides[part, dimension] * shape[dimension]
            large_at -= large_strides[dimension] * shape[dimension]
            index[dimension] = 0
