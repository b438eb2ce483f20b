"""Local search: small changes to the best recipes so far, a batch at a time, as long as that pays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.plan import SwapPlan
from planner.swap.emit.finish import Packed, finish_packed, finish_placed
from planner.swap.methods import recalled
from planner.swap.methods.candidate import Kitchen, Recipe, Tried
from planner.swap.methods.method import Setting, Turn
from planner.swap.methods.mutation import Mutation, aligned
from planner.swap.methods.portfolio import CLOSE, ways
from planner.swap.stop import Stopped

NAME = "local"
_BATCH = 8
_ELITE = 8
_SHARES = (1.0, 0.97, 0.93)
#: So many evaluations without a gain of a tenth of a percent end the search, and one more for every few ops.
_PATIENCE = 240
_OPS = 5
_GAIN = 0.999
_STEP = 0.999
#: Recipes that differ by less than this share of their time are as good as one.
_ALIKE = 3e-4


@dataclass(frozen=True, eq=False)
class Rated:
    """What came of a recipe, how it was packed if that was tried, and its seconds, more where it does not fit."""

    tried: Tried
    packed: Packed | None
    rate: float


class LocalSearch:
    """Improves recipes until the bound is met or nothing has got better for long.

    Args:
        setting: what is planned.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting, self.problem = setting, setting.problem
        self.patience = _PATIENCE + self.problem.ops // _OPS
        self.kitchen = Kitchen(self.problem)
        self.random = np.random.default_rng(setting.seed)
        self.elite: list[Rated] = []
        self.queue = [
            replace(way, memory=aligned(self.problem, share), early=True) for share in _SHARES for way in ways(setting)
        ]
        self.untried = len(self.queue)  # of the queue, those that it began with
        self.idle, self.goal = 0, np.inf

    def turn(self) -> Turn | None:
        """Try a batch of changed recipes."""
        before = self.elite, self.queue, self.untried, self.idle, self.goal
        chance = self.random.bit_generator.state
        try:
            return self._turn()
        except Stopped:
            self.elite, self.queue, self.untried, self.idle, self.goal = before
            self.random.bit_generator.state = chance
            raise

    def _turn(self) -> Turn | None:
        best = self.setting.best()
        if best <= self.setting.bound * CLOSE or self.idle >= self.patience or self.problem.ops == 0:
            return None
        batch, self.queue = self.queue[:_BATCH], self.queue[_BATCH:]
        self.untried = max(0, self.untried - _BATCH)
        mutation = Mutation(self.problem, self.random)
        while self.elite and len(batch) < _BATCH:
            batch.append(mutation.child(self._parent(), self._parent()))
        if not batch:
            return None
        rated = [one for one in self.setting.each(lambda recipe: self._rate(recipe, best), batch) if one is not None]
        self.idle += len(batch)
        plan = None
        for one in sorted(rated, key=_rate):
            if one.rate < best and self._fits(one):
                plan = self._written(one)
                best = one.rate
                break
        if best < self.goal * _GAIN:
            self.goal, self.idle = best, 0
        self._keep(rated)
        return Turn(len(batch), plan, "improving the best plans", min(1.0, self.idle / self.patience))

    def memory(self) -> dict[str, Any]:
        """The best recipes, what is still to be tried, and the state of chance."""
        return {
            "elite": [one.tried.recipe.to_json() for one in self.elite],
            "untried": self.untried,
            "queue": [recipe.to_json() for recipe in self.queue[self.untried :]],
            "random": self.random.bit_generator.state,
            "idle": self.idle,
            "goal": self.goal if np.isfinite(self.goal) else None,
            "rates": [one.rate for one in self.elite],
        }

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on with the recipes of another time."""
        tried = self.setting.each(
            self.kitchen.try_one, [Recipe.from_json(self.problem, data) for data in memory["elite"]]
        )
        self.elite = [
            Rated(one, None, rate)
            for one, rate in zip(tried, map(recalled.seconds, memory["rates"]), strict=True)
            if one is not None
        ]
        self.untried = recalled.whole(memory["untried"], 0, len(self.queue))
        self.queue = self.queue[len(self.queue) - self.untried :]
        self.queue += [Recipe.from_json(self.problem, data) for data in memory["queue"]]
        self.random.bit_generator.state = memory["random"]
        self.idle = recalled.whole(memory["idle"], 0, 1 << 40)
        self.goal = recalled.seconds(memory["goal"])

    def _rate(self, recipe: Recipe, best: float) -> Rated | None:
        """Try a recipe, and where it is faster than the best plan, see whether it can be packed."""
        tried = self.kitchen.try_one(recipe)
        if tried is None:
            return None
        if tried.placed is not None or tried.seconds >= best:
            return Rated(tried, None, tried.seconds)
        result = self.kitchen.pack(tried)
        over = max(1.0, result.height / self.problem.memory)
        slower = best if np.isfinite(best) else tried.seconds
        return Rated(tried, result, tried.seconds if over == 1.0 else slower * over)

    def _fits(self, one: Rated) -> bool:
        return one.tried.placed is not None or (one.packed is not None and one.packed.height <= self.problem.memory)

    def _written(self, one: Rated) -> SwapPlan:
        if one.packed is not None:
            return finish_packed(self.problem, one.packed, NAME)
        assert one.tried.placed is not None
        return finish_placed(self.problem, one.tried.placed, one.tried.timing, NAME)

    def _keep(self, rated: list[Rated]) -> None:
        """Keep the best, each time once; what was too high gets a child with that much less memory."""
        for one in rated:
            if one.packed is not None and not self._fits(one):
                less = aligned(self.problem, _STEP * one.tried.recipe.memory / one.packed.height)
                self.queue = [*self.queue, replace(one.tried.recipe, memory=less)]
        every = sorted(self.elite + rated, key=_rate, reverse=True)
        distinct = {round(np.log(max(one.rate, 1e-300)) / _ALIKE): one for one in every}
        self.elite = sorted(distinct.values(), key=_rate)[:_ELITE]

    def _parent(self) -> Tried:
        """One of the best, the better the likelier."""
        rank = min(int(self.random.geometric(0.3)) - 1, len(self.elite) - 1)
        return self.elite[rank].tried


def _rate(one: Rated) -> float:
    return one.rate
