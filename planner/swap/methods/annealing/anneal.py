"""Simulated annealing over choices (Kirkpatrick, Gelatt and Vecchi, Science 1983)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.kernels import kernel
from planner.memory.packing.exact import stack
from planner.swap.draft.absences import Gaps
from planner.swap.draft.draft import stays_of
from planner.swap.draft.tighten import trim
from planner.swap.methods.annealing.choices import Choices, Facts
from planner.swap.methods.annealing.lay_out import Sheet, blank_sheet, lay_out
from planner.swap.methods.annealing.moves import Chance, change, draw, make_room
from planner.swap.problem.problem import Bytes, Flow, Ints, Seconds
from planner.swap.problem.uses import Uses
from planner.swap.simulate.edf import dispatch_by
from planner.swap.simulate.streams import run_queues
from planner.swap.stop import Flag

#: How often room is made before a change is given up.
_ROOMS = 8
#: Placing is tried to the end for steps of at most so many slots, of which a number has the bits.
MOST_SLOTS = 60
_NODES, _WORK = 3000, 2_000_000


class Timed(NamedTuple):
    """Gaps of choices with their queues and when everything runs."""

    gaps: Gaps
    seconds: float
    outs: Ints
    ins: Ints
    compute: Seconds
    out_spans: Seconds
    in_spans: Seconds


@kernel
def _seconds_of(facts: Facts, choices: Choices, sheet: Sheet, count: int) -> tuple[Ints, Ints, float]:
    gaps = sheet.gaps
    return dispatch_by(
        facts.seconds[choices.order], gaps.ready[:count], gaps.release[:count], gaps.reload[:count], gaps.use[:count],
        gaps.copy[:count], sheet.out_key[:count], sheet.in_key[:count], facts.work[gaps.storage[:count]], facts.shared,
    )  # fmt: skip


@kernel
def _first_gaps(gaps: Gaps, count: int) -> Gaps:
    return Gaps(
        gaps.storage[:count].copy(), gaps.ready[:count].copy(), gaps.release[:count].copy(),
        gaps.reload[:count].copy(), gaps.use[:count].copy(), gaps.copy[:count].copy(),
    )  # fmt: skip


@kernel
def timed(facts: Facts, choices: Choices, sheet: Sheet, count: int) -> Timed:
    """Run what was laid out, and say when everything happens."""
    outs, ins, _ = _seconds_of(facts, choices, sheet, count)
    gaps = _first_gaps(sheet.gaps, count)
    n = choices.order.shape[0]
    compute = np.empty((n, 2))
    out_spans, in_spans = np.empty((outs.shape[0], 2)), np.empty((ins.shape[0], 2))
    work = facts.work[gaps.storage]
    seconds = run_queues(
        facts.seconds[choices.order], gaps.ready[outs], gaps.release[outs], work[outs], gaps.reload[ins],
        gaps.use[ins], work[ins], facts.shared, np.empty((2, n + 1), np.int32), compute, out_spans, in_spans,
    )  # fmt: skip
    return Timed(gaps, seconds, outs, ins, compute, out_spans, in_spans)


@kernel
def _fits(flow: Flow, facts: Facts, choices: Choices, sheet: Sheet, count: int, memory: int) -> bool:
    """Whether the trimmed stays can be placed, if that is found out soon."""
    run = timed(facts, choices, sheet, count)
    if run.seconds < 0:
        return False
    uses = Uses(facts.uses_start, sheet.slot, sheet.writes, sheet.inherits, sheet.level)
    trim(uses, run.gaps, sheet.inherits, run.outs, run.ins, run.compute, run.out_spans, run.in_spans)
    stays = stays_of(flow, uses, choices.resident, run.gaps, sheet.inherits)
    m, rows, n = facts.bytes.shape[0], stays.storage.shape[0], choices.order.shape[0]
    first, last = np.full(m, -1, np.int32), np.full(m, -1, np.int32)
    box = np.arange(rows)
    for r in range(rows):
        s = stays.storage[r]
        last[s] = r
        if first[s] < 0:
            first[s] = r
    for i in range(n):  # in the order of time, so that chains end in their first box
        s = sheet.inherits[i]
        if s >= 0:
            box[first[facts.creates[choices.order[i]]]] = box[last[s]]
    for s in range(m):
        if first[s] >= 0 and choices.resident[s] and facts.stateful[s]:
            box[first[s]] = box[last[s]]
    masks, sizes = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    for r in range(rows):
        sizes[box[r]] = facts.bytes[stays.storage[r]]
        for i in range(stays.start[r], stays.stop[r]):
            masks[box[r]] |= 1 << i
    nodes = min(_NODES, _WORK // (1 + rows * n))
    return stack(masks, sizes, n, memory, nodes, np.zeros(rows, np.int64)) == 1


@kernel
def _assign(into: Choices, source: Choices) -> None:
    into.order[:] = source.order
    into.resident[:] = source.resident
    into.donor[:] = source.donor
    into.spans[:] = source.spans


@kernel
def _over(level: Bytes, memory: int, chance: Chance) -> int:
    """A slot with more bytes than there are, or -1."""
    found, seen = -1, 0
    for i in range(level.shape[0] - 1):
        if level[i] > memory:
            seen += 1
            if draw(chance, seen) == 0:
                found = i
    return found


@kernel
def anneal(
    flow: Flow,
    facts: Facts,
    choices: Choices,
    best: Choices,
    chance: Chance,
    evaluations: int,
    memory: int,
    below: float,
    heat: float,
    exact: bool,
    stop: Flag,
) -> float:
    """Change choices again and again; keep what is faster, and now and then what is slower.

    Args:
        flow, facts: the problem.
        choices: where to begin; changed to where it ends.
        best: filled with the fastest choices that were met, if they take less than `below`.
        chance: the random generator.
        evaluations: how many changes to try.
        memory: bytes.
        below: seconds.
        heat: share of the step's time that a change for the worse costs when it is taken one time in three; goes
            down to nothing until the end.
        exact: whether only what can be placed counts as fastest.
        stop: `[1]`; once it is not 0, no more changes are tried.

    Returns:
        Seconds of the fastest; infinite if nothing took less than `below`.
    """
    n, m = choices.order.shape[0], facts.bytes.shape[0]
    sheet = blank_sheet(n, m, facts.touch_items.shape[0])
    count = lay_out(facts, choices, sheet)
    now, over = np.inf, max(0, sheet.level[:n].max() - memory)
    found = np.inf
    if over == 0:
        _, _, now = _seconds_of(facts, choices, sheet, count)
        if now < below and (not exact or _fits(flow, facts, choices, sheet, count, memory)):
            found = below = now
            _assign(best, choices)
    trial = Choices(choices.order.copy(), choices.resident.copy(), choices.donor.copy(), choices.spans.copy())
    for e in range(evaluations):
        if stop[0] != 0:
            break
        _assign(trial, choices)
        focus = draw(chance, n) if draw(chance, 4) else -1
        change(facts, trial, sheet, count, focus, chance)
        while draw(chance, 5) < 2:
            change(facts, trial, sheet, count, focus, chance)
        count = lay_out(facts, trial, sheet)
        for _ in range(_ROOMS):
            full = _over(sheet.level, memory, chance)
            if full < 0 or not make_room(facts, trial, sheet, full, chance):
                break
            count = lay_out(facts, trial, sheet)
        excess = max(0, sheet.level[:n].max() - memory)
        if excess > over or (excess > 0 and over == 0):
            count = lay_out(facts, choices, sheet)
            continue
        then = np.inf
        if excess == 0:
            _, _, then = _seconds_of(facts, trial, sheet, count)
            if then < below * (1 - 1e-9):
                if exact and not _fits(flow, facts, trial, sheet, count, memory):
                    count = lay_out(facts, choices, sheet)
                    continue
                found = below = then
                _assign(best, trial)
        warm = heat * (1 - e / evaluations) * now
        if excess < over or then <= now or (
            warm > 0 and then < now + 8 * warm and draw(chance, 1 << 30) < np.exp((now - then) / warm) * (1 << 30)
        ):  # fmt: skip
            now, over = then, excess
            _assign(choices, trial)
        else:
            count = lay_out(facts, choices, sheet)
    return float(found)
