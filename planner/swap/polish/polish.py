"""Polishing: changes to a plan's own decisions, a few thousand at a time, as long as that pays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from planner.swap.draft import Draft
from planner.swap.finish import Packed, finish_packed, packed
from planner.swap.method import Setting, Turn
from planner.swap.mutation import aligned
from planner.swap.polish.anneal import MOST_SLOTS, anneal, timed
from planner.swap.polish.choices import Choices, choices_of_draft, choices_of_plan, facts_of
from planner.swap.polish.lay_out import blank_sheet, lay_out
from planner.swap.polish.moves import Chance
from planner.swap.portfolio import CLOSE, ways
from planner.swap.recipe import Kitchen
from planner.swap.timing import Timing
from planner.swap.uses import uses_of

NAME = "polish"
_CHAINS = 4
_HEATS = (0.004, 0.03, 0.012, 0.08)
#: Work of a turn, and of all turns without a gain that end the search, in touches of storages by ops.
_TURN, _PATIENCE = 30_000, 400_000
_GAIN = 0.9999
_STEP = 0.999
_RESTARTED = 0.5  # how often a chain goes on from the best plan


@dataclass(eq=False)
class Chain:
    """One line of changes: where it is, the bytes it may use, and its random generator."""

    choices: Choices
    memory: int
    chance: Chance


class Found(NamedTuple):
    """The fastest that a chain met in a turn; infinite seconds where nothing was faster than the best plan."""

    chain: Chain
    seconds: float
    choices: Choices


class Polish:
    """Improves plans until the bound is met or nothing has got better for long.

    Args:
        setting: what is planned.
        patience: evaluations without a gain after which nothing more is tried; None for what suits the graph's size.
    """

    def __init__(self, setting: Setting, patience: int | None = None) -> None:
        self.setting, self.problem = setting, setting.problem
        touches = len(self.problem.flow.touches.items) + self.problem.ops
        self.each_turn = max(50, _TURN // max(1, touches))
        self.patience = max(8_000, _PATIENCE // max(1, touches)) if patience is None else patience
        self.exact = self.problem.ops <= MOST_SLOTS
        self.facts = facts_of(self.problem)
        self.chains: list[Chain] = []
        self.best: Choices | None = None
        self.idle, self.turns, self.goal = 0, 0, np.inf
        self.random = np.random.default_rng(setting.seed)

    def turn(self) -> Turn | None:
        """Let every chain go on for a while."""
        best = self.setting.best()
        if best <= self.setting.bound * CLOSE or self.idle >= self.patience or self.problem.ops == 0:
            return None
        if not self.chains:
            self._begin()
            if not self.chains:
                return None
        found = self.setting.each(lambda number: self._anneal(number, best), range(len(self.chains)))
        self.turns += 1
        evaluations = len(self.chains) * self.each_turn
        self.idle += evaluations
        plan = None
        for one in sorted(found, key=lambda one: one.seconds):
            if one.seconds >= best:
                break
            result = self._packed(one.choices)
            if result.height <= self.problem.memory:
                plan, best, self.best = finish_packed(self.problem, result, NAME), one.seconds, one.choices
                break
            # where packing overshoots, this chain gets that much less memory and a little less again
            one.chain.memory = aligned(self.problem, _STEP * one.chain.memory / result.height)
        if best < self.goal * _GAIN:
            self.goal, self.idle = best, 0
        self._restart()
        return Turn(evaluations, plan, "changing the best plan itself", min(1.0, self.idle / self.patience))

    def memory(self) -> dict[str, Any]:
        """Where every chain is, and the states of chance."""
        return {
            "chains": [
                {"choices": one.choices.to_json(), "memory": one.memory, "chance": int(one.chance[0])}
                for one in self.chains
            ],
            "best": None if self.best is None else self.best.to_json(),
            "random": self.random.bit_generator.state,
            "idle": self.idle,
            "turns": self.turns,
            "goal": self.goal if np.isfinite(self.goal) else None,
        }

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on with the chains of another time."""
        self.chains = [
            Chain(Choices.from_json(self.problem, one["choices"]), one["memory"], np.array([one["chance"]], np.uint64))
            for one in memory["chains"]
        ]
        self.best = None if memory["best"] is None else Choices.from_json(self.problem, memory["best"])
        self.random.bit_generator.state = memory["random"]
        self.idle, self.turns = memory["idle"], memory["turns"]
        self.goal = np.inf if memory["goal"] is None else memory["goal"]

    def _begin(self) -> None:
        """Begin with the best plan and with each order's first draft."""
        problem, kitchen = self.problem, Kitchen(self.problem)
        first = {way.order.tobytes(): replace(way, early=True) for way in reversed(ways(self.setting))}
        tried = [one for one in self.setting.each(kitchen.try_one, list(first.values())) if one is not None]
        tried.sort(key=lambda one: one.seconds)
        starts = [choices_of_draft(problem, one.draft) for one in tried]
        plan = self.setting.plan()
        if plan is not None:
            self.best = choices_of_plan(problem, plan)
            starts.insert(0, self.best)
        seeds = self.random.integers(1, 2**62, _CHAINS) * 2 + 1
        self.chains = [
            Chain(starts[number % len(starts)].copy(), problem.memory, np.array([seed], np.uint64))
            for number, seed in enumerate(seeds if starts else ())
        ]

    def _anneal(self, number: int, below: float) -> Found:
        chain = self.chains[number]
        best = chain.choices.copy()
        seconds = anneal(
            self.problem.flow, self.facts, chain.choices, best, chain.chance, self.each_turn, chain.memory, below,
            _HEATS[(number + self.turns) % len(_HEATS)], self.exact,
        )  # fmt: skip
        return Found(chain, seconds, best)

    def _restart(self) -> None:
        """Let some chains go on from the best plan."""
        for chain in self.chains:
            if self.random.random() < _RESTARTED and self.best is not None:
                chain.choices = self.best.copy()

    def _packed(self, choices: Choices) -> Packed:
        """Run choices again and look for offsets."""
        problem = self.problem
        sheet = blank_sheet(problem.ops, problem.storages, len(problem.flow.touches.items))
        run = timed(self.facts, choices, sheet, lay_out(self.facts, choices, sheet))
        uses = uses_of(choices.order, problem.flow)
        draft = Draft(choices.order.copy(), uses, choices.resident.copy(), run.gaps, sheet.inherits)
        return packed(problem, draft, Timing(run.seconds, *run[2:]))
