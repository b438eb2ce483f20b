"""The portfolio: eviction passes over a few orders, packed with as little slack as needed, or placed in the pass."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from planner.cancel import Cancelled
from planner.plan import SwapPlan
from planner.swap.emit.place_and_assemble import PackedPlan, finish_packed, finish_placed
from planner.swap.methods import checkpoint_validation as valid
from planner.swap.methods.candidate import Candidate, Evaluation, Evaluator
from planner.swap.methods.method import SearchContext, SearchStep
from planner.swap.methods.preference import Rank, draft_rank
from planner.swap.problem.problem import Seconds
from planner.swap.schedule.budget_feasibility import orders

Found = TypeVar("Found")

NAME = "calendar"
#: Time reserved for a reload, in multiples of its work; which is best depends on how busy the link is.
LEADS = (1.0, 1.25, 1.5, 0.8, 2.0, 0.6)
#: Storages that live for fewer slots than this are placed apart by the address pass.
SHORT_LIVED_SLOTS = (30, 100, 10)
#: A plan this close to the bound is as good as one that meets it.
CLOSE = 1.0001
_MAX_TRIALS = 8
_CANDIDATES_KEPT = 6
_REPLANNED = 2
_BATCH = 6
_AS_FAST = 1.002
_STEP = 0.998


def ways(context: SearchContext, bias: Seconds | None = None) -> list[Candidate]:
    """Candidates for every order and lead, with and without `avoid_late_copies`."""
    problem = context.problem
    found = [order for _, order in orders(problem)]
    return [
        Candidate(order, problem.memory, lead, avoid_late_copies, bias=bias)
        for lead in LEADS for order in found for avoid_late_copies in (True, False)
    ]  # fmt: skip


class FirstPlan(NamedTuple):
    """The fastest result of the first batch, packed and, if that fits, as a plan: it may be the fastest of all."""

    evaluation: Evaluation
    packed: PackedPlan
    plan: SwapPlan | None


class Portfolio:
    """Looks for fast plans until one meets the bound or everything has been tried.

    Args:
        context: the search context.
        bias: `[storages]`, factor on the time of each storage's next use, above 1 leaves sooner; None for 1.
        candidates: what to try, such as some of `ways`; None for all of them.
    """

    def __init__(
        self, context: SearchContext, bias: Seconds | None = None, *, candidates: Sequence[Candidate] | None = None
    ) -> None:
        self.context, self.problem = context, context.problem
        self.candidates = list(ways(context, bias) if candidates is None else candidates)
        self.evaluator = Evaluator(self.problem)
        self.best = np.inf
        self.steps_done = 0
        self.first: FirstPlan | None = None
        self._steps = self._search()

    def search_step(self) -> SearchStep | None:
        """Evaluate a few candidates, or pack the results."""
        search_step = next(self._steps, None)
        if isinstance(search_step, Cancelled):
            raise search_step
        self.steps_done += 1
        return search_step

    def state_dict(self) -> dict[str, Any]:
        """How many search steps were run: they are quick to run again."""
        return {"steps": self.steps_done}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Run as many search steps again, from the beginning."""
        for _ in range(valid.whole(state["steps"], 0, 1 << 40)):
            if self.search_step() is None:
                break

    def _search(self) -> Iterator[SearchStep | Cancelled]:
        problem, candidates, memory = self.problem, self.candidates, self.problem.memory
        for trial in range(_MAX_TRIALS):
            share = memory / problem.memory
            rest = f", leaving {1 - share:.1%} for fragmentation" if share < 1 else ""
            doing = f"planning into {share:.1%} of the budget{rest}" if rest else "planning into the whole budget"
            found: list[Evaluation] = []
            for batch in self._batches([replace(candidate, memory=memory) for candidate in candidates], found):
                evaluations = yield from _until_done(partial(self._try, batch))
                found += evaluations
                first_plan: SwapPlan | None = None
                estimate = np.inf
                if trial == 0 and evaluations and len(found) == len(evaluations):
                    first_plan, estimate = yield from self._first_plan(min(evaluations, key=self._rank))
                fastest = min((one.seconds for one in found), default=np.inf)
                yield SearchStep(len(evaluations), first_plan, doing, trial / _MAX_TRIALS, estimate)
                if self._met(fastest):
                    break
            found.sort(key=self._rank)
            if found:
                candidates = _distinct([one.candidate for one in found])[:_CANDIDATES_KEPT]
            to_pack = [one for one in self._to_pack(found) if one.seconds < self.best / CLOSE]
            results = yield from _until_done(partial(self.context.each, self._pack, to_pack))
            fitting = [result for result in results if result.peak <= problem.memory]
            plan = None
            if fitting:
                best = min(fitting, key=self._packed_rank)
                plan = yield from _until_done(partial(self._finish, best))
                self.best = best.timing.seconds
            yield SearchStep(0, plan, doing, trial / _MAX_TRIALS)
            peaks = [
                result.peak
                for result in results
                if result.peak > problem.memory and _planned_seconds(result) < self.best / CLOSE
            ]
            if not peaks or self._met(self.best):
                break
            if trial == 0 and not fitting:
                yield from self._with_addresses(candidates)
            # where packing overshoots, the next passes get that much less memory and a little less again
            memory = int(_STEP * memory * problem.memory / min(peaks)) // problem.alignment * problem.alignment

    def _first_plan(self, first: Evaluation) -> Generator[Cancelled, None, tuple[SwapPlan | None, float]]:
        """A plan from the first batch if its fastest fits, as better ones take longer, and what it may lead to."""
        result = yield from _until_done(partial(self.evaluator.pack, first))
        self.first = FirstPlan(first, result, None)
        if result.peak > self.problem.memory:
            return None, first.seconds * result.peak / max(1, self.problem.memory)
        plan = yield from _until_done(partial(finish_packed, self.problem, result, NAME))
        self.first = FirstPlan(first, result, plan)
        return plan, plan.predicted.seconds

    def _pack(self, evaluation: Evaluation) -> PackedPlan:
        if self.first is not None and self.first.evaluation is evaluation:
            return self.first.packed
        return self.evaluator.pack(evaluation)

    def _finish(self, packed: PackedPlan) -> SwapPlan:
        if self.first is not None and self.first.packed is packed and self.first.plan is not None:
            return self.first.plan
        return finish_packed(self.problem, packed, NAME)

    def _batches(self, candidates: list[Candidate], found: list[Evaluation]) -> Iterator[list[Candidate]]:
        """All candidates with the ideal clock, then the fastest ones again with their resulting times as the clock."""
        for first in range(0, len(candidates), _BATCH):
            yield candidates[first : first + _BATCH]
        again = sorted(found, key=self._rank)[:_REPLANNED]
        yield [replace(one.candidate, prefetch=False, clock=one.timing.clock) for one in again]

    def _try(self, candidates: Sequence[Candidate]) -> list[Evaluation]:
        """Evaluate candidates, each with reloads as the pass decides and with reloads as early as memory allows."""
        return [one for both in self.context.each(self.evaluator.try_both, candidates) for one in both]

    def _to_pack(self, found: list[Evaluation]) -> list[Evaluation]:
        """The fastest with and without prefetching; if equally fast, the one that leaves memory empty comes first."""
        late = [one for one in found if not one.candidate.prefetch][:1]
        early = [one for one in found if one.candidate.prefetch][:1]
        if late and early and early[0].seconds < late[0].seconds / _AS_FAST:
            return early + late
        return late + early

    def _with_addresses(self, candidates: list[Candidate]) -> Iterator[SearchStep | Cancelled]:
        """Run every candidate's pass with addresses, and emit a plan for each that is faster than all before."""
        distinct = _distinct(
            [replace(candidate, avoid_late_copies=False, prefetch=False, clock=None) for candidate in candidates]
        )
        each = [replace(candidate, short_lived_slots=slots) for candidate in distinct for slots in SHORT_LIVED_SLOTS]
        for first in range(0, len(each), _BATCH):
            batch = each[first : first + _BATCH]
            evaluations = yield from _until_done(partial(self.context.each, self.evaluator.try_one, batch))
            found = min((one for one in evaluations if one is not None), key=self._rank, default=None)
            plan = None
            if found is not None and found.placed is not None and found.seconds < self.best / CLOSE:
                plan = yield from _until_done(partial(finish_placed, self.problem, found.placed, found.timing, NAME))
                self.best = found.seconds
            yield SearchStep(len(evaluations), plan, "placing while planning", first / len(each))
            if self._met(self.best):
                return

    def _rank(self, one: Evaluation) -> Rank:
        return draft_rank(self.problem, one.draft, one.seconds)

    def _packed_rank(self, one: PackedPlan) -> Rank:
        return draft_rank(self.problem, one.draft, one.timing.seconds)

    def _met(self, seconds: float) -> bool:
        return bool(seconds <= self.context.bound * CLOSE)


def _until_done(work: Callable[[], Found]) -> Generator[Cancelled, None, Found]:
    """Do a piece of work, restarting it from the beginning whenever it was cancelled."""
    while True:
        try:
            return work()
        except Cancelled as cancelled:
            yield cancelled


def _planned_seconds(one: PackedPlan) -> float:
    return one.timing.seconds


def _distinct(candidates: list[Candidate]) -> list[Candidate]:
    """Each candidate once, with the ideal clock."""
    distinct = {
        (id(one.order), one.lead, one.avoid_late_copies, one.short_lived_slots): one for one in reversed(candidates)
    }
    return [replace(one, clock=None, prefetch=False) for one in reversed(distinct.values())]
