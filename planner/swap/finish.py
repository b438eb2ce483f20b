"""The last steps from a draft to a plan: trim, place, write down."""

from __future__ import annotations

from planner.memory import SwapPlan
from planner.swap.assemble import assemble
from planner.swap.draft import Draft, stays_of
from planner.swap.place import boxes_of, place
from planner.swap.problem import Problem
from planner.swap.settle import Placed
from planner.swap.timing import Timing
from planner.swap.trim import trim


def finish_draft(problem: Problem, draft: Draft, timing: Timing, method: str) -> SwapPlan | None:
    """Trim a draft and place it within the budget; None where it does not fit.

    Args:
        problem: what is planned.
        draft, timing: who is away when, and when everything happens; the draft is trimmed in place.
        method: which planner made it.
    """
    outs, ins = timing.outs, timing.ins
    trim(draft.uses, draft.gaps, outs, ins, timing.compute, timing.out_spans, timing.in_spans)
    stays = stays_of(problem.flow, draft.uses, draft.resident, draft.gaps, draft.inherits)
    boxes = boxes_of(problem, draft, stays)
    offsets = place(boxes, problem.memory)
    if offsets is None:
        return None
    return assemble(problem, draft, stays, offsets[boxes.of], outs, ins, method)


def finish_placed(problem: Problem, placed: Placed, timing: Timing, method: str) -> SwapPlan:
    """Write down a draft that has offsets already."""
    draft = placed.draft
    trim(draft.uses, draft.gaps, timing.outs, timing.ins, timing.compute, timing.out_spans, timing.in_spans)
    stays = stays_of(problem.flow, draft.uses, draft.resident, draft.gaps, draft.inherits)
    return assemble(problem, draft, stays, placed.offsets, timing.outs, timing.ins, method)
