"""Variable elimination: the exact least sum of costs that each depend on a few variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import prod

import numpy as np
from numpy.typing import NDArray

from planner.errors import StowageError

#: A table of more numbers than this is not made.
_MOST_ENTRIES = 20_000_000


@dataclass(frozen=True, eq=False)
class CostTable:
    """A cost as a function of some variables.

    Args:
        variables: which, in ascending order.
        costs: the cost by their values, one dimension for each.
    """

    variables: tuple[int, ...]
    costs: NDArray[np.float64]


def eliminate(choices: Sequence[int], tables: Sequence[CostTable]) -> tuple[float, list[int]]:
    """Choose the value of every variable so that the sum of all tables is least.

    Args:
        choices: how many values each variable has, at least 1.
        tables: the costs.

    Returns:
        The least sum, and the values for which it is reached.

    Raises:
        StowageError: the variables depend on each other too much.
    """
    alive = dict(enumerate(tables))
    using: list[set[int]] = [set() for _ in choices]
    for number, table in alive.items():
        for variable in table.variables:
            using[variable].add(number)
    total = sum(float(table.costs) for table in tables if not table.variables)

    def scope(variable: int) -> tuple[int, ...]:
        return tuple(sorted({variable}.union(*(alive[number].variables for number in using[variable]))))

    def entries(variable: int) -> int:
        return prod(choices[other] for other in scope(variable))

    changes = [0] * len(choices)
    queue = [(entries(variable), variable, 0) for variable in range(len(choices))]
    heapify(queue)
    decisions: list[tuple[int, tuple[int, ...], NDArray[np.intp]]] = []
    gone: set[int] = set()
    while queue:
        size, variable, seen = heappop(queue)
        if variable in gone or seen != changes[variable]:
            continue
        gone.add(variable)
        around = scope(variable)
        if size > _MOST_ENTRIES:
            raise StowageError(f"{len(around)} groups of tensors depend on each other: {size:,} combinations")
        costs = np.zeros([choices[other] for other in around])
        for number in list(using[variable]):
            table = alive.pop(number)
            costs += table.costs.reshape([choices[o] if o in table.variables else 1 for o in around])
            for other in table.variables:
                using[other].discard(number)
        place = around.index(variable)
        rest = around[:place] + around[place + 1 :]
        decisions.append((variable, rest, costs.argmin(place)))
        least = costs.min(place)
        if not rest:
            total += float(least)
            continue
        number = len(tables) + len(decisions)
        alive[number] = CostTable(rest, least)
        for other in rest:
            using[other].add(number)
        for other in rest:
            changes[other] += 1
            heappush(queue, (entries(other), other, changes[other]))
    values = [0] * len(choices)
    for variable, rest, best in reversed(decisions):
        values[variable] = int(best[tuple(values[other] for other in rest)])
    return total, values
