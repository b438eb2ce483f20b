"""Peak shaving: absences are decided where memory is exceeded most, not slot by slot.

The slot with the largest excess is taken; each storage that is idle around it is sent away tentatively, on the
calendars of both directions of the link, and the one whose absence saves most for what its copies cost really goes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.jit import kernel
from planner.swap.draft.absences import NEVER, Absences, blank_absences, first_absences
from planner.swap.draft.draft import UnplacedPlan
from planner.swap.evict.link_calendar import (
    LinkCalendar,
    blank_link_calendar,
    finish_ahead,
    open_calendar,
    start_behind,
)
from planner.swap.problem.problem import Bytes, Flags, Ints, Problem, ProblemArrays, Seconds
from planner.swap.problem.uses import Uses, uses_of

#: The smallest storages, together at most this share of memory, never leave.
_SMALL_SHARE = 0.005
#: What a span is: between two uses, from the last use to the first of the next step, or before the first.
_BETWEEN, _AROUND, _BEFORE = 0, 1, 2


class IdleSpans(NamedTuple):
    """Spans without a use: of storage `storage[k]`, between the uses in slots `last[k]` and `next[k]`.

    The value that is idle then is left by slot `ready[k]` (-1: there when the step starts), and has the number
    `value[k]`. `kind[k]` is one of the three kinds. The spans of storage `s` are `start[s]` to `start[s + 1]`.
    """

    start: Ints
    storage: Ints
    ready: Ints
    last: Ints
    next: Ints
    value: Ints
    kind: Ints


def shave(
    problem: Problem, order: Ints, clock: Seconds, memory: int, *, exponent: float, lead: float, bias: Seconds | None
) -> UnplacedPlan | None:
    """Find absences such that the bytes of every slot fit.

    Args:
        problem: what is planned.
        order: the op in each slot.
        clock: `[slots + 1]`, when each slot is estimated to begin, and the end, in seconds.
        memory: aligned bytes, at most the problem's.
        exponent: how much the cost of copies counts; 0 for not at all.
        lead: a copy is given this many times its work.
        bias: `[storages]`, factor on what an absence is worth; None for 1.

    Returns:
        The unplaced plan; None if the bytes of some slot do not fit.

    Raises:
        Cancelled: cancellation was requested.
    """
    arrays, link = problem.arrays, problem.link
    uses = uses_of(order, arrays)
    by_size = np.argsort(arrays.bytes, kind="stable")
    movable = np.zeros(problem.storages, np.bool_)
    movable[by_size[np.cumsum(arrays.bytes[by_size]) > _SMALL_SHARE * memory]] = True
    spans = idle_spans(arrays, uses, movable)
    work = lead * (problem.sizes / link.bandwidth + link.latency) / link.shared
    absences = blank_absences(2 * len(spans.storage))
    resident, reuses_buffer_of = arrays.live_in & (np.diff(uses.start) > 0), uses.reused_buffer.copy()
    count = _shave(
        arrays, uses, spans, clock, work, np.ones(problem.storages) if bias is None else bias, memory, exponent,
        absences, resident, reuses_buffer_of, blank_link_calendar(), blank_link_calendar(),
    )  # fmt: skip
    problem.stop.check()
    return None if count < 0 else UnplacedPlan(order, uses, resident, first_absences(absences, count), reuses_buffer_of)


@kernel
def idle_spans(arrays: ProblemArrays, uses: Uses, movable: Flags) -> IdleSpans:
    """Find the spans in which movable storages are idle for a slot or more."""
    m = arrays.bytes.shape[0]
    room = uses.slot.shape[0] + m
    start, kind = np.zeros(m + 1, np.int32), np.empty(room, np.int32)
    storage, ready, last = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32)
    following, value = np.empty(room, np.int32), np.empty(room, np.int32)
    count = values = 0
    for s in range(m):
        first, end = uses.start[s], uses.start[s + 1]
        if movable[s] and first < end:
            opening, written = values, -1
            values += 1
            before = opening
            if arrays.live_in[s] and not arrays.persistent[s] and uses.slot[first] > 0:
                storage[count], ready[count], last[count], following[count] = s, -1, -1, uses.slot[first]
                value[count], kind[count] = opening, _BEFORE
                count += 1
            for c in range(first, end):
                if uses.writes[c]:
                    written, before = uses.slot[c], values
                    values += 1
                if c + 1 < end and uses.slot[c + 1] > uses.slot[c] + 1:
                    storage[count], ready[count] = s, written
                    last[count], following[count] = uses.slot[c], uses.slot[c + 1]
                    value[count], kind[count] = before, _BETWEEN
                    count += 1
            if arrays.persistent[s]:
                storage[count], ready[count] = s, written
                last[count], following[count] = uses.slot[end - 1], uses.slot[first]
                value[count], kind[count] = before, _AROUND
                count += 1
                for k in range(start[s], count):  # what the step leaves is what the next one finds
                    if value[k] == before:
                        value[k] = opening
        start[s + 1] = count
    return IdleSpans(
        start, storage[:count], ready[:count], last[:count], following[:count], value[:count], kind[:count]
    )


@kernel
def _shave(
    arrays: ProblemArrays,
    uses: Uses,
    spans: IdleSpans,
    clock: Seconds,
    work: Seconds,
    bias: Seconds,
    memory: int,
    exponent: float,
    absences: Absences,
    resident: Flags,
    reuses_buffer_of: Ints,
    incoming: LinkCalendar,
    outgoing: LinkCalendar,
) -> int:
    """Fill in absences; returns how many there are, or -1 if the bytes of some slot do not fit."""
    sizes = arrays.bytes
    storage, ready, last, following = spans.storage, spans.ready, spans.last, spans.next
    value, kind = spans.value, spans.kind
    n, total = clock.shape[0] - 1, clock[-1]
    count = storage.shape[0]
    width = open_calendar(clock, incoming)
    open_calendar(clock, outgoing)
    in_booked, in_free, out_booked, out_free = incoming.booked, incoming.free, outgoing.booked, outgoing.free
    held = uses.live.copy()
    excess = np.zeros(n + 1)  # before each slot, bytes beyond memory times seconds
    release, reload = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
    most = np.full(count, np.inf)  # an upper bound on the worth of each span, as of when it was looked at last
    looked_at = np.full(count, -1, np.int32)
    chosen, hopeless = np.zeros(count, np.bool_), np.zeros(n, np.bool_)
    copied_at = np.full(2 * uses.slot.shape[0] + 2 * sizes.shape[0], -1.0)  # by value, when its copy out is done
    for s in range(sizes.shape[0]):
        if arrays.live_in[s] and not arrays.updated[s]:
            for k in range(spans.start[s], spans.start[s + 1]):
                copied_at[value[k]] = 0.0
    nearby = np.empty(count, np.int32)  # the spans around the slot
    rounds = 0
    while True:
        slot, over = -1, 0
        for i in range(n):
            if held[i] - memory > over and not hopeless[i]:
                slot, over = i, held[i] - memory
        if slot < 0:
            break
        for i in range(n):
            excess[i + 1] = excess[i] + max(0, held[i] - memory) * (clock[i + 1] - clock[i])
        rounds += 1
        found = 0
        for k in range(count):
            if not chosen[k] and _covers(kind[k], last[k], following[k], slot):
                nearby[found] = k
                found += 1
        best, everything = -1, True  # whatever was never looked at is looked at first
        while True:
            best, worth = -1, 0.0
            for each in range(found):
                k = nearby[each]
                if everything and most[k] == np.inf:
                    looked_at[k] = rounds
                    most[k] = _worth(
                        spans, k, work, clock, excess, copied_at, incoming, outgoing, width, exponent, release, reload
                    ) * bias[storage[k]]  # fmt: skip
                share = min(1.0, sizes[storage[k]] / over) * most[k]
                if share > worth and (
                    most[k] == np.inf or _is_off(kind[k], release[k], reload[k], slot)
                ):  # a span only shrinks
                    best, worth = k, share
            everything = False
            if best < 0 or looked_at[best] == rounds:
                break
            looked_at[best] = rounds
            most[best] = _worth(
                spans, best, work, clock, excess, copied_at, incoming, outgoing, width, exponent, release, reload
            ) * bias[storage[best]]  # fmt: skip
        if best < 0:
            hopeless[slot] = True
            continue
        k, s = best, storage[best]
        if kind[k] != _BEFORE and copied_at[value[k]] < 0:
            copied_at[value[k]] = finish_ahead(out_booked, out_free, width, work[s], clock[ready[k] + 1], True)
            for other in range(spans.start[s], spans.start[s + 1]):
                most[other] = np.inf  # of the same value, a further absence is cheaper
        start_behind(in_booked, in_free, width, work[s], clock[following[k]], True)
        chosen[k] = True
        _free(held, sizes[s], kind[k], release[k], reload[k])
        _keep_reloaded(held, sizes[s], s, following[k], reuses_buffer_of)
    for i in range(n):  # what no copy can be in time for leaves all the same, and compute waits
        while held[i] > memory:
            best, longest = -1, -1.0
            for k in range(count):
                if chosen[k] or not _covers(kind[k], last[k], following[k], i):
                    continue
                idle = clock[following[k]] - clock[max(last[k], 0)] + (total if kind[k] == _AROUND else 0.0)
                if idle > longest:
                    best, longest = k, idle
            if best < 0:
                return -1
            k, s = best, storage[best]
            chosen[k] = True
            release[k], reload[k] = (i if i > last[k] else n), following[k]
            _free(held, sizes[s], kind[k], release[k], reload[k])
            _keep_reloaded(held, sizes[s], s, following[k], reuses_buffer_of)
            if held[following[k]] > memory and following[k] < i:
                return -1
    return _collect(arrays, uses, spans, chosen, release, reload, absences, resident)


@kernel
def _worth(
    spans: IdleSpans,
    k: int,
    work: Seconds,
    clock: Seconds,
    excess: Seconds,
    copied_at: Seconds,
    incoming: LinkCalendar,
    outgoing: LinkCalendar,
    width: float,
    exponent: float,
    release: Ints,
    reload: Ints,
) -> float:
    """What an absence saves for its cost, 0 if there is no time for it; also notes its release and reload."""
    n, total = clock.shape[0] - 1, clock[-1]
    s, kind, following = spans.storage[k], spans.kind[k], spans.next[k]
    known = kind == _BEFORE or copied_at[spans.value[k]] >= 0
    gone = max(copied_at[spans.value[k]], 0.0)
    if not known:
        gone = finish_ahead(outgoing.booked, outgoing.free, width, work[s], clock[spans.ready[k] + 1], False)
    f = n
    if gone <= total:
        f = min(n, max(spans.last[k] + 1, np.searchsorted(clock, gone - 1e-9 * total)))
    elif kind != _AROUND:
        return 0.0
    begins = start_behind(incoming.booked, incoming.free, width, work[s], clock[following], False)
    if begins < 0 and kind == _BETWEEN:
        return 0.0
    # a step that begins with a wait has time before its first slot
    q = 0 if begins < 0 else max(0, np.searchsorted(clock, begins + 1e-9 * total, side="right") - 1)
    if kind == _BETWEEN:
        if f >= q:
            return 0.0
        saved = excess[q] - excess[f]
    else:
        saved = excess[q] + (excess[n] - excess[f] if kind == _AROUND else 0.0)
    release[k], reload[k] = f, q
    cost = work[s] if known else 2 * work[s]
    return float(saved / max(cost, 1e-12) ** exponent)


@kernel
def _covers(kind: int, last: int, following: int, slot: int) -> bool:
    """Whether a slot is in a span."""
    if kind == _AROUND:
        return slot > last or slot < following
    return last < slot < following


@kernel
def _is_off(kind: int, release: int, reload: int, slot: int) -> bool:
    """Whether a storage is off the device in a slot, given its release and reload."""
    if kind == _AROUND:
        return slot >= release or slot < reload
    return release <= slot < reload


@kernel
def _free(held: Bytes, size: int, kind: int, release: int, reload: int) -> None:
    """Take a storage off the device during an absence."""
    if kind == _BETWEEN:
        held[release:reload] -= size
    else:
        held[:reload] -= size
        if kind == _AROUND:
            held[release:] -= size


@kernel
def _keep_reloaded(held: Bytes, size: int, s: int, slot: int, reuses_buffer_of: Ints) -> None:
    """A buffer that is reloaded for a slot is not reused in it."""
    if reuses_buffer_of[slot] == s:
        reuses_buffer_of[slot] = -1
        held[slot] += size


@kernel
def _collect(
    arrays: ProblemArrays,
    uses: Uses,
    spans: IdleSpans,
    chosen: Flags,
    release: Ints,
    reload: Ints,
    absences: Absences,
    resident: Flags,
) -> int:
    """Write down the chosen absences, those of each storage in order of time; returns how many there are."""
    count = 0
    n = np.int32(uses.live.shape[0])
    for s in range(arrays.bytes.shape[0]):
        first, end = spans.start[s], spans.start[s + 1]
        around = -1
        for k in range(first, end):
            if chosen[k] and spans.kind[k] != _BETWEEN:
                around = k
        if around >= 0:
            resident[s] = False
            absences.storage[count], absences.ready[count], absences.release[count] = s, -1, -1
            absences.reload[count], absences.use[count] = reload[around], spans.next[around]
            absences.copy[count] = False
            count += 1
        valid = -1  # the slot whose op leaves the value that the host has; -2 if it has none
        if (resident[s] and arrays.updated[s]) or not arrays.live_in[s]:
            valid = -2
        for k in range(first, end):
            if not chosen[k] or spans.kind[k] == _BEFORE:
                continue
            absences.storage[count], absences.ready[count] = s, spans.ready[k]
            absences.release[count] = release[k]
            absences.copy[count] = valid != spans.ready[k]
            valid = spans.ready[k]
            if spans.kind[k] == _AROUND:
                absences.reload[count] = absences.use[count] = NEVER
                absences.release[count] = min(release[k], n)
            else:
                absences.reload[count], absences.use[count] = reload[k], spans.next[k]
            count += 1
    return count
