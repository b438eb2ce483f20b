"""The last steps from an unplaced plan to a plan: tighten, pack, assemble."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from planner.memory import pack
from planner.plan import SwapPlan
from planner.swap.draft.absences import first_absences
from planner.swap.draft.draft import UnplacedPlan, UnplacedResidencies, unplaced_residencies
from planner.swap.draft.tighten_residencies import tighten_residencies
from planner.swap.emit.assemble import assemble
from planner.swap.emit.packing_buffers import packing_buffers
from planner.swap.evict.cyclic_addresses import PlacedPlan
from planner.swap.problem.problem import Bytes, Problem
from planner.swap.simulate.draft_timing import Timing

_ROUNDS = 24
#: A greedy packing higher than this many times the memory is not worth reordering.
_NEARLY_FITS = 1.02


class PackedPlan(NamedTuple):
    """A tightened unplaced plan with its timing, residencies, their offsets and the peak of the packing in bytes."""

    draft: UnplacedPlan
    timing: Timing
    residencies: UnplacedResidencies
    offsets: Bytes
    peak: int


def packed(problem: Problem, draft: UnplacedPlan, timing: Timing) -> PackedPlan:
    """Tighten an unplaced plan and search for offsets within the budget.

    Args:
        problem: what is planned.
        draft, timing: the unplaced plan, and when everything in it happens.

    Raises:
        Cancelled: cancellation was requested.
    """
    draft, residencies = _tightened(problem, draft, timing)
    boxes = packing_buffers(problem, draft, residencies)
    columns = (boxes.lower, boxes.upper, boxes.bytes)
    packing = pack(*columns, capacity=problem.memory, repeats=True, rounds=0, stop=problem.stop)
    if problem.memory < packing.peak <= _NEARLY_FITS * problem.memory:
        packing = pack(*columns, capacity=problem.memory, repeats=True, rounds=_ROUNDS, stop=problem.stop)
    return PackedPlan(draft, timing, residencies, packing.offsets[boxes.box_of], packing.peak)


def finish_packed(problem: Problem, packed_plan: PackedPlan, method: str) -> SwapPlan:
    """Assemble a plan from one that was packed within the budget."""
    return assemble(
        problem,
        packed_plan.draft,
        packed_plan.residencies,
        packed_plan.offsets,
        packed_plan.timing.outs,
        packed_plan.timing.ins,
        method,
    )


def finish_draft(problem: Problem, draft: UnplacedPlan, timing: Timing, method: str) -> SwapPlan | None:
    """Tighten, pack and assemble an unplaced plan; None if it does not fit into the budget."""
    packed_plan = packed(problem, draft, timing)
    return None if packed_plan.peak > problem.memory else finish_packed(problem, packed_plan, method)


def finish_placed(problem: Problem, placed: PlacedPlan, timing: Timing, method: str) -> SwapPlan:
    """Assemble a plan that has offsets already."""
    draft, residencies = _tightened(problem, placed.draft, timing)
    return assemble(problem, draft, residencies, placed.offsets, timing.outs, timing.ins, method)


def _tightened(problem: Problem, draft: UnplacedPlan, timing: Timing) -> tuple[UnplacedPlan, UnplacedResidencies]:
    problem.stop.check()
    draft = replace(
        draft, absences=first_absences(draft.absences, len(draft.absences.storage))
    )  # the caller may still need its own
    tighten_residencies(
        draft.uses, draft.absences, draft.reuses_buffer_of, timing.outs, timing.ins,
        timing.compute, timing.out_spans, timing.in_spans,
    )  # fmt: skip
    return draft, unplaced_residencies(
        problem.arrays, draft.uses, draft.resident, draft.absences, draft.reuses_buffer_of
    )
