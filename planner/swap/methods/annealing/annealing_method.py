"""Annealing: changes to a plan's own decisions, a few thousand at a time, as long as that pays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from planner.cancel import Cancelled
from planner.swap.draft.draft import UnplacedPlan
from planner.swap.emit.place_and_assemble import PackedPlan, finish_packed, packed
from planner.swap.methods import checkpoint_validation as valid
from planner.swap.methods.annealing.anneal import MOST_SLOTS, anneal, timed
from planner.swap.methods.annealing.decisions import (
    Decisions,
    annealing_arrays,
    decisions_of_plan,
    decisions_of_unplaced,
)
from planner.swap.methods.annealing.decode import blank_decode_buffers, decode
from planner.swap.methods.annealing.moves import RngState
from planner.swap.methods.candidate import Evaluator
from planner.swap.methods.eviction_portfolio import CLOSE, ways
from planner.swap.methods.method import SearchContext, SearchStep
from planner.swap.methods.mutation import aligned
from planner.swap.problem.uses import uses_of
from planner.swap.simulate.draft_timing import Timing

NAME = "polish"
_CHAINS = 4
#: What a change for the worse may cost, as a share of the mean time of an op.
_TEMPERATURES = (0.0, 0.03, 0.1, 0.5)
#: Evaluations without a gain of a tenth of a percent after which the search ends.
PATIENCE = 12_000
_GAIN = 0.999
#: Evaluations of one chain in a search step; `_TOUCHES_PER_STEP` over the touches in small graphs, and
#: `_MOST_TOUCHES_PER_STEP` over them in huge ones.
_LEAST_EVALUATIONS, _TOUCHES_PER_STEP, _MOST_TOUCHES_PER_STEP = 200, 30_000, 2_000_000
_STEP = 0.999
_MORE = 1.001
_RESTARTED = 0.5  # probability that a chain continues from the best plan


@dataclass(eq=False)
class AnnealingChain:
    """One chain of changes: its current decisions, the bytes it may use, and its random state."""

    decisions: Decisions
    memory: int
    rng_state: RngState


class ChainBest(NamedTuple):
    """The fastest decisions of a chain in a search step; infinite seconds if none were faster than the best plan."""

    chain: AnnealingChain
    seconds: float
    decisions: Decisions


class Annealing:
    """Improves plans until the bound is met or nothing has improved for long.

    Args:
        context: the search context.
        patience: evaluations without a gain of a tenth of a percent after which nothing more is tried.
    """

    def __init__(self, context: SearchContext, patience: int = PATIENCE) -> None:
        self.context, self.problem, self.patience = context, context.problem, patience
        touches = len(self.problem.arrays.touches.items) + self.problem.ops
        touches = max(1, touches)
        least = min(_LEAST_EVALUATIONS, _MOST_TOUCHES_PER_STEP // touches)
        self.evaluations_per_step = max(1, _TOUCHES_PER_STEP // touches, least)
        self.exact = self.problem.ops <= MOST_SLOTS
        self.arrays = annealing_arrays(self.problem)
        self.chains: list[AnnealingChain] = []
        self.best: Decisions | None = None
        self.seconds = np.inf
        self.idle, self.search_steps, self.goal = 0, 0, np.inf
        self.random = np.random.default_rng(context.seed)

    def search_step(self) -> SearchStep | None:
        """Run every chain for a number of evaluations."""
        before = self.chains, self.best, self.seconds, self.idle, self.search_steps, self.goal
        rng_state = self.random.bit_generator.state
        try:
            return self._search_step()
        except Cancelled:
            self.chains, self.best, self.seconds, self.idle, self.search_steps, self.goal = before
            self.random.bit_generator.state = rng_state
            raise

    def _search_step(self) -> SearchStep | None:
        best = self.context.best()
        if best <= self.context.bound * CLOSE or self.idle >= self.patience or self.problem.ops == 0:
            return None
        if not self.chains:
            self._start_chains()
            if not self.chains:
                return None
        elif best > self.seconds:  # the last plan found exceeds the host budget
            self._take_best_plan()
        self.seconds = best
        found = self.context.each(lambda number: self._anneal(number, best), range(len(self.chains)))
        self.chains = [one.chain for one in found]
        self.search_steps += 1
        evaluations = len(self.chains) * self.evaluations_per_step
        self.idle += evaluations
        plan = None
        for one in sorted(found, key=lambda one: one.seconds):
            if one.seconds >= best:
                break
            result = self._packed(one.decisions)
            if result.peak <= self.problem.memory:
                plan, best, self.best = finish_packed(self.problem, result, NAME), one.seconds, one.decisions
                self.seconds = best
                break
            # where packing overshoots, this chain gets that much less memory and a little less again
            one.chain.memory = aligned(self.problem, _STEP * one.chain.memory / result.peak)
        if best < self.goal * _GAIN:
            self.goal, self.idle = best, 0
        self._restart()
        return SearchStep(evaluations, plan, "improving the best plan itself", min(1.0, self.idle / self.patience))

    def state_dict(self) -> dict[str, Any]:
        """The state of every chain, and the random states."""
        return {
            "chains": [
                {"decisions": one.decisions.to_json(), "memory": one.memory, "rng_state": int(one.rng_state[0])}
                for one in self.chains
            ],
            "best": None if self.best is None else self.best.to_json(),
            "seconds": self.seconds if np.isfinite(self.seconds) else None,
            "random": self.random.bit_generator.state,
            "idle": self.idle,
            "search_steps": self.search_steps,
            "goal": self.goal if np.isfinite(self.goal) else None,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        self.chains = [
            AnnealingChain(
                Decisions.from_json(self.problem, one["decisions"]),
                valid.whole(one["memory"], 0, self.problem.memory),
                np.array([valid.rng_state(one["rng_state"])], np.uint64),
            )
            for one in state["chains"]
        ]
        self.best = None if state["best"] is None else Decisions.from_json(self.problem, state["best"])
        self.seconds = valid.seconds(state["seconds"])
        self.random.bit_generator.state = state["random"]
        self.idle, self.search_steps = (valid.whole(state[name], 0, 1 << 40) for name in ("idle", "search_steps"))
        self.goal = valid.seconds(state["goal"])

    def _start_chains(self) -> None:
        """Start from the best plan and from the first unplaced plan of each order."""
        problem, evaluator = self.problem, Evaluator(self.problem)
        first = {
            candidate.order.tobytes(): replace(candidate, prefetch=True) for candidate in reversed(ways(self.context))
        }
        evaluations = [one for one in self.context.each(evaluator.try_one, first.values()) if one is not None]
        evaluations.sort(key=lambda one: one.seconds)
        starts = [decisions_of_unplaced(problem, one.draft) for one in evaluations]
        self._take_best_plan()
        if self.best is not None:
            starts.insert(0, self.best)
        seeds = self.random.integers(1, 2**62, _CHAINS) * 2 + 1
        self.chains = [
            AnnealingChain(starts[number % len(starts)].copy(), problem.memory, np.array([seed], np.uint64))
            for number, seed in enumerate(seeds if starts else ())
        ]

    def _take_best_plan(self) -> None:
        plan = self.context.plan()
        self.best = None if plan is None else decisions_of_plan(self.problem, plan)

    def _anneal(self, number: int, below: float) -> ChainBest:
        previous = self.chains[number]  # unchanged if this is cancelled
        chain = AnnealingChain(previous.decisions.copy(), previous.memory, previous.rng_state.copy())
        best = previous.decisions.copy()
        temperature = _TEMPERATURES[(number + self.search_steps) % len(_TEMPERATURES)]
        seconds = anneal(
            self.problem.arrays, self.arrays, chain.decisions, best, chain.rng_state, self.evaluations_per_step,
            chain.memory, below, temperature / self.problem.ops, self.exact, self.problem.stop.flag,
        )  # fmt: skip
        self.problem.stop.check()
        return ChainBest(chain, seconds, best)

    def _restart(self) -> None:
        """Let some chains continue from the best plan."""
        for chain in self.chains:
            if self.random.random() < _RESTARTED and self.best is not None:
                chain.decisions = self.best.copy()
                chain.memory = aligned(self.problem, min(1.0, _MORE * chain.memory / self.problem.memory))

    def _packed(self, decisions: Decisions) -> PackedPlan:
        """Decode and time decisions again, and look for offsets."""
        problem = self.problem
        buffers = blank_decode_buffers(problem.ops, problem.storages, len(problem.arrays.touches.items))
        run = timed(self.arrays, decisions, buffers, decode(self.arrays, decisions, buffers))
        uses = uses_of(decisions.order, problem.arrays)
        draft = UnplacedPlan(
            decisions.order.copy(), uses, decisions.resident.copy(), run.absences, buffers.reuses_buffer_of
        )
        return packed(problem, draft, Timing(run.seconds, run.outs, run.ins, run.compute, run.out_spans, run.in_spans))
