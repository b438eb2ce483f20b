"""Tries a choice of what runs again: rewrites the problem, and plans and times what comes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from planner.plan import SwapPlan
from planner.swap.draft.absences import blank_absences
from planner.swap.draft.draft import UnplacedPlan
from planner.swap.emit.place_and_assemble import PackedPlan, finish_packed, packed
from planner.swap.methods import checkpoint_validation as valid
from planner.swap.methods.candidate import Candidate, Evaluator
from planner.swap.problem.problem import Flags, Ints, Problem
from planner.swap.problem.uses import uses_of
from planner.swap.recompute.choice import RecomputePrices, chosen_groups
from planner.swap.recompute.forward_pass import ForwardPass, forward_pass
from planner.swap.recompute.rewrite import rewrite
from planner.swap.simulate.draft_timing import Timing, time_draft

#: How much the cost of copies counts when peaks are shaved.
_SHAVING = 0.5
_REPLANNED = 2


@dataclass(frozen=True, eq=False)
class RecomputeTrial:
    """What is tried: prices, and the aligned bytes to plan for, which leave the rest of memory to packing."""

    choice: RecomputePrices
    memory: int

    def to_json(self) -> dict[str, Any]:
        """The trial as plain data."""
        return {"every": self.choice.every, "price": self.choice.price.tolist(), "memory": self.memory}

    @staticmethod
    def from_json(problem: Problem, data: dict[str, Any]) -> RecomputeTrial:
        """The trial that `to_json` returned, for the same problem.

        Raises:
            LookupError, TypeError, ValueError: the data is not a trial for it.
        """
        price = np.array([valid.number(each) for each in data["price"]], np.float64)
        if len(price) != problem.storages:
            raise ValueError("there is not one price for each storage")
        return RecomputeTrial(
            RecomputePrices(valid.whole(data["every"], 0, 1 << 20), price), valid.whole(data["memory"], 0, 1 << 62)
        )


@dataclass(frozen=True, eq=False)
class RecomputeOutcome:
    """The result of a trial.

    Args:
        trial, chosen: what was tried, and which groups run again by it.
        problem: rewritten so.
        draft, timing: the unplaced plan and its times; None if the bytes of some slot do not fit.
        packing: with its offsets, if that was tried.
        rate: what outcomes are compared by: seconds, more if it does not fit.
    """

    trial: RecomputeTrial
    chosen: Flags
    problem: Problem
    draft: UnplacedPlan | None
    timing: Timing | None
    packing: PackedPlan | None
    rate: float

    @property
    def seconds(self) -> float:
        """The step's time."""
        return float(np.inf) if self.timing is None else self.timing.seconds

    @property
    def fits(self) -> bool:
        """Whether it was packed within the memory."""
        return self.packing is not None and self.packing.peak <= self.problem.memory

    def plan(self, method: str) -> SwapPlan:
        """The plan of an outcome that fits."""
        assert self.packing is not None
        return finish_packed(self.problem, self.packing, method)


@dataclass(eq=False)
class TrialRunner:
    """Runs trials for a problem; several threads may use it at a time.

    Args:
        problem: one in which each op has one instance.
        copies: whether what is not made anew may be copied to the host and back.
        most_seconds: the most that may run again, in seconds.
    """

    problem: Problem
    copies: bool
    most_seconds: float

    @cached_property
    def forward(self) -> ForwardPass:
        """What the forward pass makes."""
        return forward_pass(self.problem)

    def run(self, trial: RecomputeTrial, below: float) -> RecomputeOutcome | None:
        """Plan by bytes; None if it runs too much again, or is no faster than `below` even if nothing ever waited.

        Raises:
            Cancelled: cancellation was requested.
        """
        problem = self.problem
        problem.stop.check()
        chosen = chosen_groups(self.forward, trial.choice)
        again = float(self.forward.seconds[chosen].sum())
        if again > self.most_seconds or problem.ideal_seconds + again >= below:
            return None
        rewritten = rewrite(problem, self.forward, chosen)
        order, problem = rewritten.order, rewritten.problem
        peak = int(uses_of(order, problem.arrays).live.max(initial=0))
        if peak <= trial.memory:
            return self._outcome(trial, chosen, problem, _all_kept(problem, order))
        if not self.copies:
            return RecomputeOutcome(trial, chosen, problem, None, None, None, _UNFIT * peak / max(1, problem.memory))
        best: RecomputeOutcome | None = None
        evaluator = Evaluator(problem)
        shaved = Candidate(order, trial.memory, prefetch=True, shaving=_SHAVING)
        for candidate in (Candidate(order, trial.memory, prefetch=True), *[shaved] * _REPLANNED):
            clock = shaved.clock if candidate.shaving is not None else None
            found = evaluator.try_one(replace(candidate, clock=clock))
            if found is not None:
                if candidate.shaving is not None:
                    shaved = replace(shaved, clock=found.timing.clock)
                if best is None or found.seconds < best.seconds:
                    best = RecomputeOutcome(trial, chosen, problem, found.draft, found.timing, None, found.seconds)
        return best

    def pack(self, outcome: RecomputeOutcome, best: float) -> RecomputeOutcome:
        """Look for offsets; `best` is the time of the fastest plan there is."""
        if outcome.draft is None or outcome.timing is None or outcome.packing is not None:
            return outcome
        packing = packed(outcome.problem, outcome.draft, outcome.timing)
        over = max(1.0, packing.peak / max(1, outcome.problem.memory))
        slower = best if np.isfinite(best) else outcome.seconds
        return replace(outcome, packing=packing, rate=outcome.seconds if over == 1.0 else slower * over)

    def _outcome(self, trial: RecomputeTrial, chosen: Flags, problem: Problem, draft: UnplacedPlan) -> RecomputeOutcome:
        timing = time_draft(problem, draft)
        return RecomputeOutcome(trial, chosen, problem, draft, timing, None, timing.seconds)


#: Seconds, more than any step takes, by which plans that do not fit are compared.
_UNFIT = 1e12


def _all_kept(problem: Problem, order: Ints) -> UnplacedPlan:
    """The unplaced plan in which nothing ever leaves."""
    arrays, uses = problem.arrays, uses_of(order, problem.arrays)
    resident = arrays.live_in & ((np.diff(uses.start) > 0) | arrays.live_out)
    return UnplacedPlan(order, uses, resident, blank_absences(0), uses.reused_buffer)
