"""The last steps from a draft to a plan: trim, place, write down."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from planner.memory import pack
from planner.plan import SwapPlan
from planner.swap.draft.absences import first_gaps
from planner.swap.draft.draft import Draft, Stays, stays_of
from planner.swap.draft.tighten import trim
from planner.swap.emit.assemble import assemble
from planner.swap.emit.packing_buffers import boxes_of
from planner.swap.evict.cyclic_addresses import Placed
from planner.swap.problem.problem import Bytes, Problem
from planner.swap.simulate.draft_timing import Timing

_ROUNDS = 24
#: What greedy orders leave higher than this many times the memory is not worth reordering.
_NEARLY = 1.02


class Packed(NamedTuple):
    """A trimmed draft with its times, its residencies, an offset in bytes for each, and the height they take."""

    draft: Draft
    timing: Timing
    stays: Stays
    offsets: Bytes
    height: int


def packed(problem: Problem, draft: Draft, timing: Timing) -> Packed:
    """Trim a draft and look for offsets within the budget.

    Args:
        problem: what is planned.
        draft, timing: who is away when, and when everything happens.

    Raises:
        Stopped: it was asked to stop.
    """
    draft, stays = _trimmed(problem, draft, timing)
    boxes = boxes_of(problem, draft, stays)
    columns = (boxes.lower, boxes.upper, boxes.bytes)
    packing = pack(*columns, capacity=problem.memory, repeats=True, rounds=0, between=problem.stop.check)
    if problem.memory < packing.height <= _NEARLY * problem.memory:
        packing = pack(*columns, capacity=problem.memory, repeats=True, rounds=_ROUNDS, between=problem.stop.check)
    return Packed(draft, timing, stays, packing.offsets[boxes.of], packing.height)


def finish_packed(problem: Problem, found: Packed, method: str) -> SwapPlan:
    """Write down a draft that was packed within the budget."""
    return assemble(problem, found.draft, found.stays, found.offsets, found.timing.outs, found.timing.ins, method)


def finish_draft(problem: Problem, draft: Draft, timing: Timing, method: str) -> SwapPlan | None:
    """Trim a draft, place it and write it down; None where it does not fit into the budget."""
    found = packed(problem, draft, timing)
    return None if found.height > problem.memory else finish_packed(problem, found, method)


def finish_placed(problem: Problem, placed: Placed, timing: Timing, method: str) -> SwapPlan:
    """Write down a draft that has offsets already."""
    draft, stays = _trimmed(problem, placed.draft, timing)
    return assemble(problem, draft, stays, placed.offsets, timing.outs, timing.ins, method)


def _trimmed(problem: Problem, draft: Draft, timing: Timing) -> tuple[Draft, Stays]:
    problem.stop.check()
    draft = replace(draft, gaps=first_gaps(draft.gaps, len(draft.gaps.storage)))  # the one given may be needed again
    trim(
        draft.uses, draft.gaps, draft.inherits, timing.outs, timing.ins,
        timing.compute, timing.out_spans, timing.in_spans,
    )  # fmt: skip
    return draft, stays_of(problem.flow, draft.uses, draft.resident, draft.gaps, draft.inherits)
