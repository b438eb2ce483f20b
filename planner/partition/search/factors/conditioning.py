"""A low sum of costs where too many variables depend on each other: some are fixed, the rest is eliminated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from planner.partition.search.factors.eliminate import CostTable, TooManyCombinationsError, eliminate
from planner.partition.search.factors.min_sum import Costs

#: How often every fixed variable is tried with each of its values.
_SWEEPS = 2
#: Once a variable is fixed, more are until no table of the rest has more numbers.
_QUICK = 200_000


def minimize(choices: Sequence[int], tables: Sequence[CostTable]) -> tuple[float, list[int]]:
    """Choose the value of every variable so that the sum of all tables is least, or low where that takes too long.

    Variables that stand in the way of elimination are fixed; then each of them in turn is given every other value, and
    what is best is kept.

    Args:
        choices: how many values each variable has, at least 1.
        tables: the costs.

    Returns:
        The sum, and the values for which it is reached.
    """
    fixed: dict[int, int] = {}
    while True:
        try:
            best = _eliminate_rest(choices, tables, fixed)
        except TooManyCombinationsError as error:
            free = (variable for variable in error.variables if variable not in fixed)
            variable = max(free, key=lambda each: (choices[each], -each))
            fixed[variable] = _cheapest_alone(choices[variable], variable, tables)
            continue
        break
    for _ in range(_SWEEPS if fixed else 0):
        before = best[0]
        for variable in fixed:
            for value in range(choices[variable]):
                if value != best[1][variable]:
                    found = _eliminate_rest(choices, tables, {**fixed, variable: value})
                    if found[0] < best[0]:
                        best = found
            fixed[variable] = best[1][variable]
        if best[0] == before:
            break
    return best


def _eliminate_rest(
    choices: Sequence[int], tables: Sequence[CostTable], fixed: Mapping[int, int]
) -> tuple[float, list[int]]:
    """The least sum with some variables fixed."""
    if not fixed:
        return eliminate(choices, tables)
    rest = [1 if variable in fixed else count for variable, count in enumerate(choices)]
    known: dict[object, Costs] = {}
    found = []
    for table in tables:
        at = tuple(fixed.get(variable, -1) for variable in table.variables)
        key = id(table.costs), at  # equal tables stay equal
        if key not in known:
            places = tuple(slice(None) if value < 0 else slice(value, value + 1) for value in at)
            known[key] = np.ascontiguousarray(table.costs[places])
        found.append(CostTable(table.variables, known[key]))
    least, values = eliminate(rest, found, _QUICK)
    return least, [fixed.get(variable, value) for variable, value in enumerate(values)]


def _cheapest_alone(count: int, variable: int, tables: Sequence[CostTable]) -> int:
    """The value of a variable with the least sum of tables if all others were as each table likes best."""
    total = np.zeros(count)
    for table in tables:
        if variable in table.variables:
            place = table.variables.index(variable)
            others = tuple(axis for axis in range(table.costs.ndim) if axis != place)
            total += table.costs.min(others) if others else table.costs
    return int(total.argmin())
