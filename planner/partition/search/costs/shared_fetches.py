"""Copies that are fetched once for several readers: which states of them could be worth it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from planner.partition.coarse import Fetch, GroupsAndOps
from planner.partition.search.costs.copy_gains import copy_gains
from planner.partition.search.costs.op_costs import OpCosts, SharedInput, Want
from planner.partition.search.factors.eliminate import CostTable
from planner.partition.search.factors.min_sum import Costs

#: As many copies of the same contents are considered; each serves at least two readers.
_MOST_COPIES = 3
#: All copies of the same contents are one variable if it has at most as many values.
_MOST_SETS = 64
#: Gains are worked out exactly for ops with at most as many combinations of ways and of what is around.
_MOST_WORK = 1_000_000
#: The number of a merged op and the place of one of its inputs.
Reader = tuple[int, int]


@dataclass(frozen=True, eq=False)
class SharedFetches:
    """Who fetches what.

    Args:
        counts: per merged op and input, how many contents it pays for alone.
        shared: per merged op, what it may take from copies.
        tables: the cost of copies by the states that they are in and that of the group they are fetched from.
        sizes: of every variable that says which copies there are, how many values it has.
        complete: whether every copy that could be worth it is considered as what it costs.
        considered: the fetches, with those of their readers, for which copies could be worth it.
    """

    counts: list[list[float]]
    shared: list[list[SharedInput]]
    tables: list[CostTable]
    sizes: list[int]
    complete: bool
    considered: Sequence[Fetch]


def shared_fetches(
    coarse: GroupsAndOps, costs: OpCosts, sizes: Sequence[int], fetches: Sequence[Fetch] | None = None,
    *, relaxed: bool = False,
) -> SharedFetches:  # fmt: skip
    """Find the copies that could be worth fetching once for several readers.

    Args:
        coarse: the coarse graph.
        costs: of its ops.
        sizes: per group, how many sequences of options it has.
        fetches: those that were considered where there was more to choose from; what was not worth it there is left
            out, since what is left holds the best choice without it. All if not given.
        relaxed: contents with more readers than copies are considered for cost each reader an equal part of a copy,
            which is a lower bound, since whoever takes a copy is one of them.
    """
    several = [fetch for fetch in (coarse.fetches if fetches is None else fetches) if len(fetch.readers) > 1]
    first_look = _CopyFinder(coarse, costs, _overlapping(several))
    gaining = {reader for family in first_look.families for reader in first_look.worth(family).readers}
    kept = []
    for fetch in several:
        readers = tuple(reader for reader in fetch.readers if reader in gaining)
        if len(readers) > 1:
            kept.append(Fetch(fetch.group, fetch.count, readers))
    families = [family for together in _overlapping(kept) for family in _served_alike(together)]
    finder = _CopyFinder(coarse, costs, families)
    counts = [list[float](total) for total in finder.totals]
    shared: list[list[SharedInput]] = [[] for _ in coarse.merged]
    tables: list[CostTable] = []
    copy_sizes: list[int] = []
    complete = True
    prices_known: dict[Hashable, Costs] = {}
    for family in families:
        found = finder.worth(family)
        used = min(len(found.readers) // 2, _MOST_COPIES)
        if not used:
            continue
        if len(found.readers) >= 2 * _MOST_COPIES + 2:
            complete = False
            if relaxed:
                _share(found, counts)
                continue
        sets = _sets(len(found.prices), used)
        if len(sets) > _MOST_SETS:  # rather several variables, a copy each
            sets = _sets(len(found.prices), 1)
        else:
            used = 1
        first, states = len(coarse.groups) + len(copy_sizes), list(found.prices)
        there = tuple(tuple(states[state] for state in each) for each in sets)
        copies = tuple((copy, there) for copy in range(first, first + used))
        for number, place in found.readers:
            times = sum(fetch.count for fetch in found.fetches if (number, place) in fetch.readers)
            counts[number][place] -= times
            shared[number].append(SharedInput(place, times, copies))
        able = np.stack(list(found.prices.values()), 1)
        columns = np.stack([able[:, list(each)].sum(1) for each in sets], 1)
        columns = prices_known.setdefault((columns.shape, columns.tobytes()), columns)
        group = family[0].group
        split = sizes[group] > 1
        tables += [CostTable((group, copy) if split else (copy,), columns if split else columns[0])
                   for copy, _ in copies]  # fmt: skip
        copy_sizes += [len(sets)] * used
    return SharedFetches(counts, shared, tables, copy_sizes, complete, kept)


def _share(found: _Worth, counts: list[list[float]]) -> None:
    """Let every reader pay for an equal part of what is fetched."""
    for fetch in found.fetches:
        readers = [reader for reader in found.readers if reader in fetch.readers]
        for number, place in readers:
            counts[number][place] -= fetch.count * (1 - 1 / len(readers))


def _sets(states: int, most: int) -> list[tuple[int, ...]]:
    """In which of the states there may be copies at once, at most so many; in none first."""
    return [each for size in range(most + 1) for each in combinations(range(states), size)]


def _overlapping(fetches: Sequence[Fetch]) -> list[list[Fetch]]:
    """Fetches, those together that have readers in common."""
    families: dict[Reader, list[Fetch]] = {}
    for fetch in fetches:
        met = {id(families[reader]): families[reader] for reader in fetch.readers if reader in families}
        joined = [other for family in met.values() for other in family] + [fetch]
        families.update({reader: joined for other in joined for reader in other.readers})
    return list({id(family): family for family in families.values()}.values())


def _served_alike(fetches: Sequence[Fetch]) -> list[list[Fetch]]:
    """Fetches of which every one has a reader of whatever two readers want alike, so that the same copies serve all."""
    left = sorted(fetches, key=lambda fetch: (-len(fetch.readers), -fetch.count, fetch.readers))
    families = []
    while left:
        family = [left[0]]
        rest: list[Fetch] = []
        for fetch in left[1:]:
            together = [*family, fetch]
            readers = {reader for each in together for reader in each.readers}
            fits = len(readers) <= 3 or all(len(readers) - len(each.readers) <= 1 for each in together)
            (family if fits else rest).append(fetch)
        families.append(family)
        left = rest
    return families


@dataclass(frozen=True, eq=False)
class _Worth:
    """What is worth fetching once.

    Args:
        fetches: of which contents.
        readers: for whom.
        prices: in which states, and what that costs by the options of the group.
    """

    fetches: list[Fetch]
    readers: list[Reader]
    prices: dict[Want, Costs]


class _CopyFinder:
    """Finds the states that are worth fetching once; readers that look alike are worked out once."""

    def __init__(self, coarse: GroupsAndOps, costs: OpCosts, families: Sequence[Sequence[Fetch]]) -> None:
        self.families = families
        self.totals = [[0] * len(merged.inputs) for merged in coarse.merged]
        for fetch in coarse.fetches:
            for number, place in fetch.readers:
                self.totals[number][place] += fetch.count
        self._costs = costs
        self._shared = [0] * len(coarse.merged)
        for family in families:
            for number, _ in {reader for fetch in family for reader in fetch.readers}:
                self._shared[number] += 1
        self._gains: dict[Hashable, dict[Want, Costs]] = {}
        self._known: dict[Hashable, tuple[list[int], list[int], dict[Want, Costs]]] = {}

    def worth(self, family: Sequence[Fetch]) -> _Worth:
        """The contents, readers and states for which one fetch for all could cost less."""
        times: dict[Reader, int] = {}
        for fetch in family:
            for reader in fetch.readers:
                times[reader] = times.get(reader, 0) + fetch.count
        readers = sorted(times)
        places = {reader: place for place, reader in enumerate(readers)}
        counts = [times[reader] for reader in readers]
        fetches = tuple((fetch.count, tuple(places[reader] for reader in fetch.readers)) for fetch in family)
        look = tuple(self._look(*reader, count) for reader, count in zip(readers, counts, strict=True)), fetches
        if look not in self._known:
            self._known[look] = self._find_worth(readers, counts, fetches)
        served, taking, prices = self._known[look]
        return _Worth([family[number] for number in served], [readers[place] for place in taking], prices)

    def _find_worth(
        self, readers: Sequence[Reader], counts: Sequence[int], fetches: Sequence[tuple[int, tuple[int, ...]]]
    ) -> tuple[list[int], list[int], dict[Want, Costs]]:
        """The same by number: which of the fetches, for which of the readers, in which states."""
        gains = [self._gain(*reader, count) for reader, count in zip(readers, counts, strict=True)]
        able: dict[Want, list[int]] = {}
        for place, gain in enumerate(gains):
            for want in gain:
                able.setdefault(want, []).append(place)
        prices: dict[Want, Costs] = {}
        taking: set[int] = set()
        for want, found in able.items():
            if len(found) < 2:
                continue
            fetched = sum(count for count, places in fetches if len(set(found).intersection(places)) > 1)
            if not fetched:
                continue
            number, place = readers[found[0]]
            price: Costs = self._costs.slot(number, place)[self._costs.rows(number, place)[want][0]]
            saved = sum((gains[other][want] for other in found[1:]), gains[found[0]][want])
            if (saved > fetched * price * (1 + 1e-12)).any():
                prices[want] = price
                taking |= set(found)
        served = [each for each, (_, places) in enumerate(fetches) if len(taking.intersection(places)) > 1]
        total = sum(fetches[each][0] for each in served)
        return served, sorted(taking), {want: total * price for want, price in prices.items()}

    def _look(self, number: int, place: int, count: int) -> Hashable:
        """What the gains of a reader depend on."""
        return self._costs.signature(number, self.totals[number], ()), place, count, self._shared[number]

    def _gain(self, number: int, place: int, count: int) -> dict[Want, Costs]:
        """By state and option of the group, at most how much cheaper an op is if it has a copy in that state."""
        look = self._look(number, place, count)
        if look not in self._gains:
            self._gains[look] = self._find_gain(number, place, count)
        return self._gains[look]

    def _find_gain(self, number: int, place: int, count: int) -> dict[Want, Costs]:
        costs, totals = self._costs, self.totals[number]
        parts, name = costs.parts(number, totals, place)
        if max(part.max() for part in parts.values()) <= 0:
            return {}
        rows = costs.rows(number, place)
        saved = count * costs.slot(number, place)[[found[0] for found in rows.values()]]
        if self._shared[number] == 1 and costs.work(number) <= _MOST_WORK:
            around = [part for other, part in sorted(parts.items()) if other != name]
            gains, most = copy_gains(around, parts[name], saved, list(rows.values()))
        else:
            rest = [part.max(1) for other, part in parts.items() if other != name]
            gains, most = saved, (parts[name] + np.sum(rest, axis=0)[:, None] if rest else parts[name]).min(0)
        # no copy saves more than it costs to fetch it, or than everything that the op moves
        bounds = np.minimum(np.minimum(gains, saved), most)
        able = bounds.max(1) > 0
        return {want: bound for want, bound, gaining in zip(rows, bounds, able, strict=True) if gaining}
