"""The search over all levels at once: bounds narrow down what can be best until the rest can be searched in full."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from planner.finalizers import without_garbage_collection
from planner.partition.coarse import CoarseGraph, Fetch, GroupsAndOps, MergedOp, Variant
from planner.partition.search.choices.domains import Domains, Sequences
from planner.partition.search.choices.partitioning import Partitioning, mesh_of
from planner.partition.search.choices.rules import Pin, SearchRules
from planner.partition.search.costs.slot_costs import SlotCosts
from planner.partition.search.factors.branching import branch
from planner.partition.search.factors.dual_bound import DualBound
from planner.partition.search.factors.min_sum import Costs
from planner.partition.search.factors.narrowing import EXACT, MOST_ENTRIES, MOST_OF_ONE, narrow_down
from planner.partition.search.factors.neighborhoods import NeighborhoodSearch
from planner.partition.search.folding import fold
from planner.partition.search.mini_buckets import mini_bucket_bound
from planner.partition.search.problem import Choice, LevelsProblem, costing, partitioning
from planner.partition.search.recursion import by_recursion

#: As often the bound is raised before what cannot be best is left out, and as many entries are gone through for it:
#: large tables are narrowed down early, since what is left of them is quick to go through again.
_FEWEST_SWEEPS, _SWEEPS = 5, 20
_SWEPT_ENTRIES = 20_000_000
_ROUNDS = 12
#: Before anything is ruled out, variables are eliminated if no more entries are gone through for all of them.
_MOST_AT_FIRST = 200_000_000
#: Before cases are told apart, a variable is eliminated if no more entries are gone through for it.
_SMALL = 20_000
#: All levels are chosen at once if there are no more than this; of more, as many neighbouring ones at a time.
_MOST_LEVELS = 3
_WINDOW = 2


def optimize(
    coarse: CoarseGraph,
    workers: int | Sequence[int],
    *,
    weights: Sequence[float] = (),
    pins: Mapping[int, Sequence[Pin]] | None = None,
    allowed: Callable[[int, int], bool] | None = None,
    allowed_variant: Callable[[MergedOp, Variant], bool] | None = None,
    replicate: float | None = None,
) -> Partitioning:
    """Split a step over workers with the least cost of all levels together.

    Args:
        coarse: the coarse graph.
        workers: how many there are, at least 1, or into how many parts each level cuts, the outermost first; for a
            number the levels are its prime factors.
        weights: per level, the cost of a byte that moves there; 1 if not given.
        pins: by group, per level a label, "replicated", or None for a level that is free.
        allowed: whether a group may be split by a label.
        allowed_variant: whether merged ops may be split in a way.
        replicate: the cost of a byte of a tensor that a worker stores; with a cost every tensor may be whole on all.

    Returns:
        The best partition found and a lower bound of the cost of any, which is its cost where the search was completed.
        More than three levels are chosen two at a time, and without a bound.

    Raises:
        StowageError: there are no such workers, or a pin cannot be met.
    """
    rules = SearchRules(mesh_of(workers), tuple(weights), pins or {}, allowed, allowed_variant, replicate)
    rules.check(coarse)
    with without_garbage_collection():
        folded = fold(coarse, rules)
        search = _Search(folded.parts, folded.rules)
        search.run()
        bound = None if search.bound == -inf else min(search.bound, search.best.cost)
        return partitioning(coarse, rules, folded.unfolded(search.best), bound)


@dataclass(slots=True)
class _StillPossible:
    """What is left to choose from.

    Args:
        stored: per group, its sequences of options.
        ways: per merged op, its sequences of variants.
        fetches: what several ops may fetch together; None for everything.
    """

    stored: list[Sequences]
    ways: list[Sequences]
    fetches: Sequence[Fetch] | None = None

    def size(self) -> int:
        return sum(map(len, self.stored)) + sum(map(len, self.ways))


class _Search:
    """The best choice so far, the bound, and what may still be better."""

    def __init__(self, coarse: GroupsAndOps, rules: SearchRules) -> None:
        self._coarse, self._rules = coarse, rules
        self._domains, self._costs = Domains(coarse, rules), SlotCosts(rules)
        self._rows: dict[object, Sequences] = {}
        self.bound = -inf
        self.best = self._costing(by_recursion(coarse, rules, self._domains, self._costs))

    def run(self) -> None:
        """Narrow down what can be best, and search the rest in full once it is small enough."""
        levels = len(self._rules.mesh)
        if levels <= _MOST_LEVELS:
            self._choose(range(levels))
            return
        for first in range(levels - _WINDOW + 1):
            self._choose(range(first, first + _WINDOW))
        self.bound = -inf  # what was found is the least of a window only

    def _choose(self, free: range) -> None:
        """Choose some levels anew, the others as they are."""

        def fixed(row: tuple[int, ...]) -> list[int | None]:
            return [None if level in free else choice for level, choice in enumerate(row)]

        stored, ways = self.best.stored, self.best.ways
        left = _StillPossible(
            [self._domains.group(group, fixed(row)) for group, row in enumerate(stored)],
            [self._domains.op(merged, fixed(row)) for merged, row in zip(self._coarse.merged, ways, strict=True)],
        )
        self.bound = -inf
        problem = self._problem(left)
        work = problem.work()
        if work.entries > MOST_ENTRIES and self._is_small(problem):
            self._search_core(problem, once=True)
            if self._closed():
                return
        for _ in range(_ROUNDS):
            if work.entries <= MOST_ENTRIES:
                self._found(problem, problem.solve())
                return
            left = self._narrow(problem, left)
            if self._closed():
                return
            problem, before = self._problem(left), work
            work = problem.work()
            if work.entries <= before.entries / 2:
                continue
            best = self.best.cost
            self._search_core(problem)
            if self._closed():
                return
            self._search_around(problem)
            if self.best.cost == best:
                break
        self._search_cases(problem)

    def _is_small(self, problem: LevelsProblem) -> bool:
        """Whether most variables are eliminated quickly before anything is ruled out."""
        work = problem.work(MOST_OF_ONE)
        return work.entries <= _MOST_AT_FIRST and work.left <= problem.variables / 2

    def _found(self, problem: LevelsProblem, best: Choice) -> None:
        """Take the best choice of what was left."""
        self._better(best)
        self.bound = self.best.cost if problem.complete else min(best.cost, self.best.cost)

    def _search_core(self, problem: LevelsProblem, *, once: bool = False) -> None:
        """Search what is left when all variables are eliminated for which that is quick."""
        core = problem.core(MOST_OF_ONE)
        found = narrow_down(core.stars, self.best.cost, once=once)
        if found.values is not None:
            self._better(problem.choice(found.cost, core.values(found.values)))
        self.bound = max(self.bound, min(found.bound, self.best.cost))

    def _search_cases(self, problem: LevelsProblem) -> None:
        """Search case by case when variables are eliminated for which that makes no large tables."""
        core = problem.core(_SMALL)
        found = branch(core.stars, self.best.cost)
        if found.values is not None:
            self._better(problem.choice(found.cost, core.values(found.values)))
        bound = found.bound
        if bound < self.best.cost * (1 - EXACT):
            bound = max(bound, mini_bucket_bound(problem.core(MOST_OF_ONE).stars))
        self.bound = max(self.bound, min(bound, self.best.cost))

    def _search_around(self, problem: LevelsProblem) -> None:
        """Look for a better choice in neighbourhoods of likely ones."""
        core = problem.core(MOST_OF_ONE)
        if core.stars.choices:
            self._better(problem.choice(0.0, core.values(NeighborhoodSearch(core.stars).run())))

    def _narrow(self, problem: LevelsProblem, left: _StillPossible) -> _StillPossible:
        """Raise the bound, look for a better choice among the likeliest, and leave out what cannot be better."""
        stars, ops = problem.stars()
        dual = stars.bound()
        halfway, bound = dual.raised(_sweeps(dual))
        self.bound = max(self.bound, min(bound, self.best.cost))
        above = [dual.above(problem.stands_for_group(group)) for group in range(len(left.stored))]
        if stars.cost(likely := dual.likely()) < self.best.cost:
            self._better(problem.choice(0.0, likely))
        self._try_likeliest(_StillPossible(left.stored, left.ways, problem.considered), above)
        limit = self.best.cost * (1 + EXACT)
        stored = [self._kept(each, over <= limit - halfway) for each, over in zip(left.stored, above, strict=True)]
        ways = list(left.ways)
        for factor, (op, rows) in ops.items():
            alive = np.unique(rows[dual.ways_above(factor) <= limit - bound])
            if len(alive) < len(ways[op]):
                ways[op] = self._intern(ways[op][alive])
        ways = [ways[problem.stands_for_op(op)] for op in range(len(ways))]
        return _StillPossible(stored, ways, problem.considered)

    def _try_likeliest(self, left: _StillPossible, above: Sequence[Costs]) -> None:
        """Search among the sequences of options of every group that cost the least by the bound."""
        quick = None
        for most in (2, 4, 8):
            stored = []
            for sequences, over in zip(left.stored, above, strict=True):
                first = np.argsort(over, kind="stable")[:most]
                stored.append(self._kept(sequences, np.isin(np.arange(len(sequences)), first)))
            problem = self._problem(_StillPossible(stored, left.ways, left.fetches), relaxed=False)
            if problem.work().entries > MOST_ENTRIES:
                break
            quick = problem
        if quick is not None:
            self._better(quick.solve())

    def _problem(self, left: _StillPossible, *, relaxed: bool = True) -> LevelsProblem:
        return LevelsProblem(
            self._coarse, self._rules, self._domains, self._costs, left.stored, left.ways, left.fetches, relaxed=relaxed
        )

    def _better(self, found: Choice) -> None:
        found = self._costing(found)
        if found.cost < self.best.cost:
            self.best = found

    def _costing(self, found: Choice) -> Choice:
        return costing(self._coarse, self._rules, self._domains, found)

    def _closed(self) -> bool:
        return self.bound >= self.best.cost * (1 - EXACT)

    def _kept(self, rows: Sequences, kept: NDArray[np.bool_]) -> Sequences:
        return rows if kept.all() else self._intern(rows[kept])

    def _intern(self, rows: Sequences) -> Sequences:
        """Equal sequences as one array, so that what they cost is worked out once."""
        rows = np.ascontiguousarray(rows)
        return self._rows.setdefault((rows.shape, rows.tobytes()), rows)


def _sweeps(dual: DualBound) -> int:
    """As often as a bound is raised, forward and backward."""
    return min(max(_SWEPT_ENTRIES // (2 * dual.entries), _FEWEST_SWEEPS), _SWEEPS)
