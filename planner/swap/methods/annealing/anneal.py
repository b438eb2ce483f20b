"""Simulated annealing over decisions (Kirkpatrick, Gelatt and Vecchi, Science 1983)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.cancel import Flag
from planner.jit import kernel
from planner.memory import stack
from planner.swap.draft.absences import Absences
from planner.swap.draft.draft import unplaced_residencies
from planner.swap.draft.tighten_residencies import tighten_residencies
from planner.swap.methods.annealing.decisions import AnnealingArrays, Decisions
from planner.swap.methods.annealing.decode import DecodeBuffers, blank_decode_buffers, decode
from planner.swap.methods.annealing.moves import RngState, change, draw, make_room
from planner.swap.problem.problem import Bytes, Ints, ProblemArrays, Seconds
from planner.swap.problem.uses import Uses
from planner.swap.simulate.edf import edf_by
from planner.swap.simulate.streams import run_queues

#: Attempts to make room before a change is given up.
_ROOMS = 8
#: Exact placement is tried for steps of at most this many slots, which are the bits of one integer.
MOST_SLOTS = 60
_NODES, _WORK = 3000, 2_000_000


class TimedDecisions(NamedTuple):
    """Absences of decisions, with their queues and all times."""

    absences: Absences
    seconds: float
    outs: Ints
    ins: Ints
    compute: Seconds
    out_spans: Seconds
    in_spans: Seconds


@kernel
def _seconds_of(
    facts: AnnealingArrays, decisions: Decisions, buffers: DecodeBuffers, count: int
) -> tuple[Ints, Ints, float]:
    absences = buffers.absences
    return edf_by(
        facts.seconds[decisions.order], absences.ready[:count], absences.release[:count], absences.reload[:count],
        absences.use[:count], absences.copy[:count], buffers.out_key[:count], buffers.in_key[:count],
        facts.work[absences.storage[:count]], facts.shared,
    )  # fmt: skip


@kernel
def _first_gaps(absences: Absences, count: int) -> Absences:
    return Absences(
        absences.storage[:count].copy(), absences.ready[:count].copy(), absences.release[:count].copy(),
        absences.reload[:count].copy(), absences.use[:count].copy(), absences.copy[:count].copy(),
    )  # fmt: skip


@kernel
def timed(facts: AnnealingArrays, decisions: Decisions, buffers: DecodeBuffers, count: int) -> TimedDecisions:
    """Run the decoded decisions; returns their queues and all times."""
    outs, ins, _ = _seconds_of(facts, decisions, buffers, count)
    absences = _first_gaps(buffers.absences, count)
    n = decisions.order.shape[0]
    compute = np.empty((n, 2))
    out_spans, in_spans = np.empty((outs.shape[0], 2)), np.empty((ins.shape[0], 2))
    work = facts.work[absences.storage]
    seconds = run_queues(
        facts.seconds[decisions.order], absences.ready[outs], absences.release[outs], work[outs], absences.reload[ins],
        absences.use[ins], work[ins], facts.shared, np.empty((2, n + 1), np.int32), compute, out_spans, in_spans,
    )  # fmt: skip
    return TimedDecisions(absences, seconds, outs, ins, compute, out_spans, in_spans)


@kernel
def _fits(
    flow: ProblemArrays, facts: AnnealingArrays, decisions: Decisions, buffers: DecodeBuffers, count: int, memory: int
) -> bool:
    """Whether the tightened residencies can be placed; False if that is not decided soon."""
    run = timed(facts, decisions, buffers, count)
    if run.seconds < 0:
        return False
    uses = Uses(facts.uses_start, buffers.slot, buffers.writes, buffers.reuses_buffer_of, buffers.level)
    tighten_residencies(
        uses, run.absences, buffers.reuses_buffer_of, run.outs, run.ins, run.compute, run.out_spans, run.in_spans
    )
    stays = unplaced_residencies(flow, uses, decisions.resident, run.absences, buffers.reuses_buffer_of)
    m, rows, n = facts.bytes.shape[0], stays.storage.shape[0], decisions.order.shape[0]
    first, last = np.full(m, -1, np.int32), np.full(m, -1, np.int32)
    box = np.arange(rows)
    for r in range(rows):
        s = stays.storage[r]
        last[s] = r
        if first[s] < 0:
            first[s] = r
    for i in range(n):  # in the order of time, so that chains end in their first box
        s = buffers.reuses_buffer_of[i]
        if s >= 0:
            box[first[facts.creates[decisions.order[i]]]] = box[last[s]]
    for s in range(m):
        if first[s] >= 0 and decisions.resident[s] and facts.persistent[s]:
            box[first[s]] = box[last[s]]
    masks, sizes = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    for r in range(rows):
        sizes[box[r]] = facts.bytes[stays.storage[r]]
        for i in range(stays.start[r], stays.stop[r]):
            masks[box[r]] |= 1 << i
    nodes = min(_NODES, _WORK // (1 + rows * n))
    return stack(masks, sizes, n, memory, nodes, np.zeros(rows, np.int64)) == 1


@kernel
def _assign(into: Decisions, source: Decisions) -> None:
    into.order[:] = source.order
    into.resident[:] = source.resident
    into.reused_buffer[:] = source.reused_buffer
    into.spans[:] = source.spans


@kernel
def _over(level: Bytes, memory: int, rng_state: RngState) -> int:
    """A random slot that needs more bytes than there are, or -1."""
    found, seen = -1, 0
    for i in range(level.shape[0] - 1):
        if level[i] > memory:
            seen += 1
            if draw(rng_state, seen) == 0:
                found = i
    return found


@kernel
def anneal(
    flow: ProblemArrays,
    facts: AnnealingArrays,
    decisions: Decisions,
    best: Decisions,
    rng_state: RngState,
    evaluations: int,
    memory: int,
    below: float,
    heat: float,
    exact: bool,
    stop: Flag,
) -> float:
    """Change decisions repeatedly; accept faster ones, and sometimes slower ones.

    Args:
        flow, facts: the problem.
        decisions: where the chain begins; modified to where it ends.
        best: filled with the fastest decisions that were found, if they take less than `below`.
        rng_state: the state of the random generator.
        evaluations: how many changes to try.
        memory: bytes.
        below: seconds.
        heat: share of the step's time that a change for the worse costs when it is accepted one time in three; falls
            to 0 by the end.
        exact: whether only decisions that can be placed count as fastest.
        stop: `[1]`; once it is not 0, no more changes are tried.

    Returns:
        Seconds of the fastest; infinite if nothing took less than `below`.
    """
    n, m = decisions.order.shape[0], facts.bytes.shape[0]
    buffers = blank_decode_buffers(n, m, facts.touch_items.shape[0])
    count = decode(facts, decisions, buffers)
    now, over = np.inf, max(0, buffers.level[:n].max() - memory)
    found = np.inf
    if over == 0:
        _, _, now = _seconds_of(facts, decisions, buffers, count)
        if now < below and (not exact or _fits(flow, facts, decisions, buffers, count, memory)):
            found = below = now
            _assign(best, decisions)
    trial = Decisions(
        decisions.order.copy(), decisions.resident.copy(), decisions.reused_buffer.copy(), decisions.spans.copy()
    )
    for e in range(evaluations):
        if stop[0] != 0:
            break
        _assign(trial, decisions)
        focus = draw(rng_state, n) if draw(rng_state, 4) else -1
        change(facts, trial, buffers, count, focus, rng_state)
        while draw(rng_state, 5) < 2:
            change(facts, trial, buffers, count, focus, rng_state)
        count = decode(facts, trial, buffers)
        for _ in range(_ROOMS):
            full = _over(buffers.level, memory, rng_state)
            if full < 0 or not make_room(facts, trial, buffers, full, rng_state):
                break
            count = decode(facts, trial, buffers)
        excess = max(0, buffers.level[:n].max() - memory)
        if excess > over or (excess > 0 and over == 0):
            count = decode(facts, decisions, buffers)
            continue
        then = np.inf
        if excess == 0:
            _, _, then = _seconds_of(facts, trial, buffers, count)
            if then < below * (1 - 1e-9):
                if exact and not _fits(flow, facts, trial, buffers, count, memory):
                    count = decode(facts, decisions, buffers)
                    continue
                found = below = then
                _assign(best, trial)
        warm = heat * (1 - e / evaluations) * now
        if excess < over or then <= now or (
            warm > 0 and then < now + 8 * warm and draw(rng_state, 1 << 30) < np.exp((now - then) / warm) * (1 << 30)
        ):  # fmt: skip
            now, over = then, excess
            _assign(decisions, trial)
        else:
            count = decode(facts, decisions, buffers)
    return float(found)
