"""A recipe: all that a walk decides from, so that the same recipe always gives the same draft."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from planner.swap.draft.draft import Draft
from planner.swap.draft.prefetch import prefetched
from planner.swap.emit.finish import Packed, packed
from planner.swap.evict.cyclic_addresses import Placed, Settler
from planner.swap.evict.cyclic_bytes import clock_of, walker
from planner.swap.evict.scratch_pool import Places
from planner.swap.methods import recalled
from planner.swap.problem.problem import Flags, Ints, Problem, Seconds
from planner.swap.simulate.draft_timing import Timing, time_draft

#: Share of memory whose smallest persistent storages never leave: swapping them gains nothing and costs many walks.
_PINNED_SHARE = 0.03


@dataclass(frozen=True, eq=False)
class Recipe:
    """How to walk.

    Args:
        order: the op in each slot.
        memory: aligned bytes that the walk may fill; what is left of the problem's eases packing.
        lead: a reload is given this many times its work.
        heed: whether a storage stays whose copy out could not be done in time.
        early: whether reloads are then moved as early as memory allows.
        brief: 0 to walk by bytes and pack afterwards; otherwise to walk with addresses, where what dies within this
            many slots lies at the upper end.
        clock: `[slots + 1]`, when each slot is thought to begin, and the end; None for a step that never waits.
        bias: `[storages]`, factor on the time of each one's next use, above 1 leaves sooner; None for 1.
        start: `[storages]`, held storages that may be on the device when the step starts; None to find out.
    """

    order: Ints
    memory: int
    lead: float = 1.0
    heed: bool = False
    early: bool = False
    brief: int = 0
    clock: Seconds | None = None
    bias: Seconds | None = None
    start: Flags | None = None

    def to_json(self) -> dict[str, Any]:
        """The recipe as plain data."""
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ("order", "clock", "bias", "start")}
        numbers = {name: getattr(self, name) for name in ("memory", "lead", "heed", "early", "brief")}
        return numbers | {name: None if array is None else array.tolist() for name, array in arrays.items()}

    @staticmethod
    def from_json(problem: Problem, data: dict[str, Any]) -> Recipe:
        """The recipe that `to_json` wrote down, for the same problem.

        Raises:
            LookupError, TypeError, ValueError: it holds what is no recipe for it.
        """
        return Recipe(
            recalled.order(problem, data["order"]),
            recalled.whole(data["memory"], 0, problem.memory),
            recalled.number(data["lead"], 1e-3, 1e3),
            recalled.flags([data["heed"]], 1).item(),
            recalled.flags([data["early"]], 1).item(),
            recalled.whole(data["brief"], 0, 1 << 20),
            recalled.optional(recalled.clock, problem, data["clock"]),
            recalled.optional(recalled.bias, problem, data["bias"]),
            None if data["start"] is None else recalled.flags(data["start"], problem.storages),
        )


class Tried(NamedTuple):
    """What came of a recipe: a draft with its times, and where it was walked with addresses, those."""

    recipe: Recipe
    draft: Draft
    timing: Timing
    placed: Placed | None

    @property
    def seconds(self) -> float:
        """The step's time."""
        return self.timing.seconds


@dataclass(eq=False)
class Kitchen:
    """Tries recipes for a problem; several threads may try at a time."""

    problem: Problem

    def __post_init__(self) -> None:
        self.places = Places(self.problem)
        self.pinned = small_held(self.problem)

    def try_one(self, recipe: Recipe) -> Tried | None:
        """Walk a recipe and time what comes of it; None where something does not fit or no steady state is found.

        Raises:
            Stopped: it was asked to stop.
        """
        problem = self.problem
        problem.stop.check()
        clock = clock_of(problem, recipe.order) if recipe.clock is None else recipe.clock
        with self.places.borrowed() as place:
            along = walker(problem, recipe.order, place.scratch)
            if recipe.brief:
                settler = Settler(along, place.ground)
                for anchored in (self.pinned, None):
                    placed = settler.draft(clock, lead=recipe.lead, brief=recipe.brief, anchored=anchored)
                    if placed is not None:
                        break
                if placed is None:
                    return None
                return Tried(recipe, placed.draft, time_draft(problem, placed.draft), placed)
            draft = along.draft(
                clock, recipe.memory, lead=recipe.lead, heed=recipe.heed, pinned=self.pinned, bias=recipe.bias,
                start=recipe.start,
            )  # fmt: skip
        if draft is None:
            return None
        if recipe.early:
            draft = prefetched(problem.flow, draft, recipe.memory)
        return Tried(recipe, draft, time_draft(problem, draft), None)

    def pack(self, tried: Tried) -> Packed:
        """Trim what was walked by bytes and look for offsets."""
        return packed(self.problem, tried.draft, tried.timing)


def small_held(problem: Problem) -> Flags:
    """The smallest storages that live over steps, together at most a small share of memory."""
    flow = problem.flow
    small = np.intersect1d(np.flatnonzero(flow.stateful), flow.touches.items)
    small = small[np.argsort(flow.bytes[small], kind="stable")]
    pinned = np.zeros(problem.storages, np.bool_)
    pinned[small[np.cumsum(flow.bytes[small]) <= _PINNED_SHARE * problem.memory]] = True
    return pinned
