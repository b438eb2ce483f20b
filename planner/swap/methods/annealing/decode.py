"""From decisions to absences: every decision is moved to the nearest legal one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.jit import inlined_kernel, kernel
from planner.swap.draft.absences import NEVER, Absences
from planner.swap.methods.annealing.decisions import (
    AWAY,
    FINE,
    IN_RANK,
    OUT_RANK,
    RELEASE,
    RELOAD,
    AnnealingArrays,
    Decisions,
)
from planner.swap.problem.problem import Bytes, Flags, Ints


class DecodeBuffers(NamedTuple):
    """What `decode` fills: when storages are touched, their absences, and the bytes in use in each slot.

    `slot` and `writes` are as in `Uses`, `reuses_buffer_of` as in `UnplacedPlan`, `absences` in the order of storages;
    `out_key` and `in_key` rank their copies, and `row[k]` is the row of `Decisions.spans` that absence `k` is from.
    """

    slot: Ints
    writes: Flags
    cursor: Ints
    reuses_buffer_of: Ints
    absences: Absences
    out_key: Ints
    in_key: Ints
    row: Ints
    level: Bytes


@kernel
def blank_decode_buffers(ops: int, storages: int, touches: int) -> DecodeBuffers:
    """Buffers for a graph of this size."""
    rows = touches + storages
    absences = Absences(
        np.empty(rows, np.int32), np.empty(rows, np.int32), np.empty(rows, np.int32), np.empty(rows, np.int32),
        np.empty(rows, np.int32), np.empty(rows, np.bool_),
    )  # fmt: skip
    return DecodeBuffers(
        np.empty(touches, np.int32), np.empty(touches, np.bool_), np.empty(storages, np.int32),
        np.empty(ops, np.int32), absences, np.empty(rows, np.int32), np.empty(rows, np.int32), np.empty(rows, np.int32),
        np.empty(ops + 1, np.int64),
    )  # fmt: skip


@inlined_kernel
def _within(value: int, least: int, most: int) -> int:
    return min(max(value, least), most)


@kernel
def decode(facts: AnnealingArrays, decisions: Decisions, buffers: DecodeBuffers) -> int:
    """Fill the buffers; returns the number of absences."""
    touch_start, items, touch_writes, uses_start = (
        facts.touch_start, facts.touch_items, facts.touch_writes, facts.uses_start,
    )  # fmt: skip
    creates, sizes, held, persistent, updated, kept = (
        facts.creates, facts.bytes, facts.live_in, facts.persistent, facts.updated, facts.live_out,
    )  # fmt: skip
    order, resident, reused_buffer, spans = (
        decisions.order, decisions.resident, decisions.reused_buffer, decisions.spans,
    )  # fmt: skip
    slot, writes, cursor, reuses_buffer_of = buffers.slot, buffers.writes, buffers.cursor, buffers.reuses_buffer_of
    absences, out_key, in_key = buffers.absences, buffers.out_key, buffers.in_key
    row, level = buffers.row, buffers.level
    away, ready, release, reload, use, copy = absences
    n, m = order.shape[0], sizes.shape[0]
    cursor[:] = uses_start[:m]
    for i in range(n):
        for k in range(touch_start[order[i]], touch_start[order[i] + 1]):
            c = cursor[items[k]]
            slot[c], writes[c] = i, touch_writes[k]
            cursor[items[k]] = c + 1
    for i in range(n):
        reusable, made = reused_buffer[order[i]], creates[order[i]]
        reuses_buffer_of[i] = -1
        if reusable >= 0 and slot[uses_start[reusable + 1] - 1] == i and slot[uses_start[made]] == i:
            reuses_buffer_of[i] = reusable
    level[:] = 0
    count = 0
    for s in range(m):
        a, b = uses_start[s], uses_start[s + 1]
        if a == b:
            continue
        first, last, size = slot[a], slot[b - 1], sizes[s]
        gives = reuses_buffer_of[last] == s
        valid, written, opened, home = False, -1, first, False
        before = count
        if held[s] and resident[s]:
            opened, home, valid = 0, persistent[s], not updated[s]
            if home and updated[s] and spans[a + s, AWAY] and first >= 1:
                r = _within(spans[a + s, RELEASE], 1, first)
                ready[count], release[count], copy[count], row[count] = -1, r, True, a + s
                reload[count], use[count] = _within(spans[a + s, RELOAD], r, first), first
                count += 1
                valid = True
        elif held[s]:
            ready[count], release[count], copy[count], row[count] = -1, -1, False, a + s
            reload[count], use[count] = _within(spans[a + s, RELOAD], 0, first), first
            count += 1
            opened, valid = -1, True
        for c in range(a, b):
            v, p = slot[c], c + s
            if c > a and spans[p, AWAY]:
                u, late = slot[c - 1], v - (gives and c == b - 1)
                if u + 1 <= late:
                    r = u + 1 if valid else _within(spans[p, RELEASE], u + 1, late)
                    ready[count], release[count], copy[count], row[count] = written, r, not valid, p
                    reload[count], use[count] = _within(spans[p, RELOAD], r, late), v
                    count += 1
                    valid = True
            if writes[c]:
                valid, written = False, v
        p, stop = b + s, n
        if home:
            if spans[p, AWAY] and last + 1 < n:
                r = last + 1 if valid else _within(spans[p, RELEASE], last + 1, n - 1)
                ready[count], release[count], copy[count], row[count] = written, r, not valid, p
                reload[count], use[count] = _within(spans[p, RELOAD], r, n - 1), n
                count += 1
            if count == before + 1 and release[before] == reload[before]:  # it would come back at once to where it was
                if reload[before] < min(use[before], n - 1):
                    reload[before] += 1
                else:
                    count = before
        elif persistent[s] or (kept[s] and spans[p, AWAY]):
            stop = last + 1 if valid else _within(spans[p, RELEASE], last + 1, n)
            ready[count], release[count], copy[count], row[count] = written, stop, not valid, p
            reload[count], use[count] = NEVER, NEVER
            count += 1
            stop = -1
        elif not kept[s]:
            stop = last + (not gives)
        for k in range(before, count):
            away[k] = s
            if release[k] >= 0:
                level[opened] += size
                level[release[k]] -= size
            opened = reload[k]
            out_key[k] = FINE * release[k] + spans[row[k], OUT_RANK]
            in_key[k] = FINE * min(use[k], n) + spans[row[k], IN_RANK]
        if stop >= 0:
            level[opened] += size
            level[stop] -= size
    for i in range(n):
        level[i + 1] += level[i]
    return count
