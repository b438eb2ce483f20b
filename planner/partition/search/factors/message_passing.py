"""The loops of message passing: costs are moved from factors to a variable and on to the factors that come later.

Rows of tables are taken as arrays: an index that is a sum could be negative, so that such loops are not vectorized.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.jit import kernel

Costs = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel
def start_least(table: Costs, start: Ints, ways: Ints, values: Ints, least_at: Ints, least: Costs) -> None:
    """Work out the least costs of every leg by way."""
    for leg in range(start.shape[0]):
        for way in range(ways[leg]):
            row = start[leg] + way * values[leg]
            low = table[row]
            for value in range(1, values[leg]):
                low = min(low, table[row + value])
            least[least_at[leg] + way] = low


@kernel
def sweep(
    table: Costs, start: Ints, ways: Ints, values: Ints, variable: Ints, factor: Ints, legs: Ints, messages_at: Ints,
    least_at: Ints, touching: Ints, touching_start: Ints, order: Ints, rank: Ints, unary_at: Ints, unary: Costs,
    messages: Costs, least: Costs, floor: Costs, backward: bool,
) -> float:  # fmt: skip
    """Visit all variables once; returns the bound."""
    count = order.shape[0]
    rest = np.empty(max(1, int(ways.max()) if ways.shape[0] else 1))
    found = np.empty(max(1, int(values.max()) if values.shape[0] else 1))
    for step in range(count):
        name = order[count - 1 - step] if backward else order[step]
        first, size = unary_at[name], unary_at[name + 1] - unary_at[name]
        here = unary[first : first + size]
        ahead = behind = 0
        for place in range(touching_start[name], touching_start[name + 1]):
            leg = touching[place]
            lower = higher = False
            for other in range(legs[factor[leg]], legs[factor[leg] + 1]):
                if rank[variable[other]] > rank[name]:
                    higher = True
                elif rank[variable[other]] < rank[name]:
                    lower = True
            ahead += lower if backward else higher
            behind += higher if backward else lower
            own = messages[messages_at[leg] : messages_at[leg] + size]
            _min_marginals(table, start, ways, least_at, least, legs, factor, leg, own, rest, found)
            for value in range(size):
                here[value] += found[value]
                own[value] -= found[value]
        low = here[0]
        for value in range(1, size):
            low = min(low, here[value])
        for value in range(size):
            floor[first + value] = here[value] - low
        weight = 1.0 / max(ahead, behind, 1)
        for place in range(touching_start[name], touching_start[name + 1]):
            leg = touching[place]
            own = messages[messages_at[leg] : messages_at[leg] + size]
            on = False
            for other in range(legs[factor[leg]], legs[factor[leg] + 1]):
                there = rank[variable[other]]
                if (there < rank[name]) if backward else (there > rank[name]):
                    on = True
            if on:
                for value in range(size):
                    own[value] += weight * floor[first + value]
                    here[value] -= weight * floor[first + value]
            _refresh(table, start, ways, values, least_at, least, leg, own)
    bound = 0.0
    for name in range(count):
        bound += unary[unary_at[name] : unary_at[name + 1]].min()
    for number in range(legs.shape[0] - 1):
        low = np.inf
        for way in range(ways[legs[number]]):
            total = 0.0
            for leg in range(legs[number], legs[number + 1]):
                total += least[least_at[leg] + way]
            low = min(low, total)
        bound += low
    return bound


@kernel
def decide(
    table: Costs, start: Ints, ways: Ints, values: Ints, factor: Ints, legs: Ints, messages_at: Ints, least_at: Ints,
    touching: Ints, touching_start: Ints, order: Ints, unary_at: Ints, unary: Costs, messages: Costs, least: Costs,
    chosen: Ints,
) -> None:  # fmt: skip
    """Choose a value for every variable, given those chosen before and the messages about the rest."""
    rest = np.empty(max(1, int(ways.max()) if ways.shape[0] else 1))
    found = np.empty(max(1, int(values.max()) if values.shape[0] else 1))
    for name in order:
        first, size = unary_at[name], unary_at[name + 1] - unary_at[name]
        total = unary[first : first + size].copy()
        for place in range(touching_start[name], touching_start[name + 1]):
            leg = touching[place]
            own = messages[messages_at[leg] : messages_at[leg] + size]
            _min_marginals(table, start, ways, least_at, least, legs, factor, leg, own, rest, found)
            for value in range(size):
                total[value] += found[value]
        value = int(total.argmin())
        chosen[name] = value
        for place in range(touching_start[name], touching_start[name + 1]):
            leg = touching[place]
            for way in range(ways[leg]):  # from now on this is what it costs
                cost = table[start[leg] + way * size + value] + messages[messages_at[leg] + value]
                least[least_at[leg] + way] = cost


@kernel
def _min_marginals(
    table: Costs, start: Ints, ways: Ints, least_at: Ints, least: Costs, legs: Ints, factor: Ints, leg: int,
    own: Costs, rest: Costs, found: Costs,
) -> None:  # fmt: skip
    """What a factor costs at least for each value of one variable."""
    size = own.shape[0]
    for way in range(ways[leg]):
        total = 0.0
        for other in range(legs[factor[leg]], legs[factor[leg] + 1]):
            if other != leg:
                total += least[least_at[other] + way]
        rest[way] = total
    for value in range(size):
        found[value] = np.inf
    for way in range(ways[leg]):
        first = start[leg] + way * size
        row, base = table[first : first + size], rest[way]
        for value in range(size):
            found[value] = min(found[value], base + row[value])
    for value in range(size):
        found[value] += own[value]


@kernel
def _refresh(
    table: Costs, start: Ints, ways: Ints, values: Ints, least_at: Ints, least: Costs, leg: int, own: Costs
) -> None:
    """Work out the least costs of a leg by way anew."""
    size = values[leg]
    for way in range(ways[leg]):
        first = start[leg] + way * size
        row = table[first : first + size]
        low = np.inf
        for value in range(size):
            low = min(low, row[value] + own[value])
        least[least_at[leg] + way] = low
