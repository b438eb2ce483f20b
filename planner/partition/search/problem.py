"""The choice of a sequence for every group and op as one sum of cost tables."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from math import inf, prod
from typing import NamedTuple

import numpy as np

from planner.partition.coarse import CoarseGraph, Fetch, GroupsAndOps, Option
from planner.partition.search.choices.domains import Domains, Sequences, group_options, members_by_labels
from planner.partition.search.choices.partitioning import LevelChoice, Partitioning
from planner.partition.search.choices.rules import SearchRules
from planner.partition.search.costs.evaluate import bytes_by_level
from planner.partition.search.costs.op_costs import OpCosts, Rows
from planner.partition.search.costs.shared_fetches import SharedFetches, shared_fetches
from planner.partition.search.costs.slot_costs import SlotCosts
from planner.partition.search.factors.conditioning import minimize
from planner.partition.search.factors.dual_bound import StarFactor
from planner.partition.search.factors.eliminate import CostTable, Eliminated, Scope, Work, elimination_work
from planner.partition.search.factors.elimination_step import LeastOf
from planner.partition.search.factors.min_sum import Costs
from planner.partition.search.factors.repeats import find_repeats
from planner.partition.search.factors.star_sum import Reduced, StarSum, reduced, table_star


@dataclass(frozen=True, eq=False)
class Choice:
    """What is chosen, by number.

    Args:
        stored: per group, its options level by level.
        ways: per merged op, its variants level by level.
        cost: what it costs.
        moved: bytes that all workers receive at each level; empty as long as they are not counted.
    """

    stored: tuple[tuple[int, ...], ...]
    ways: tuple[tuple[int, ...], ...]
    cost: float
    moved: tuple[float, ...] = ()


class OpWays(NamedTuple):
    """What the ways of a star factor are.

    Args:
        op: the number of the merged op whose cost it is.
        rows: per way, the op's sequence of variants.
    """

    op: int
    rows: Rows


class LevelsProblem:
    """Some levels to be chosen at once.

    Args:
        coarse: the coarse graph.
        rules: what may be chosen and what is made least.
        domains: the options and variants.
        costs: the costs of slots.
        stored: per group, the sequences of options to choose from.
        ways: per merged op, the sequences of variants to choose from.
        fetches: what was `considered` where there was more to choose from; all if not given.
        relaxed: whether its least cost is a lower bound where not every copy that could be shared is considered.
    """

    def __init__(
        self, coarse: GroupsAndOps, rules: SearchRules, domains: Domains, costs: SlotCosts,
        stored: Sequence[Sequences], ways: Sequence[Sequences], fetches: Sequence[Fetch] | None = None,
        *, relaxed: bool = False,
    ) -> None:  # fmt: skip
        """Find the copies that could be shared; tables are made when they are needed."""
        self._coarse, self._rules, self._domains = coarse, rules, domains
        self._stored, self._ways = stored, ways
        self._sizes = [len(each) for each in stored]
        self._costs = OpCosts(coarse, domains, costs, stored, ways)
        self._fetches: SharedFetches = shared_fetches(coarse, self._costs, self._sizes, fetches, relaxed=relaxed)
        self._given = [*self._fetches.tables, *self._storage()]
        sizes, scopes = [*self._sizes, *self._fetches.sizes], self._scopes()
        self._repeats = find_repeats(sizes, scopes)
        self._counted = [(scopes[term], term, times) for term, times in self._repeats.counted().items()]
        # groups first, then copies; one value if another variable stands for it
        self._choices = [
            size if variable == stands else 1
            for variable, (size, stands) in enumerate(zip(sizes, self._repeats.variables, strict=True))
        ]
        self._cores: dict[float, Reduced] = {}
        self._multiplied: dict[tuple[int, int], tuple[Costs, Costs]] = {}  # which keeps the numbers of arrays taken

    @property
    def variables(self) -> int:
        """How many variables have several values."""
        return sum(size > 1 for size in self._choices)

    @property
    def considered(self) -> Sequence[Fetch]:
        """The fetches for which copies could be worth it."""
        return self._fetches.considered

    @property
    def complete(self) -> bool:
        """Whether its least cost is that of the coarse graph: every copy that could be shared is considered."""
        return self._fetches.complete

    def stands_for_group(self, group: int) -> int:
        """The group whose value a group takes: itself, or its like in a part that is repeated."""
        return self._repeats.variables[group]

    def stands_for_op(self, op: int) -> int:
        """The merged op whose way merged ops take: themselves, or their like in a part that is repeated."""
        return self._repeats.terms[len(self._given) + op] - len(self._given)

    def stars(self) -> tuple[StarSum, dict[int, OpWays]]:
        """The costs as star factors; and whose ways they have, by the number of the factor."""
        terms = [self._star(place) for place in range(len(self._counted))]
        several = [op for star, op in terms if len(star.variables) > 1]
        ops = {number: op for number, op in enumerate(several) if op}
        return StarSum.of(self._choices, [star for star, _ in terms]), ops

    def core(self, most: float) -> Reduced:
        """The costs that are left after variables have been eliminated.

        Args:
            most: no more entries are gone through to eliminate a variable.
        """
        if most not in self._cores:
            done = Eliminated(self._choices, self._counted_scopes(), self._least, most)
            self._cores[most] = reduced(self._choices, done, lambda place: self._star(place)[0])
        return self._cores[most]

    def work(self, most: float = inf) -> Work:
        """What it takes to solve it, or to find the core if no more entries than `most` are gone through at once."""
        return elimination_work(self._choices, self._counted_scopes(), most)

    def solve(self) -> Choice:
        """The least cost, which proves that none is lower; `work` says what that takes."""
        done = Eliminated(self._choices, self._counted_scopes(), self._least, inf)
        return self.choice(done.constant, done.values({}))

    def solve_or_approach(self) -> Choice:
        """The least cost, or a low one, which proves nothing, where the variables depend on each other too much."""
        return self.choice(*minimize(self._choices, self._tables()))

    def choice(self, cost: float, values: Sequence[int]) -> Choice:
        """What values of all variables mean.

        Args:
            cost: what they cost.
            values: of groups, then of copies; what another variable stands for has its value.
        """
        values = [values[stands] for stands in self._repeats.variables]
        known = dict(enumerate(values))
        stored = tuple(tuple(map(int, rows[value])) for rows, value in zip(self._stored, values, strict=False))
        ways = []
        for number, (counts, shared) in enumerate(zip(self._fetches.counts, self._fetches.shared, strict=True)):
            best = self._costs.best(number, counts, shared, known)
            ways.append(tuple(map(int, self._ways[number][best])))
        return Choice(stored, tuple(ways), cost)

    def _scopes(self) -> list[Scope]:
        """The variables of every term, and a key that equal terms have in common: first tables, then ops."""
        found: list[Scope] = [(table.variables, id(table.costs)) for table in self._given]
        for number, (counts, shared) in enumerate(zip(self._fetches.counts, self._fetches.shared, strict=True)):
            found.append((self._costs.scope(number, shared), self._costs.signature(number, counts, shared)))
        return found

    def _counted_scopes(self) -> list[Scope]:
        """The scopes of the terms that count, with keys that tell how often."""
        return [(variables, (key, times)) for (variables, key), _, times in self._counted]

    def _tables(self) -> list[CostTable]:
        """The terms that count; equal ones are one array."""
        known: dict[Hashable, Costs] = {}
        found = []
        for place, (variables, key) in enumerate(self._counted_scopes()):
            if key not in known:
                known[key] = self._least(place).whole(self._choices)
            found.append(CostTable(variables, known[key]))
        return found

    def _least(self, place: int) -> LeastOf:
        _, term, times = self._counted[place]
        if (number := term - len(self._given)) < 0:
            return self._given[term].alone().times(times)
        return self._costs.least(number, self._fetches.counts[number], self._fetches.shared[number]).times(times)

    def _star(self, place: int) -> tuple[StarFactor, OpWays | None]:
        _, term, times = self._counted[place]
        if (number := term - len(self._given)) < 0:
            given = self._least(place)
            return table_star(CostTable(given.variables, given.whole(self._choices))), None
        star, rows = self._costs.star(number, self._fetches.counts[number], self._fetches.shared[number])
        parts = tuple(self._multiply(part, times) for part in star.parts)
        return StarFactor(star.variables, parts), OpWays(number, rows)

    def _multiply(self, costs: Costs, times: int) -> Costs:
        """Costs of what is repeated; the same array for the same costs."""
        if times == 1:
            return costs
        key = id(costs), times
        if key not in self._multiplied:
            self._multiplied[key] = costs, costs * times
        return self._multiplied[key][1]

    def _storage(self) -> list[CostTable]:
        """What every group costs that a worker stores; levels that are not known yet are taken to split it."""
        price, found, known = self._rules.replicate, [], dict[Hashable, Costs]()
        if price is None:
            return []
        for group, rows in enumerate(self._stored):
            rest = prod(self._rules.mesh[rows.shape[1] :])
            costs = np.zeros(len(rows))
            for number, row in enumerate(rows):
                chosen = [self._domains.options[group][place] for place in row]
                costs[number] = price * stored_bytes(self._coarse, self._rules.mesh, group, chosen) / rest
            split = len(rows) > 1
            alike = known.setdefault((split, costs.tobytes()), costs if split else costs.sum())
            found.append(CostTable((group,) if split else (), alike))
        return found


def stored_bytes(coarse: GroupsAndOps, mesh: Sequence[int], group: int, chosen: Sequence[Option]) -> float:
    """Bytes that one worker stores of a group and of those that it stands for, by its options level by level."""
    found = 0.0
    for labels, size in members_by_labels(coarse, group).items():
        pairs = zip(mesh, chosen, strict=False)
        found += size / prod(workers for workers, option in pairs if option in labels)
    return found * coarse.times[group]


def costing(coarse: GroupsAndOps, rules: SearchRules, domains: Domains, chosen: Choice) -> Choice:
    """A choice with the cost of its partition, which is what it is, whatever a search took it to be.

    Args:
        coarse: the groups and ops.
        rules: what is made least.
        domains: the options.
        chosen: the choice.
    """
    stored = [
        tuple(options[place] for place in row) for options, row in zip(domains.options, chosen.stored, strict=True)
    ]
    variants = [
        tuple(merged.variants[place] for place in way) for merged, way in zip(coarse.merged, chosen.ways, strict=True)
    ]
    moved = bytes_by_level(coarse, rules.mesh, stored, variants)
    cost = sum(weight * here for weight, here in zip(rules.weights, moved, strict=True))
    if rules.replicate is not None:
        whole = sum(stored_bytes(coarse, rules.mesh, group, row) for group, row in enumerate(stored))
        cost += rules.replicate * whole
    return replace(chosen, cost=cost, moved=moved)


def partitioning(coarse: CoarseGraph, rules: SearchRules, chosen: Choice, bound: float | None = None) -> Partitioning:
    """A choice for all levels as a partition.

    Args:
        coarse: the coarse graph.
        rules: what is made least.
        chosen: the choice, with its cost.
        bound: no choice costs less.
    """
    options = [group_options(coarse, group) for group in range(len(coarse.groups))]
    levels = []
    for level, (workers, moved) in enumerate(zip(rules.mesh, chosen.moved, strict=True)):
        labels = tuple(own[row[level]] for own, row in zip(options, chosen.stored, strict=True))
        ways = zip(coarse.merged, chosen.ways, strict=True)
        levels.append(LevelChoice(workers, labels, tuple(merged.variants[way[level]] for merged, way in ways), moved))
    return Partitioning(coarse, tuple(levels), chosen.cost, bound)
