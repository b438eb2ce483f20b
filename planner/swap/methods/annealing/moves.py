"""Small random changes to decisions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.jit import kernel
from planner.swap.methods.annealing.decisions import (
    ABSENT,
    OUT_RANK,
    RANKS_PER_SLOT,
    RELEASE,
    RELOAD,
    AnnealingArrays,
    Decisions,
    Spans,
)
from planner.swap.methods.annealing.decode import DecodeBuffers
from planner.swap.problem.problem import Ints

#: The state of a random generator: one 64-bit number, not 0.
RngState = NDArray[np.uint64]


@kernel
def draw(rng_state: RngState, below: int) -> int:
    """A random integer from 0 up to but without `below`: xorshift64* (Vigna, ACM TOMS 2016)."""
    x = rng_state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    rng_state[0] = x
    return int(np.int64((x * np.uint64(2685821657736338717)) >> np.uint64(33)) % below)


@kernel
def change(
    arrays: AnnealingArrays, decisions: Decisions, buffers: DecodeBuffers, count: int, focus: int, rng_state: RngState
) -> None:
    """Make one random change, near slot `focus` if that is not negative.

    Args:
        arrays: the problem.
        decisions: modified.
        buffers, count: what the decisions were decoded to, and the number of absences; need not be up to date.
        focus: a slot, or -1.
        rng_state: the state of the random generator.
    """
    order, reused_buffer, spans = decisions.order, decisions.reused_buffer, decisions.spans
    n = order.shape[0]
    kind = draw(rng_state, 16)
    if kind < 4:
        row = _any_row(buffers.slot, arrays.uses_start, spans.shape[0], focus, rng_state)
        _toggle(spans, row, n, focus, rng_state)
    elif kind < 9 and count > 0:
        k = _any_absence(buffers.absences.release, buffers.absences.use, count, focus, rng_state)
        row = buffers.row[k]
        if kind < 7:
            _shift(spans, row, RELOAD, buffers.absences.reload[k], n, rng_state)
        else:
            _shift(spans, row, RELEASE, max(buffers.absences.release[k], 0), n, rng_state)
    elif kind == 9 and count > 0:
        row = buffers.row[_any_absence(buffers.absences.release, buffers.absences.use, count, focus, rng_state)]
        distance = 2 * RANKS_PER_SLOT if draw(rng_state, 2) else min(n, 16) * RANKS_PER_SLOT
        spans[row, OUT_RANK + draw(rng_state, 2)] = draw(rng_state, 2 * distance + 1) - distance
    elif kind < 12:
        op = draw(rng_state, n)
        for _ in range(8):
            a, b = arrays.touch_start[op], arrays.touch_start[op + 1]
            s = arrays.touch_items[a + draw(rng_state, b - a)] if a < b else -1
            if s >= 0 and arrays.live_in[s]:
                _toggle_start_residency(arrays, decisions, s, n, rng_state)
                break
            op = draw(rng_state, n)
    elif kind < 14:
        op = draw(rng_state, n)
        for _ in range(n):
            a, b = arrays.reusable_start[op], arrays.reusable_start[op + 1]
            if a < b:
                reused_buffer[op] = arrays.reusable_items[a + draw(rng_state, b - a)] if reused_buffer[op] < 0 else -1
                break
            op = (op + 1) % n
    else:
        _move(arrays, decisions, focus, rng_state)


@kernel
def _toggle(spans: Spans, row: int, slots: int, focus: int, rng_state: RngState) -> None:
    """Toggle whether a storage leaves in an idle time: for as long as possible, or around a slot."""
    leaves = not spans[row, ABSENT]
    spans[row] = 0
    if not leaves:
        return
    kind = draw(rng_state, 5)
    spans[row, ABSENT] = 1
    spans[row, RELEASE], spans[row, RELOAD] = 0, slots
    if kind == 1 and focus >= 0:
        spans[row, RELEASE] = focus
    if kind == 2 and focus >= 0:
        spans[row, RELOAD] = focus + 1
    if kind == 3 and focus >= 0:
        spans[row, RELEASE], spans[row, RELOAD] = focus, focus + 1
    if kind == 4 and focus >= 0:  # only to change its offset
        spans[row, RELEASE] = spans[row, RELOAD] = focus


@kernel
def _toggle_start_residency(
    arrays: AnnealingArrays, decisions: Decisions, s: int, slots: int, rng_state: RngState
) -> None:
    """Toggle whether a storage is on the device when the step starts."""
    resident, spans = decisions.resident, decisions.spans
    resident[s] = not resident[s]
    first, last = arrays.uses_start[s] + s, arrays.uses_start[s + 1] + s
    spans[first, ABSENT] = spans[last, ABSENT] = 0
    spans[first, RELOAD] = slots if draw(rng_state, 2) else draw(rng_state, slots)
    spans[last, RELEASE] = 0 if draw(rng_state, 2) else slots


@kernel
def _shift(spans: Spans, row: int, column: int, now: int, slots: int, rng_state: RngState) -> None:
    kind = draw(rng_state, 6)
    if kind < 2:
        spans[row, column] = max(0, now - 1)
    elif kind < 4:
        spans[row, column] = min(slots, now + 1)
    elif kind == 4:
        spans[row, column] = draw(rng_state, slots + 1)
    else:
        spans[row, column] = 0 if draw(rng_state, 2) else slots


@kernel
def _any_absence(release: Ints, use: Ints, count: int, focus: int, rng_state: RngState) -> int:
    """A random absence, preferably one that ends or begins near the focus."""
    chosen, nearest = draw(rng_state, count), 2**31
    if focus < 0:
        return chosen
    for _ in range(min(8, count)):
        k = draw(rng_state, count)
        distance = min(abs(release[k] - focus), abs(use[k] - focus))
        if distance < nearest:
            chosen, nearest = k, distance
    return chosen


@kernel
def _any_row(slot: Ints, uses_start: Ints, rows: int, focus: int, rng_state: RngState) -> int:
    """A random idle time, preferably one that ends near the focus."""
    m = uses_start.shape[0] - 1
    chosen, nearest = draw(rng_state, rows), 2**31
    if focus < 0:
        return chosen
    for _ in range(8):
        s = draw(rng_state, m)
        a, b = uses_start[s], uses_start[s + 1]
        c = a + draw(rng_state, b - a + 1)
        if a == b:
            continue
        distance = abs(slot[min(c, b - 1)] - focus)
        if distance < nearest:
            chosen, nearest = c + s, distance
    return chosen


@kernel
def _move(arrays: AnnealingArrays, decisions: Decisions, focus: int, rng_state: RngState) -> None:
    """Move an op to another slot that keeps every dependency; slots of releases and reloads go with the ops."""
    order, spans = decisions.order, decisions.spans
    n = order.shape[0]
    at = draw(rng_state, n) if focus < 0 else min(n - 1, max(0, focus + draw(rng_state, 17) - 8))
    op = order[at]
    low = at
    while low > 0:
        other, bound = order[low - 1], False
        for k in range(arrays.before_start[op], arrays.before_start[op + 1]):
            bound |= arrays.before_items[k] == other
        if bound:
            break
        low -= 1
    high = at
    while high < n - 1:
        other, bound = order[high + 1], False
        for k in range(arrays.after_start[op], arrays.after_start[op + 1]):
            bound |= arrays.after_items[k] == other
        if bound:
            break
        high += 1
    if low == high:
        return
    to = low + draw(rng_state, high - low)
    to += to >= at
    step = 1 if to > at else -1
    i = at
    while i != to:
        order[i] = order[i + step]
        i += step
    order[to] = op
    if n <= 16 or abs(to - at) < 2:
        return
    for p in range(spans.shape[0]):
        for column in (RELEASE, RELOAD):
            x = spans[p, column]
            if min(at, to) < x <= max(at, to):
                spans[p, column] = x - step


@kernel
def make_room(
    arrays: AnnealingArrays, decisions: Decisions, buffers: DecodeBuffers, overfull: int, rng_state: RngState
) -> bool:
    """Evict, or for longer, a storage that is idle in a slot with too many bytes; False if there is none."""
    resident, spans = decisions.resident, decisions.spans
    uses_start, slot = arrays.uses_start, buffers.slot
    m, n = uses_start.shape[0] - 1, decisions.order.shape[0]
    chosen, seen = 0, 0
    start = draw(rng_state, m)
    for t in range(m):
        s = (start + t) % m
        a, b = uses_start[s], uses_start[s + 1]
        if a == b or arrays.bytes[s] == 0:
            continue
        if overfull < slot[a] and not arrays.live_in[s]:
            continue
        if overfull > slot[b - 1] and not arrays.persistent[s] and not arrays.live_out[s]:
            continue
        low, high = a, b  # the first use at or after the slot
        while low < high:
            middle = (low + high) // 2
            if slot[middle] < overfull:
                low = middle + 1
            else:
                high = middle
        if low < b and slot[low] == overfull:
            continue
        row = low + s
        absent = spans[row, ABSENT] or (arrays.live_in[s] and not resident[s] and low == a)
        absent |= arrays.persistent[s] and not resident[s] and low == b
        if absent and spans[row, RELEASE] <= overfull < spans[row, RELOAD]:
            continue
        if low == a and resident[s] and arrays.live_in[s] and (not arrays.persistent[s] or not arrays.updated[s]):
            row = -1 - s  # it may start on the host
        seen += 1
        if draw(rng_state, seen) == 0:
            chosen = row
        if seen >= 24:
            break
    if seen == 0:
        return False
    if chosen < 0:
        _toggle_start_residency(arrays, decisions, -1 - chosen, n, rng_state)
        return True
    spans[chosen, ABSENT] = 1
    if draw(rng_state, 2):
        spans[chosen, RELEASE], spans[chosen, RELOAD] = 0, n
    else:
        spans[chosen, RELEASE] = min(spans[chosen, RELEASE], overfull)
        spans[chosen, RELOAD] = max(spans[chosen, RELOAD], overfull + 1)
    return True
