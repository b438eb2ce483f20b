"""From decisions to absences: every decision is moved to the nearest legal one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.jit import inlined_kernel, kernel
from planner.swap.draft.absences import NEVER, Absences
from planner.swap.methods.annealing.decisions import (
    ABSENT,
    IN_RANK,
    OUT_RANK,
    RANKS_PER_SLOT,
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
    live_bytes: Bytes


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
def decode(arrays: AnnealingArrays, decisions: Decisions, buffers: DecodeBuffers) -> int:
    """Fill the buffers; returns the number of absences."""
    touch_start, items, touch_writes, uses_start = (
        arrays.touch_start, arrays.touch_items, arrays.touch_writes, arrays.uses_start,
    )  # fmt: skip
    creates, sizes, live_in, persistent, updated, live_out = (
        arrays.creates, arrays.bytes, arrays.live_in, arrays.persistent, arrays.updated, arrays.live_out,
    )  # fmt: skip
    order, resident, reused_buffer, spans = (
        decisions.order, decisions.resident, decisions.reused_buffer, decisions.spans,
    )  # fmt: skip
    slot, writes, cursor, reuses_buffer_of = buffers.slot, buffers.writes, buffers.cursor, buffers.reuses_buffer_of
    absences, out_key, in_key = buffers.absences, buffers.out_key, buffers.in_key
    row, live_bytes = buffers.row, buffers.live_bytes
    storage, ready, release, reload, use, copy = (
        absences.storage, absences.ready, absences.release, absences.reload, absences.use, absences.copy,
    )  # fmt: skip
    n, m = order.shape[0], sizes.shape[0]
    for s in range(m):
        cursor[s] = uses_start[s]
    for i in range(n):
        for k in range(touch_start[order[i]], touch_start[order[i] + 1]):
            c = cursor[items[k]]
            slot[c], writes[c] = i, touch_writes[k]
            cursor[items[k]] = c + 1
    for i in range(n):
        reusable, created = reused_buffer[order[i]], creates[order[i]]
        reuses_buffer_of[i] = -1
        if reusable >= 0 and slot[uses_start[reusable + 1] - 1] == i and slot[uses_start[created]] == i:
            reuses_buffer_of[i] = reusable
    live_bytes[:] = 0
    count = 0
    for s in range(m):
        a, b = uses_start[s], uses_start[s + 1]
        if a == b:
            continue
        first, last, size = slot[a], slot[b - 1], sizes[s]
        buffer_reused = reuses_buffer_of[last] == s
        valid, written, opened, stays_resident = False, -1, first, False
        before = count
        if live_in[s] and resident[s]:
            opened, stays_resident, valid = 0, persistent[s], not updated[s]
            if stays_resident and updated[s] and spans[a + s, ABSENT] and first >= 1:
                r = _within(spans[a + s, RELEASE], 1, first)
                ready[count], release[count], copy[count], row[count] = -1, r, True, a + s
                reload[count], use[count] = _within(spans[a + s, RELOAD], r, first), first
                count += 1
                valid = True
        elif live_in[s]:
            ready[count], release[count], copy[count], row[count] = -1, -1, False, a + s
            reload[count], use[count] = _within(spans[a + s, RELOAD], 0, first), first
            count += 1
            opened, valid = -1, True
        for c in range(a, b):
            v, p = slot[c], c + s
            if c > a and spans[p, ABSENT]:
                u, late = slot[c - 1], v - (buffer_reused and c == b - 1)
                if u + 1 <= late:
                    r = u + 1 if valid else _within(spans[p, RELEASE], u + 1, late)
                    ready[count], release[count], copy[count], row[count] = written, r, not valid, p
                    reload[count], use[count] = _within(spans[p, RELOAD], r, late), v
                    count += 1
                    valid = True
            if writes[c]:
                valid, written = False, v
        p, stop = b + s, n
        if stays_resident:
            if spans[p, ABSENT] and last + 1 < n:
                r = last + 1 if valid else _within(spans[p, RELEASE], last + 1, n - 1)
                ready[count], release[count], copy[count], row[count] = written, r, not valid, p
                reload[count], use[count] = _within(spans[p, RELOAD], r, n - 1), n
                count += 1
            if count == before + 1 and release[before] == reload[before]:  # it would come back at once to where it was
                if reload[before] < min(use[before], n - 1):
                    reload[before] += 1
                else:
                    count = before
        elif persistent[s] or (live_out[s] and spans[p, ABSENT]):
            stop = last + 1 if valid else _within(spans[p, RELEASE], last + 1, n)
            ready[count], release[count], copy[count], row[count] = written, stop, not valid, p
            reload[count], use[count] = NEVER, NEVER
            count += 1
            stop = -1
        elif not live_out[s]:
            stop = last + (not buffer_reused)
        for k in range(before, count):
            storage[k] = s
            if release[k] >= 0:
                live_bytes[opened] += size
                live_bytes[release[k]] -= size
            opened = reload[k]
            out_key[k] = RANKS_PER_SLOT * release[k] + spans[row[k], OUT_RANK]
            in_key[k] = RANKS_PER_SLOT * min(use[k], n) + spans[row[k], IN_RANK]
        if stop >= 0:
            live_bytes[opened] += size
            live_bytes[stop] -= size
    for i in range(n):
        live_bytes[i + 1] += live_bytes[i]
    return count
