"""The portfolio: a few orders walked in a few ways, packed with as little slack as it takes, or placed while walked."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from planner.swap.emit.finish import finish_packed, finish_placed
from planner.swap.methods.candidate import Kitchen, Recipe, Tried
from planner.swap.methods.method import Setting, Turn
from planner.swap.problem.problem import Seconds
from planner.swap.schedule.feasibility import orders
from planner.swap.stop import Stopped

Found = TypeVar("Found")

NAME = "calendar"
#: How many times its own work a reload is given; what is best depends on how full the link is.
LEADS = (1.0, 1.25, 1.5, 0.8, 2.0, 0.6)
#: Storages that live for fewer slots than this are kept apart by the address walk.
BRIEF = (30, 100, 10)
#: A plan this close to the bound is as good as one that meets it.
CLOSE = 1.0001
_TRIALS = 8
_KEPT = 6
_REPLANNED = 2
_BATCH = 6
_AS_FAST = 1.002
_STEP = 0.998


def ways(setting: Setting, bias: Seconds | None = None) -> list[Recipe]:
    """Every order with every lead, with and without heed for copies out."""
    problem = setting.problem
    found = [order for _, order in orders(problem)]
    return [
        Recipe(order, problem.memory, lead, heed, bias=bias)
        for lead in LEADS for order in found for heed in (True, False)
    ]  # fmt: skip


class Portfolio:
    """Looks for fast plans until one meets the bound or everything has been tried.

    Args:
        setting: what is planned.
        bias: `[storages]`, factor on the time of each one's next use, above 1 leaves sooner; None for 1.
        recipes: what to try, such as some of `ways`; None for all of them.
    """

    def __init__(
        self, setting: Setting, bias: Seconds | None = None, *, recipes: Sequence[Recipe] | None = None
    ) -> None:
        self.setting, self.problem = setting, setting.problem
        self.recipes = list(ways(setting, bias) if recipes is None else recipes)
        self.kitchen = Kitchen(self.problem)
        self.best = np.inf
        self._turns = self._all()

    def turn(self) -> Turn | None:
        """Walk a few recipes, or pack what came of them."""
        turn = next(self._turns, None)
        if isinstance(turn, Stopped):
            raise turn
        return turn

    def memory(self) -> dict[str, Any]:
        """Nothing: what it does is done again in a moment."""
        return {}

    def recall(self, memory: dict[str, Any]) -> None:
        """Begin anew."""

    def _all(self) -> Iterator[Turn | Stopped]:
        problem, recipes, memory = self.problem, self.recipes, self.problem.memory
        for trial in range(_TRIALS):
            share = memory / problem.memory
            rest = f", leaving {1 - share:.1%} for fragmentation" if share < 1 else ""
            doing = f"planning into {share:.1%} of the budget{rest}" if rest else "planning into the whole budget"
            found: list[Tried] = []
            for batch in self._batches([replace(recipe, memory=memory) for recipe in recipes], found):
                tried = yield from _redone(partial(self._try, batch))
                found += tried
                yield Turn(len(tried), None, doing, trial / _TRIALS)
                if self._met(min((one.seconds for one in found), default=np.inf)):
                    break
            found.sort(key=_seconds)
            if found:
                recipes = _distinct([one.recipe for one in found])[:_KEPT]
            worth = [one for one in self._worth_packing(found) if one.seconds < self.best / CLOSE]
            results = yield from _redone(partial(self.setting.each, self.kitchen.pack, worth))
            heights = [result.height for result in results]
            fitting = [result for result in results if result.height <= problem.memory]
            plan = None
            if fitting:
                best = min(fitting, key=lambda result: result.timing.seconds)
                plan = yield from _redone(partial(finish_packed, problem, best, NAME))
                self.best = best.timing.seconds
            yield Turn(0, plan, doing, trial / _TRIALS)
            if fitting or not heights or self._met(self.best):
                break
            if trial == 0:
                yield from self._addressed(recipes)
            # where packing overshoots, the next walks get that much less memory and a little less again
            memory = int(_STEP * memory * problem.memory / min(heights)) // problem.alignment * problem.alignment

    def _batches(self, recipes: list[Recipe], found: list[Tried]) -> Iterator[list[Recipe]]:
        """All recipes by the ideal clock, then the fastest ones again with the times that came of it."""
        for first in range(0, len(recipes), _BATCH):
            yield recipes[first : first + _BATCH]
        again = sorted(found, key=_seconds)[:_REPLANNED]
        yield [replace(one.recipe, early=False, clock=one.timing.clock) for one in again]

    def _try(self, recipes: Sequence[Recipe]) -> list[Tried]:
        """Walk recipes, each with reloads as it decides and with reloads as early as memory allows."""
        both = [replace(recipe, early=early) for recipe in recipes for early in (False, True)]
        return [tried for tried in self.setting.each(self.kitchen.try_one, both) if tried is not None]

    def _worth_packing(self, found: list[Tried]) -> list[Tried]:
        """The fastest with and without prefetching; of two that are as fast, the one that leaves memory empty first."""
        lazy = [one for one in found if not one.recipe.early][:1]
        early = [one for one in found if one.recipe.early][:1]
        if lazy and early and early[0].seconds < lazy[0].seconds / _AS_FAST:
            return early + lazy
        return lazy + early

    def _addressed(self, recipes: list[Recipe]) -> Iterator[Turn | Stopped]:
        """Walk every way with addresses, and write down what is faster than all before."""
        distinct = _distinct([replace(recipe, heed=False, early=False, clock=None) for recipe in recipes])
        each = [replace(recipe, brief=brief) for recipe in distinct for brief in BRIEF]
        for first in range(0, len(each), _BATCH):
            batch = each[first : first + _BATCH]
            tried = yield from _redone(partial(self.setting.each, self.kitchen.try_one, batch))
            found = min((one for one in tried if one is not None), key=_seconds, default=None)
            plan = None
            if found is not None and found.placed is not None and found.seconds < self.best / CLOSE:
                plan = yield from _redone(partial(finish_placed, self.problem, found.placed, found.timing, NAME))
                self.best = found.seconds
            yield Turn(len(tried), plan, "placing while planning", first / len(each))
            if self._met(self.best):
                return

    def _met(self, seconds: float) -> bool:
        return bool(seconds <= self.setting.bound * CLOSE)


def _redone(work: Callable[[], Found]) -> Generator[Stopped, None, Found]:
    """Do a piece of work, from its beginning again whenever it was stopped."""
    while True:
        try:
            return work()
        except Stopped as stopped:
            yield stopped


def _seconds(one: Tried) -> float:
    return one.seconds


def _distinct(recipes: list[Recipe]) -> list[Recipe]:
    """Each way of walking once, by the ideal clock."""
    once = {(id(one.order), one.lead, one.heed, one.brief): one for one in reversed(recipes)}
    return [replace(one, clock=None, early=False) for one in reversed(once.values())]
