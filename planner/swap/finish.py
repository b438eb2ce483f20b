"""The last steps from a draft to a plan: trim, place, write down."""

from __future__ import annotations

from planner.memory import SwapPlan, pack
from planner.swap.assemble import assemble
from planner.swap.boxes import boxes_of
from planner.swap.draft import Draft, stays_of
from planner.swap.problem import Problem
from planner.swap.settle import Placed
from planner.swap.timing import Timing
from planner.swap.trim import trim

_ROUNDS = 24


def finish_draft(problem: Problem, draft: Draft, timing: Timing, method: str) -> tuple[SwapPlan | None, int]:
    """Trim a draft and place it within the budget.

    Args:
        problem: what is planned.
        draft, timing: who is away when, and when everything happens; the draft is trimmed in place.
        method: which planner made it.

    Returns:
        The plan, or None where it does not fit, and the bytes that it takes.
    """
    outs, ins = timing.outs, timing.ins
    trim(draft.uses, draft.gaps, outs, ins, timing.compute, timing.out_spans, timing.in_spans)
    stays = stays_of(problem.flow, draft.uses, draft.resident, draft.gaps, draft.inherits)
    boxes = boxes_of(problem, draft, stays)
    packing = pack(boxes.lower, boxes.upper, boxes.bytes, capacity=problem.memory, repeats=True, rounds=_ROUNDS)
    if packing.height > problem.memory:
        return None, packing.height
    return assemble(problem, draft, stays, packing.offsets[boxes.of], outs, ins, method), packing.height


def finish_placed(problem: Problem, placed: Placed, timing: Timing, method: str) -> SwapPlan:
    """Write down a draft that has offsets already."""
    draft = placed.draft
    trim(draft.uses, draft.gaps, timing.outs, timing.ins, timing.compute, timing.out_spans, timing.in_spans)
    stays = stays_of(problem.flow, draft.uses, draft.resident, draft.gaps, draft.inherits)
    return assemble(problem, draft, stays, placed.offsets, timing.outs, timing.ins, method)
