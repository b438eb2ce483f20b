"""The choice of a sequence for every group and op as one sum of cost tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from planner.partition.coarse import CoarseGraph, Fetch
from planner.partition.search.choices.domains import Domains, Sequences
from planner.partition.search.choices.partitioning import LevelChoice, Partitioning
from planner.partition.search.choices.rules import SearchRules
from planner.partition.search.costs.evaluate import evaluate
from planner.partition.search.costs.op_costs import OpCosts, Rows
from planner.partition.search.costs.shared_fetches import SharedFetches, shared_fetches
from planner.partition.search.costs.slot_costs import SlotCosts
from planner.partition.search.factors.conditioning import minimize
from planner.partition.search.factors.dual_bound import StarFactor
from planner.partition.search.factors.eliminate import CostTable, Eliminated, Scope, Work, eliminate, elimination_work
from planner.partition.search.factors.star_sum import Reduced, StarSum, reduced, table_star


@dataclass(frozen=True, eq=False)
class Choice:
    """What is chosen, by number.

    Args:
        stored: per group, its options level by level.
        ways: per merged op, its variants level by level.
        cost: what it costs.
    """

    stored: tuple[tuple[int, ...], ...]
    ways: tuple[tuple[int, ...], ...]
    cost: float


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
    """

    def __init__(
        self, coarse: CoarseGraph, rules: SearchRules, domains: Domains, costs: SlotCosts,
        stored: Sequence[Sequences], ways: Sequence[Sequences], fetches: Sequence[Fetch] | None = None,
    ) -> None:  # fmt: skip
        """Find the copies that could be shared; tables are made when they are needed."""
        self._coarse, self._rules, self._domains = coarse, rules, domains
        self._stored, self._ways = stored, ways
        self._sizes = [len(each) for each in stored]
        self._costs = OpCosts(coarse, domains, costs, stored, ways)
        self._fetches: SharedFetches = shared_fetches(coarse, self._costs, self._sizes, fetches)
        self._given = [*self._fetches.tables, *self._storage()]

    @property
    def considered(self) -> Sequence[Fetch]:
        """The fetches for which copies could be worth it."""
        return self._fetches.considered

    @property
    def complete(self) -> bool:
        """Whether its least cost is that of the coarse graph: every copy that could be shared is considered."""
        return self._fetches.complete

    def choices(self) -> list[int]:
        """How many values every variable has: groups first, then copies."""
        return [*self._sizes, *self._fetches.sizes]

    def stars(self) -> tuple[StarSum, dict[int, OpWays]]:
        """The costs as star factors; and whose ways they have, by the number of the factor."""
        terms = [self._star(term) for term in range(len(self._given) + len(self._fetches.counts))]
        several = [op for star, op in terms if len(star.variables) > 1]
        ops = {number: op for number, op in enumerate(several) if op}
        return StarSum.of(self.choices(), [star for star, _ in terms]), ops

    def core(self, most: float) -> Reduced:
        """The costs that are left after variables have been eliminated.

        Args:
            most: no more entries are gone through to eliminate a variable.
        """
        choices = self.choices()
        done = Eliminated(choices, self._scopes(), lambda term: self._table(term).costs, most)
        return reduced(choices, done, lambda term: self._star(term)[0])

    def work(self) -> Work:
        """What it takes to solve it."""
        return elimination_work(self.choices(), self._scopes())

    def solve(self) -> Choice:
        """The least cost, which proves that none is lower.

        Raises:
            TooManyCombinationsError: the variables depend on each other too much.
        """
        return self.choice(*eliminate(self.choices(), self._tables()))

    def solve_or_approach(self) -> Choice:
        """The least cost, or a low one, which proves nothing, where the variables depend on each other too much."""
        return self.choice(*minimize(self.choices(), self._tables()))

    def choice(self, cost: float, values: Sequence[int]) -> Choice:
        """What values of all variables mean.

        Args:
            cost: what they cost.
            values: of groups, then of copies.
        """
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

    def _tables(self) -> list[CostTable]:
        return [self._table(term) for term in range(len(self._given) + len(self._fetches.counts))]

    def _table(self, term: int) -> CostTable:
        if (number := term - len(self._given)) < 0:
            return self._given[term]
        return self._costs.table(number, self._fetches.counts[number], self._fetches.shared[number])

    def _star(self, term: int) -> tuple[StarFactor, OpWays | None]:
        if (number := term - len(self._given)) < 0:
            return table_star(self._given[term]), None
        star, rows = self._costs.star(number, self._fetches.counts[number], self._fetches.shared[number])
        return star, OpWays(number, rows)

    def _storage(self) -> list[CostTable]:
        """What every group costs that a worker stores; levels that are not known yet are taken to split it."""
        price, found = self._rules.replicate, []
        if price is None:
            return []
        for group, rows in enumerate(self._stored):
            rest = prod(self._rules.mesh[rows.shape[1] :])
            costs = np.zeros(len(rows))
            members = _members(self._coarse, group)
            for number, row in enumerate(rows):
                chosen = [self._domains.options[group][place] for place in row]
                for labels, size in members.items():
                    pairs = zip(self._rules.mesh, chosen, strict=False)
                    parts = prod(workers for workers, option in pairs if option in labels)
                    costs[number] += price * size / parts / rest
            split = len(rows) > 1
            found.append(CostTable((group,) if split else (), costs if split else costs.sum()))
        return found


def _members(coarse: CoarseGraph, group: int) -> dict[frozenset[int], int]:
    """By the labels of its members, how many bytes they have."""
    found: dict[frozenset[int], int] = {}
    for tensor, labels in coarse.groups[group].members.items():
        own = frozenset(labels.values())
        found[own] = found.get(own, 0) + coarse.sizes[tensor]
    return found


def partitioning(
    coarse: CoarseGraph, rules: SearchRules, domains: Domains, chosen: Choice, bound: float | None = None
) -> Partitioning:
    """A choice for all levels as a partition.

    Args:
        coarse: the coarse graph.
        rules: what is made least.
        domains: the options.
        chosen: the choice.
        bound: no choice costs less.
    """
    levels = []
    for level, workers in enumerate(rules.mesh):
        labels = tuple(options[row[level]] for options, row in zip(domains.options, chosen.stored, strict=True))
        ways = zip(coarse.merged, chosen.ways, strict=True)
        levels.append(LevelChoice(workers, labels, tuple(merged.variants[way[level]] for merged, way in ways), 0.0))
    moved = evaluate(Partitioning(coarse, tuple(levels), 0.0))
    levels = [
        LevelChoice(level.workers, level.labels, level.variants, here)
        for level, here in zip(levels, moved, strict=True)
    ]
    found = Partitioning(coarse, tuple(levels), 0.0)
    cost = sum(weight * here for weight, here in zip(rules.weights, moved, strict=True))
    cost += found.resident_bytes() * (rules.replicate or 0.0)
    return Partitioning(coarse, tuple(levels), cost, bound)
