"""Local search: small changes to the best candidates so far, a batch at a time, as long as that pays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.cancel import Cancelled
from planner.plan import SwapPlan
from planner.swap.emit.place_and_assemble import PackedPlan, finish_packed, finish_placed
from planner.swap.methods import checkpoint_validation as valid
from planner.swap.methods.candidate import Candidate, Evaluation, Evaluator
from planner.swap.methods.eviction_portfolio import CLOSE, ways
from planner.swap.methods.method import SearchContext, SearchStep
from planner.swap.methods.mutation import Mutation, aligned

NAME = "local"
_BATCH = 8
_ELITE = 8
_SHARES = (1.0, 0.97, 0.93)
#: Evaluations without a gain of a tenth of a percent after which the search ends, plus one for every `_OPS` ops.
_PATIENCE = 240
_OPS = 5
_GAIN = 0.999
_STEP = 0.999
#: Candidates whose times differ by less than this share count as one.
_SAME_TIME = 3e-4


@dataclass(frozen=True, eq=False)
class Rated:
    """The result of a candidate, its packing if that was tried, and its seconds, more if it does not fit."""

    evaluation: Evaluation
    packed: PackedPlan | None
    rate: float


class LocalSearch:
    """Improves candidates until the bound is met or nothing has improved for long.

    Args:
        context: the search context.
    """

    def __init__(self, context: SearchContext) -> None:
        self.context, self.problem = context, context.problem
        self.patience = _PATIENCE + self.problem.ops // _OPS
        self.evaluator = Evaluator(self.problem)
        self.random = np.random.default_rng(context.seed)
        self.elite: list[Rated] = []
        self.queue = [
            replace(way, memory=aligned(self.problem, share), prefetch=True)
            for share in _SHARES
            for way in ways(context)
        ]
        self.untried = len(self.queue)  # candidates of the initial queue that are left
        self.idle, self.goal = 0, np.inf

    def search_step(self) -> SearchStep | None:
        """Evaluate a batch of mutated candidates."""
        before = self.elite, self.queue, self.untried, self.idle, self.goal
        rng_state = self.random.bit_generator.state
        try:
            return self._search_step()
        except Cancelled:
            self.elite, self.queue, self.untried, self.idle, self.goal = before
            self.random.bit_generator.state = rng_state
            raise

    def _search_step(self) -> SearchStep | None:
        best = self.context.best()
        if best <= self.context.bound * CLOSE or self.idle >= self.patience or self.problem.ops == 0:
            return None
        batch, self.queue = self.queue[:_BATCH], self.queue[_BATCH:]
        self.untried = max(0, self.untried - _BATCH)
        mutation = Mutation(self.problem, self.random)
        while self.elite and len(batch) < _BATCH:
            batch.append(mutation.child(self._parent(), self._parent()))
        if not batch:
            return None
        rated = [
            one for one in self.context.each(lambda candidate: self._rate(candidate, best), batch) if one is not None
        ]
        self.idle += len(batch)
        plan = None
        for one in sorted(rated, key=_rate):
            if one.rate < best and self._fits(one):
                plan = self._finished(one)
                best = one.rate
                break
        if best < self.goal * _GAIN:
            self.goal, self.idle = best, 0
        self._keep(rated)
        return SearchStep(len(batch), plan, "improving the best plans", min(1.0, self.idle / self.patience))

    def state_dict(self) -> dict[str, Any]:
        """The best candidates, those still to be tried, and the random state."""
        return {
            "elite": [one.evaluation.candidate.to_json() for one in self.elite],
            "untried": self.untried,
            "queue": [candidate.to_json() for candidate in self.queue[self.untried :]],
            "random": self.random.bit_generator.state,
            "idle": self.idle,
            "goal": self.goal if np.isfinite(self.goal) else None,
            "rates": [one.rate for one in self.elite],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        evaluations = self.context.each(
            self.evaluator.try_one, [Candidate.from_json(self.problem, data) for data in state["elite"]]
        )
        self.elite = [
            Rated(one, None, rate)
            for one, rate in zip(evaluations, map(valid.seconds, state["rates"]), strict=True)
            if one is not None
        ]
        self.untried = valid.whole(state["untried"], 0, len(self.queue))
        self.queue = self.queue[len(self.queue) - self.untried :]
        self.queue += [Candidate.from_json(self.problem, data) for data in state["queue"]]
        self.random.bit_generator.state = state["random"]
        self.idle = valid.whole(state["idle"], 0, 1 << 40)
        self.goal = valid.seconds(state["goal"])

    def _rate(self, candidate: Candidate, best: float) -> Rated | None:
        """Evaluate a candidate and, if it is faster than the best plan, check whether it can be packed."""
        evaluation = self.evaluator.try_one(candidate)
        if evaluation is None:
            return None
        if evaluation.placed is not None or evaluation.seconds >= best:
            return Rated(evaluation, None, evaluation.seconds)
        result = self.evaluator.pack(evaluation)
        over = max(1.0, result.peak / self.problem.memory)
        slower = best if np.isfinite(best) else evaluation.seconds
        return Rated(evaluation, result, evaluation.seconds if over == 1.0 else slower * over)

    def _fits(self, one: Rated) -> bool:
        return one.evaluation.placed is not None or (one.packed is not None and one.packed.peak <= self.problem.memory)

    def _finished(self, one: Rated) -> SwapPlan:
        if one.packed is not None:
            return finish_packed(self.problem, one.packed, NAME)
        assert one.evaluation.placed is not None
        return finish_placed(self.problem, one.evaluation.placed, one.evaluation.timing, NAME)

    def _keep(self, rated: list[Rated]) -> None:
        """Keep the best, one per step time; a candidate that packs too high is queued with that much less memory."""
        for one in rated:
            if one.packed is not None and not self._fits(one):
                less = aligned(self.problem, _STEP * one.evaluation.candidate.memory / one.packed.peak)
                self.queue = [*self.queue, replace(one.evaluation.candidate, memory=less)]
        every = sorted(self.elite + rated, key=_rate, reverse=True)
        distinct = {round(np.log(max(one.rate, 1e-300)) / _SAME_TIME): one for one in every}
        self.elite = sorted(distinct.values(), key=_rate)[:_ELITE]

    def _parent(self) -> Evaluation:
        """One of the best, better ones with higher probability."""
        rank = min(int(self.random.geometric(0.3)) - 1, len(self.elite) - 1)
        return self.elite[rank].evaluation


def _rate(one: Rated) -> float:
    return one.rate
