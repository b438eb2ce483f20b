"""A candidate: all inputs of an eviction pass or of peak shaving, which give the same unplaced plan every time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from planner.swap.draft.draft import UnplacedPlan
from planner.swap.draft.prefetch import prefetch_early
from planner.swap.emit.place_and_assemble import PackedPlan, packed
from planner.swap.evict.cyclic_addresses import AddressPass, PlacedPlan
from planner.swap.evict.cyclic_bytes import bytes_pass, clock_of
from planner.swap.evict.pass_scratch_pool import ScratchPool
from planner.swap.evict.peak_shaving import shave
from planner.swap.methods import checkpoint_validation as valid
from planner.swap.problem.problem import Flags, Ints, Problem, Seconds
from planner.swap.simulate.draft_timing import Timing, time_draft

#: The smallest persistent storages within this share of memory never leave: swapping them only costs more passes.
_ALWAYS_RESIDENT_SHARE = 0.03


@dataclass(frozen=True, eq=False)
class Candidate:
    """The inputs of an eviction pass, or of peak shaving.

    Args:
        order: the op in each slot.
        memory: aligned bytes that the pass may fill; the rest of the problem's memory eases packing.
        lead: the time reserved for a reload, in multiples of its work.
        avoid_late_copies: whether a storage stays if its copy out could not be done in time.
        prefetch: whether reloads are then moved as early as memory allows.
        short_lived_slots: 0 to run the pass by bytes and pack afterwards; otherwise the pass assigns addresses, and
            storages that die within this many slots are placed at the upper end.
        clock: `[slots + 1]`, estimated start of each slot, and the end; None for a step that never waits.
        bias: `[storages]`, factor on the time of each storage's next use, above 1 leaves sooner; None for 1.
        initial_residents: `[storages]`, live-in storages that may be on the device when the step starts; None to
            determine them.
        shaving: None to decide slot by slot, in an eviction pass; otherwise peaks are shaved by bytes, and this is how
            much the cost of copies counts there.
    """

    order: Ints
    memory: int
    lead: float = 1.0
    avoid_late_copies: bool = False
    prefetch: bool = False
    short_lived_slots: int = 0
    clock: Seconds | None = None
    bias: Seconds | None = None
    initial_residents: Flags | None = None
    shaving: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The candidate as plain data."""
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ("order", "clock", "bias", "initial_residents")}
        numbers = {
            name: getattr(self, name)
            for name in ("memory", "lead", "avoid_late_copies", "prefetch", "short_lived_slots", "shaving")
        }
        return numbers | {name: None if array is None else array.tolist() for name, array in arrays.items()}

    @staticmethod
    def from_json(problem: Problem, data: dict[str, Any]) -> Candidate:
        """The candidate that `to_json` returned, for the same problem.

        Raises:
            LookupError, TypeError, ValueError: the data is not a candidate for it.
        """
        return Candidate(
            valid.order(problem, data["order"]),
            valid.whole(data["memory"], 0, problem.memory),
            valid.number(data["lead"], 1e-3, 1e3),
            valid.flags([data["avoid_late_copies"]], 1).item(),
            valid.flags([data["prefetch"]], 1).item(),
            valid.whole(data["short_lived_slots"], 0, 1 << 20),
            valid.optional(valid.clock, problem, data["clock"]),
            valid.optional(valid.bias, problem, data["bias"]),
            None if data["initial_residents"] is None else valid.flags(data["initial_residents"], problem.storages),
            None if data["shaving"] is None else valid.number(data["shaving"], 0.0, 10.0),
        )


class Evaluation(NamedTuple):
    """The result of a candidate: an unplaced plan with its times and, if the pass assigned addresses, those."""

    candidate: Candidate
    draft: UnplacedPlan
    timing: Timing
    placed: PlacedPlan | None

    @property
    def seconds(self) -> float:
        """The step's time."""
        return self.timing.seconds


@dataclass(eq=False)
class Evaluator:
    """Evaluates candidates for a problem; several threads may use it at a time."""

    problem: Problem

    def __post_init__(self) -> None:
        self.scratch_pool = ScratchPool(self.problem)
        self.always_resident = small_persistent(self.problem)

    def try_one(self, candidate: Candidate) -> Evaluation | None:
        """Run a candidate's eviction pass and time the result; None if it does not fit or finds no cyclic schedule.

        Raises:
            Cancelled: cancellation was requested.
        """
        problem = self.problem
        problem.stop.check()
        clock = clock_of(problem, candidate.order) if candidate.clock is None else candidate.clock
        if candidate.shaving is not None:
            draft = shave(
                problem, candidate.order, clock, candidate.memory, exponent=candidate.shaving, lead=candidate.lead,
                bias=candidate.bias,
            )  # fmt: skip
            return None if draft is None else self._timed(candidate, draft)
        with self.scratch_pool.borrowed() as borrowed:
            by_bytes = bytes_pass(problem, candidate.order, borrowed.scratch)
            if candidate.short_lived_slots:
                by_address = AddressPass(by_bytes, borrowed.space)
                for always_resident in (self.always_resident, None):
                    placed = by_address.draft(
                        clock,
                        lead=candidate.lead,
                        short_lived_slots=candidate.short_lived_slots,
                        always_resident=always_resident,
                    )
                    if placed is not None:
                        break
                if placed is None:
                    return None
                return Evaluation(candidate, placed.draft, time_draft(problem, placed.draft), placed)
            draft = by_bytes.draft(
                clock, candidate.memory, lead=candidate.lead, avoid_late_copies=candidate.avoid_late_copies,
                always_resident=self.always_resident, bias=candidate.bias,
                initial_residents=candidate.initial_residents,
            )  # fmt: skip
        return None if draft is None else self._timed(candidate, draft)

    def try_both(self, candidate: Candidate) -> list[Evaluation]:
        """The results of a candidate without and with prefetching, from one pass; empty if there are none.

        Raises:
            Cancelled: cancellation was requested.
        """
        late = self.try_one(replace(candidate, prefetch=False))
        return [] if late is None else [late, self._timed(replace(candidate, prefetch=True), late.draft)]

    def _timed(self, candidate: Candidate, draft: UnplacedPlan) -> Evaluation:
        if candidate.prefetch:
            draft = prefetch_early(self.problem.arrays, draft, candidate.memory)
        return Evaluation(candidate, draft, time_draft(self.problem, draft), None)

    def pack(self, evaluation: Evaluation) -> PackedPlan:
        """Tighten the residencies of a pass by bytes and look for offsets."""
        return packed(self.problem, evaluation.draft, evaluation.timing)


def small_persistent(problem: Problem) -> Flags:
    """The smallest persistent storages, together at most a small share of memory."""
    arrays = problem.arrays
    small = np.intersect1d(np.flatnonzero(arrays.persistent), arrays.touches.items)
    small = small[np.argsort(arrays.bytes[small], kind="stable")]
    always_resident = np.zeros(problem.storages, np.bool_)
    always_resident[small[np.cumsum(arrays.bytes[small]) <= _ALWAYS_RESIDENT_SHARE * problem.memory]] = True
    return always_resident
