"""Polishing: changes to a plan's own decisions, a few thousand at a time, as long as that pays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from planner.swap.draft.draft import Draft
from planner.swap.emit.finish import Packed, finish_packed, packed
from planner.swap.methods import recalled
from planner.swap.methods.annealing.anneal import MOST_SLOTS, anneal, timed
from planner.swap.methods.annealing.choices import Choices, choices_of_draft, choices_of_plan, facts_of
from planner.swap.methods.annealing.lay_out import blank_sheet, lay_out
from planner.swap.methods.annealing.moves import Chance
from planner.swap.methods.candidate import Kitchen
from planner.swap.methods.method import Setting, Turn
from planner.swap.methods.mutation import aligned
from planner.swap.methods.portfolio import CLOSE, ways
from planner.swap.problem.uses import uses_of
from planner.swap.simulate.draft_timing import Timing
from planner.swap.stop import Stopped

NAME = "polish"
_CHAINS = 4
#: Of the mean time of an op, what a change for the worse may cost.
_HEATS = (0.0, 0.03, 0.1, 0.5)
#: So many evaluations without a gain of a tenth of a percent end the search.
PATIENCE = 12_000
_GAIN = 0.999
#: Evaluations of one chain in a turn: so many, in small graphs more and in huge ones fewer, by touches of storages.
_LEAST_TURN, _TURN, _LONG_TURN = 200, 30_000, 2_000_000
_STEP = 0.999
_MORE = 1.001
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
        patience: evaluations without a gain of a tenth of a percent after which nothing more is tried.
    """

    def __init__(self, setting: Setting, patience: int = PATIENCE) -> None:
        self.setting, self.problem, self.patience = setting, setting.problem, patience
        touches = len(self.problem.flow.touches.items) + self.problem.ops
        self.each_turn = max(1, _TURN // max(1, touches), min(_LEAST_TURN, _LONG_TURN // max(1, touches)))
        self.exact = self.problem.ops <= MOST_SLOTS
        self.facts = facts_of(self.problem)
        self.chains: list[Chain] = []
        self.best: Choices | None = None
        self.seconds = np.inf
        self.idle, self.turns, self.goal = 0, 0, np.inf
        self.random = np.random.default_rng(setting.seed)

    def turn(self) -> Turn | None:
        """Let every chain go on for a while."""
        before = self.chains, self.best, self.seconds, self.idle, self.turns, self.goal
        chance = self.random.bit_generator.state
        try:
            return self._turn()
        except Stopped:
            self.chains, self.best, self.seconds, self.idle, self.turns, self.goal = before
            self.random.bit_generator.state = chance
            raise

    def _turn(self) -> Turn | None:
        best = self.setting.best()
        if best <= self.setting.bound * CLOSE or self.idle >= self.patience or self.problem.ops == 0:
            return None
        if not self.chains:
            self._begin()
            if not self.chains:
                return None
        elif best > self.seconds:  # what was found last time takes too much of the host
            self._look_up()
        self.seconds = best
        found = self.setting.each(lambda number: self._anneal(number, best), range(len(self.chains)))
        self.chains = [one.chain for one in found]
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
                self.seconds = best
                break
            # where packing overshoots, this chain gets that much less memory and a little less again
            one.chain.memory = aligned(self.problem, _STEP * one.chain.memory / result.height)
        if best < self.goal * _GAIN:
            self.goal, self.idle = best, 0
        self._restart()
        return Turn(evaluations, plan, "improving the best plan itself", min(1.0, self.idle / self.patience))

    def memory(self) -> dict[str, Any]:
        """Where every chain is, and the states of chance."""
        return {
            "chains": [
                {"choices": one.choices.to_json(), "memory": one.memory, "chance": int(one.chance[0])}
                for one in self.chains
            ],
            "best": None if self.best is None else self.best.to_json(),
            "seconds": self.seconds if np.isfinite(self.seconds) else None,
            "random": self.random.bit_generator.state,
            "idle": self.idle,
            "turns": self.turns,
            "goal": self.goal if np.isfinite(self.goal) else None,
        }

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on with the chains of another time."""
        self.chains = [
            Chain(
                Choices.from_json(self.problem, one["choices"]),
                recalled.whole(one["memory"], 0, self.problem.memory),
                np.array([recalled.chance(one["chance"])], np.uint64),
            )
            for one in memory["chains"]
        ]
        self.best = None if memory["best"] is None else Choices.from_json(self.problem, memory["best"])
        self.seconds = recalled.seconds(memory["seconds"])
        self.random.bit_generator.state = memory["random"]
        self.idle, self.turns = (recalled.whole(memory[name], 0, 1 << 40) for name in ("idle", "turns"))
        self.goal = recalled.seconds(memory["goal"])

    def _begin(self) -> None:
        """Begin with the best plan and with each order's first draft."""
        problem, kitchen = self.problem, Kitchen(self.problem)
        first = {way.order.tobytes(): replace(way, early=True) for way in reversed(ways(self.setting))}
        tried = [one for one in self.setting.each(kitchen.try_one, first.values()) if one is not None]
        tried.sort(key=lambda one: one.seconds)
        starts = [choices_of_draft(problem, one.draft) for one in tried]
        self._look_up()
        if self.best is not None:
            starts.insert(0, self.best)
        seeds = self.random.integers(1, 2**62, _CHAINS) * 2 + 1
        self.chains = [
            Chain(starts[number % len(starts)].copy(), problem.memory, np.array([seed], np.uint64))
            for number, seed in enumerate(seeds if starts else ())
        ]

    def _look_up(self) -> None:
        plan = self.setting.plan()
        self.best = None if plan is None else choices_of_plan(self.problem, plan)

    def _anneal(self, number: int, below: float) -> Found:
        old = self.chains[number]  # as it was where this is cut short
        chain = Chain(old.choices.copy(), old.memory, old.chance.copy())
        best = old.choices.copy()
        seconds = anneal(
            self.problem.flow, self.facts, chain.choices, best, chain.chance, self.each_turn, chain.memory, below,
            _HEATS[(number + self.turns) % len(_HEATS)] / self.problem.ops, self.exact, self.problem.stop.flag,
        )  # fmt: skip
        self.problem.stop.check()
        return Found(chain, seconds, best)

    def _restart(self) -> None:
        """Let some chains go on from the best plan."""
        for chain in self.chains:
            if self.random.random() < _RESTARTED and self.best is not None:
                chain.choices = self.best.copy()
                chain.memory = aligned(self.problem, min(1.0, _MORE * chain.memory / self.problem.memory))

    def _packed(self, choices: Choices) -> Packed:
        """Run choices again and look for offsets."""
        problem = self.problem
        sheet = blank_sheet(problem.ops, problem.storages, len(problem.flow.touches.items))
        run = timed(self.facts, choices, sheet, lay_out(self.facts, choices, sheet))
        uses = uses_of(choices.order, problem.flow)
        draft = Draft(choices.order.copy(), uses, choices.resident.copy(), run.gaps, sheet.inherits)
        return packed(problem, draft, Timing(run.seconds, *run[2:]))
