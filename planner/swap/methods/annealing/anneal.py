"""Simulated annealing over decisions (Kirkpatrick, Gelatt and Vecchi, Science 1983)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.cancel import Flag
from planner.jit import kernel
from planner.memory import place_exactly
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
_MAX_EVICTIONS = 8
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
    arrays: AnnealingArrays, decisions: Decisions, buffers: DecodeBuffers, count: int
) -> tuple[Ints, Ints, float]:
    absences = buffers.absences
    return edf_by(
        arrays.seconds[decisions.order], absences.ready[:count], absences.release[:count], absences.reload[:count],
        absences.use[:count], absences.copy[:count], buffers.out_key[:count], buffers.in_key[:count],
        arrays.work[absences.storage[:count]], arrays.shared,
    )  # fmt: skip


@kernel
def _first_absences(absences: Absences, count: int) -> Absences:
    return Absences(
        absences.storage[:count].copy(), absences.ready[:count].copy(), absences.release[:count].copy(),
        absences.reload[:count].copy(), absences.use[:count].copy(), absences.copy[:count].copy(),
    )  # fmt: skip


@kernel
def timed(arrays: AnnealingArrays, decisions: Decisions, buffers: DecodeBuffers, count: int) -> TimedDecisions:
    """Run the decoded decisions; returns their queues and all times."""
    outs, ins, _ = _seconds_of(arrays, decisions, buffers, count)
    absences = _first_absences(buffers.absences, count)
    n = decisions.order.shape[0]
    compute = np.empty((n, 2))
    out_spans, in_spans = np.empty((outs.shape[0], 2)), np.empty((ins.shape[0], 2))
    work = arrays.work[absences.storage]
    seconds = run_queues(
        arrays.seconds[decisions.order], absences.ready[outs], absences.release[outs], work[outs], absences.reload[ins],
        absences.use[ins], work[ins], arrays.shared, np.empty((2, n + 1), np.int32), compute, out_spans, in_spans,
    )  # fmt: skip
    return TimedDecisions(absences, seconds, outs, ins, compute, out_spans, in_spans)


@kernel
def _fits(
    problem_arrays: ProblemArrays,
    arrays: AnnealingArrays,
    decisions: Decisions,
    buffers: DecodeBuffers,
    count: int,
    memory: int,
) -> bool:
    """Whether the tightened residencies can be placed; False if that is not decided soon."""
    run = timed(arrays, decisions, buffers, count)
    if run.seconds < 0:
        return False
    uses = Uses(arrays.uses_start, buffers.slot, buffers.writes, buffers.reuses_buffer_of, buffers.live_bytes)
    tighten_residencies(
        uses, run.absences, buffers.reuses_buffer_of, run.outs, run.ins, run.compute, run.out_spans, run.in_spans
    )
    residencies = unplaced_residencies(problem_arrays, uses, decisions.resident, run.absences, buffers.reuses_buffer_of)
    m, rows, n = arrays.bytes.shape[0], residencies.storage.shape[0], decisions.order.shape[0]
    first, last = np.full(m, -1, np.int32), np.full(m, -1, np.int32)
    box = np.arange(rows)
    for r in range(rows):
        s = residencies.storage[r]
        last[s] = r
        if first[s] < 0:
            first[s] = r
    for i in range(n):  # in the order of time, so that chains end in their first box
        s = buffers.reuses_buffer_of[i]
        if s >= 0:
            box[first[arrays.creates[decisions.order[i]]]] = box[last[s]]
    for s in range(m):
        if first[s] >= 0 and decisions.resident[s] and arrays.persistent[s]:
            box[first[s]] = box[last[s]]
    masks, sizes = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    for r in range(rows):
        sizes[box[r]] = arrays.bytes[residencies.storage[r]]
        for i in range(residencies.start[r], residencies.stop[r]):
            masks[box[r]] |= 1 << i
    nodes = min(_NODES, _WORK // (1 + rows * n))
    return place_exactly(masks, sizes, n, memory, nodes, np.zeros(rows, np.int64)) == 1


@kernel
def _assign(into: Decisions, source: Decisions) -> None:
    # loops: for `a[:] = b`, numba compiles what it would say of shapes that differ, which takes seconds
    for i in range(source.order.shape[0]):
        into.order[i] = source.order[i]
        into.reused_buffer[i] = source.reused_buffer[i]
    for s in range(source.resident.shape[0]):
        into.resident[s] = source.resident[s]
    for row in range(source.spans.shape[0]):
        for field in range(source.spans.shape[1]):
            into.spans[row, field] = source.spans[row, field]


@kernel
def _overfull_slot(live_bytes: Bytes, memory: int, rng_state: RngState) -> int:
    """A random slot that needs more bytes than there are, or -1."""
    found, seen = -1, 0
    for i in range(live_bytes.shape[0] - 1):
        if live_bytes[i] > memory:
            seen += 1
            if draw(rng_state, seen) == 0:
                found = i
    return found


@kernel
def anneal(
    problem_arrays: ProblemArrays,
    arrays: AnnealingArrays,
    decisions: Decisions,
    best: Decisions,
    rng_state: RngState,
    evaluations: int,
    memory: int,
    limit_seconds: float,
    temperature: float,
    exact: bool,
    stop: Flag,
) -> float:
    """Change decisions repeatedly; accept faster ones, and sometimes slower ones.

    Args:
        problem_arrays, arrays: the problem.
        decisions: where the chain begins; modified to where it ends.
        best: filled with the fastest decisions that were found, if they take less than `limit_seconds`.
        rng_state: the state of the random generator.
        evaluations: how many changes to try.
        memory: bytes.
        limit_seconds: only decisions faster than this are kept.
        temperature: share of the step's time that a change for the worse costs when it is accepted one time in three;
            falls to 0 by the end.
        exact: whether only decisions that can be placed count as fastest.
        stop: `[1]`; once it is not 0, no more changes are tried.

    Returns:
        Seconds of the fastest; infinite if nothing took less than `limit_seconds`.
    """
    n, m = decisions.order.shape[0], arrays.bytes.shape[0]
    buffers = blank_decode_buffers(n, m, arrays.touch_items.shape[0])
    count = decode(arrays, decisions, buffers)
    seconds, over = np.inf, max(0, buffers.live_bytes[:n].max() - memory)
    found = np.inf
    if over == 0:
        _, _, seconds = _seconds_of(arrays, decisions, buffers, count)
        if seconds < limit_seconds and (not exact or _fits(problem_arrays, arrays, decisions, buffers, count, memory)):
            found = limit_seconds = seconds
            _assign(best, decisions)
    trial = Decisions(
        decisions.order.copy(), decisions.resident.copy(), decisions.reused_buffer.copy(), decisions.spans.copy()
    )
    for e in range(evaluations):
        if stop[0] != 0:
            break
        _assign(trial, decisions)
        focus = draw(rng_state, n) if draw(rng_state, 4) else -1
        change(arrays, trial, buffers, count, focus, rng_state)
        while draw(rng_state, 5) < 2:
            change(arrays, trial, buffers, count, focus, rng_state)
        count = decode(arrays, trial, buffers)
        for _ in range(_MAX_EVICTIONS):
            overfull = _overfull_slot(buffers.live_bytes, memory, rng_state)
            if overfull < 0 or not make_room(arrays, trial, buffers, overfull, rng_state):
                break
            count = decode(arrays, trial, buffers)
        excess = max(0, buffers.live_bytes[:n].max() - memory)
        if excess > over or (excess > 0 and over == 0):
            count = decode(arrays, decisions, buffers)
            continue
        trial_seconds = np.inf
        if excess == 0:
            _, _, trial_seconds = _seconds_of(arrays, trial, buffers, count)
            if trial_seconds < limit_seconds * (1 - 1e-9):
                if exact and not _fits(problem_arrays, arrays, trial, buffers, count, memory):
                    count = decode(arrays, decisions, buffers)
                    continue
                found = limit_seconds = trial_seconds
                _assign(best, trial)
        scale = temperature * (1 - e / evaluations) * seconds
        if excess < over or trial_seconds <= seconds or (
            scale > 0 and trial_seconds < seconds + 8 * scale
            and draw(rng_state, 1 << 30) < np.exp((seconds - trial_seconds) / scale) * (1 << 30)
        ):  # fmt: skip
            seconds, over = trial_seconds, excess
            _assign(decisions, trial)
        else:
            count = decode(arrays, decisions, buffers)
    return float(found)
