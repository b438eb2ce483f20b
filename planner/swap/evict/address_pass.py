"""The address pass: one pass over the slots that decides absences and offsets of all storages.

A new storage goes into a hole; if there is none, the neighbours whose next uses are latest are evicted. If storages
that the op itself needs are in the way, everything is evicted and the op's storages are laid out side by side, so that
the pass succeeds whenever each op's own storages fit. Where an op only fits because it reuses the buffer of an input,
that input is moved to one end of memory in the slot before, which leaves the rest in one piece.
"""

from __future__ import annotations

from planner.jit import kernel
from planner.swap.draft.absences import NEVER, Absences
from planner.swap.evict.address_space import AddressSpace, eviction_window, find_hole, insert, position_of, remove
from planner.swap.evict.link_calendar import open_calendar, reserve
from planner.swap.evict.state import (
    DEAD,
    NOT_CREATED,
    ON_DEVICE,
    ON_HOST,
    EvictionInputs,
    EvictionState,
    open_step,
    postpone_reload,
    schedule_reload,
)
from planner.swap.problem.problem import Bytes, Flags, Ints, Seconds

#: Taken off the score of a storage that could not be back in time.
_TOO_SOON = 1e6


@kernel
def evict_by_address(
    inputs: EvictionInputs,
    resident: Flags,
    initial_offsets: Bytes,
    always_resident: Flags,
    memory: int,
    on_demand: bool,
    short_lived_slots: int,
    required_reuse: Ints,
    absences: Absences,
    reuses_buffer_of: Ints,
    eviction: EvictionState,
    space: AddressSpace,
) -> tuple[int, int]:
    """Run one eviction pass; allocates nothing.

    Args:
        inputs: order, graph, uses and times.
        resident: `[storages]`, live-in storages on the device when the step starts.
        initial_offsets: `[storages]`, offsets of the residents in bytes.
        always_resident: `[storages]`, residents outside this memory that never leave.
        memory: bytes.
        on_demand: swap only what an op waits for, least recently used first, instead of planning ahead.
        short_lived_slots: storages that die within this many slots are placed at the upper end of memory.
        required_reuse: `[slots]`, the storage whose buffer must be reused, or -1; the slot before touches it too.
        absences: filled.
        reuses_buffer_of: `[slots]`, filled with the storage whose buffer the op in the slot reuses, or -1.
        eviction: scratch; at the end its `state` says which storages are on the device.
        space: scratch; at the end its `offset_at_release` and `offset` hold the offsets of all residencies.

    Returns:
        The number of absences and -1, or, if the op in slot `i` needs more memory than there is or cancellation was
        requested before it, 0 and `i`.
    """
    order, arrays, uses, clock = inputs.order, inputs.arrays, inputs.uses, inputs.clock
    n, m, stop = order.shape[0], arrays.bytes.shape[0], inputs.stop
    width = open_calendar(clock, eviction.calendar)
    state, absence, returns = eviction.state, eviction.absence, eviction.returns
    to_place, placed_in, by_offset = space.to_place, space.placed_in, space.by_offset
    count = open_step(inputs, resident, on_demand, absences, eviction, width)
    resident_count = 0
    for s in range(m):
        placed_in[s] = space.laid_out_in[s] = -1
        if state[s] == ON_DEVICE and not always_resident[s]:
            resident_count = insert(space, resident_count, s, initial_offsets[s])
    for i in range(n):
        if stop[0] != 0:
            return 0, i
        op = order[i]
        touch_start, touch_stop = arrays.touches.start[op], arrays.touches.start[op + 1]
        for k in range(touch_start, touch_stop):
            eviction.needed_in[arrays.touches.items[k]] = i
        reuses_buffer_of[i] = -1
        reused_buffer = uses.reused_buffer[i]
        if reused_buffer >= 0 and state[reused_buffer] == ON_DEVICE and returns[reused_buffer] < i:
            new_storage = arrays.creates[op]
            by_offset[position_of(space, resident_count, reused_buffer)] = new_storage
            reuses_buffer_of[i], placed_in[new_storage] = reused_buffer, i
            space.offset[new_storage] = space.offset[reused_buffer]
            state[reused_buffer], state[new_storage] = DEAD, ON_DEVICE
        required_count = place_count = 0
        for stage in range(3):  # what the op waits for, what it creates, what may be reloaded early
            if stage == 1:
                for k in range(touch_start, touch_stop):
                    s = arrays.touches.items[k]
                    if state[s] == NOT_CREATED and placed_in[s] != i:
                        placed_in[s], to_place[place_count] = i, s
                        place_count += 1
                required_count = place_count
            else:
                k = eviction.head[i]
                while k >= 0:
                    if (absences.use[k] == i) == (stage == 0):
                        to_place[place_count] = absences.storage[k]
                        place_count += 1
                    k = eviction.following[k]
        scored = False
        failed_size, failed_use = 2**62, n  # the size of an early reload that found no room, and the slot that needs it
        next_reused = required_reuse[i + 1] if i + 1 < n else -1
        for j in range(place_count + 1):
            if (
                j == required_count
                and next_reused >= 0
                and 0 < space.offset[next_reused] < memory - arrays.bytes[next_reused]
            ):
                count, resident_count = _lay_out(
                    inputs,
                    on_demand,
                    required_reuse,
                    absences,
                    reuses_buffer_of,
                    always_resident,
                    eviction,
                    space,
                    width,
                    memory,
                    i,
                    count,
                    resident_count,
                )
                if resident_count < 0:
                    return 0, i
            if j == place_count:
                break
            s = to_place[j]
            if state[s] == ON_DEVICE:
                continue  # already laid out with all that this op needs
            size = arrays.bytes[s]
            if j >= required_count and size >= failed_size and absences.use[absence[s]] >= failed_use:
                postpone_reload(absences, eviction, s, i)  # it needs at least as much room, and no sooner
                continue
            at_top = not arrays.persistent[s] and uses.slot[uses.start[s + 1] - 1] - i < short_lived_slots
            at = find_hole(space, resident_count, arrays.bytes, memory, size, at_top)
            if at < 0:
                if not scored:
                    scored = True
                    _score(inputs, eviction, by_offset, resident_count, space.score, i, on_demand)
                a, b, least = eviction_window(space, resident_count, arrays.bytes, memory, size, eviction.needed_in, i)
                if j >= required_count and (a < 0 or least <= clock[absences.use[absence[s]]] - clock[i]):
                    postpone_reload(absences, eviction, s, i)
                    failed_size, failed_use = size, absences.use[absence[s]]
                    continue
                if a < 0:
                    count, resident_count = _lay_out(
                        inputs, on_demand, required_reuse, absences, reuses_buffer_of, always_resident, eviction,
                        space, width, memory, i, count, resident_count,
                    )  # fmt: skip
                    if resident_count < 0:
                        return 0, i
                    continue
                below = space.offset[by_offset[a - 1]] + arrays.bytes[by_offset[a - 1]] if a > 0 else 0
                above = space.offset[by_offset[b + 1]] if b + 1 < resident_count else memory
                for c in range(a, b + 1):
                    count = _evict(inputs, on_demand, absences, eviction, space, width, by_offset[c], i, count)
                resident_count = remove(space, resident_count, a, b)
                at = above - size if at_top else below
            resident_count = insert(space, resident_count, s, at)
            state[s], placed_in[s] = ON_DEVICE, i
            if absence[s] >= 0:
                returns[s] = absences.use[absence[s]]
        for k in range(touch_start, touch_stop):
            s = arrays.touches.items[k]
            c = eviction.cursor[s]
            if state[s] == ON_DEVICE and c < uses.start[s + 1] and uses.slot[c] == i:
                if uses.writes[c]:
                    eviction.valid[s], eviction.written[s] = False, i
                eviction.cursor[s] = c + 1
                if c + 1 == uses.start[s + 1] and not arrays.persistent[s] and not arrays.live_out[s]:
                    state[s] = DEAD
                    p = position_of(space, resident_count, s)
                    resident_count = remove(space, resident_count, p, p)
    for s in range(m):
        if (
            arrays.persistent[s] and state[s] == ON_DEVICE and not resident[s]
        ):  # it starts the step on the host, so it must end there
            absences.storage[count], absences.ready[count], absences.release[count] = s, eviction.written[s], n
            absences.reload[count], absences.use[count], absences.copy[count] = NEVER, NEVER, not eviction.valid[s]
            space.offset_at_release[count] = space.offset[s]
            count += 1
    return count, -1


@kernel
def _score(
    inputs: EvictionInputs,
    eviction: EvictionState,
    by_offset: Ints,
    resident_count: int,
    score: Seconds,
    i: int,
    on_demand: bool,
) -> None:
    """Score every resident for eviction: seconds until its next use or, on demand, seconds since its last use."""
    start, slot, persistent, clock, work, cursor = (
        inputs.uses.start, inputs.uses.slot, inputs.arrays.persistent, inputs.clock, inputs.work, eviction.cursor,
    )  # fmt: skip
    returns, now, total = eviction.returns, clock[i], clock[clock.shape[0] - 1]
    for a in range(resident_count):
        s = by_offset[a]
        c = cursor[s]
        if on_demand:
            score[s] = now - clock[slot[c - 1]] if c > start[s] else now
        elif c < start[s + 1]:
            ahead = clock[slot[c]] - now
            score[s] = ahead - _TOO_SOON if returns[s] <= i and ahead < 2 * inputs.lead * work[s] else ahead
        elif persistent[s]:
            score[s] = total + clock[slot[start[s]]] - now
        else:
            score[s] = 2 * total - now


@kernel
def _evict(
    inputs: EvictionInputs,
    on_demand: bool,
    absences: Absences,
    eviction: EvictionState,
    space: AddressSpace,
    width: float,
    s: int,
    i: int,
    count: int,
) -> int:
    """Begin an absence at slot `i`, or postpone a reload that is not needed yet; returns the number of absences."""
    eviction.state[s] = ON_HOST
    if eviction.returns[s] > i:
        postpone_reload(absences, eviction, s, i)
        return count
    absences.storage[count], absences.release[count] = s, i
    absences.ready[count] = i - 1 if on_demand else eviction.written[s]
    absences.copy[count] = not eviction.valid[s]
    space.offset_at_release[count] = space.offset[s]
    eviction.valid[s], eviction.absence[s] = True, count
    if eviction.cursor[s] == inputs.uses.start[s + 1]:
        absences.reload[count], absences.use[count] = NEVER, NEVER
        return count + 1
    v = inputs.uses.slot[eviction.cursor[s]]
    absences.use[count] = v
    if v == i:  # only when the op's own storages are laid out again
        absences.reload[count] = i
    elif on_demand:
        schedule_reload(absences, eviction, count, v)
    else:
        q = reserve(
            eviction.calendar.booked,
            eviction.calendar.free,
            eviction.calendar.slot,
            width,
            inputs.work[s] * inputs.lead,
            inputs.clock[i],
            inputs.clock[v],
        )
        schedule_reload(absences, eviction, count, min(max(q, i + 1), v))
    return count + 1


@kernel
def _lay_out(
    inputs: EvictionInputs,
    on_demand: bool,
    required_reuse: Ints,
    absences: Absences,
    reuses_buffer_of: Ints,
    always_resident: Flags,
    eviction: EvictionState,
    space: AddressSpace,
    width: float,
    memory: int,
    i: int,
    count: int,
    resident_count: int,
) -> tuple[int, int]:
    """Clear the device and lay out what the op in slot `i` needs; returns the numbers of absences and residents.

    The second number is negative if the op needs more memory than there is.
    """
    arrays, op, by_offset = inputs.arrays, inputs.order[i], space.by_offset
    reused_buffer, new_storage, n = reuses_buffer_of[i], arrays.creates[op], inputs.order.shape[0]
    next_reused = required_reuse[i + 1] if i + 1 < n else -1
    if (
        reused_buffer >= 0 and required_reuse[i] < 0
    ):  # its buffer was reused in this slot: undo that and evict it like the rest
        by_offset[position_of(space, resident_count, new_storage)] = reused_buffer
        eviction.state[reused_buffer], eviction.state[new_storage] = ON_DEVICE, NOT_CREATED
        reuses_buffer_of[i] = -1
    for a in range(resident_count):
        s = by_offset[a]
        if space.placed_in[s] == i:
            continue  # placed in this slot, so it can just as well be placed elsewhere
        if eviction.returns[s] == i:  # its memory was reserved in an earlier slot for this op: reserve it only now
            absences.reload[eviction.absence[s]] = i
        else:
            count = _evict(inputs, on_demand, absences, eviction, space, width, s, i, count)
    resident_count, low, high = 0, 0, memory
    if required_reuse[i] >= 0:
        if reused_buffer < 0:
            return count, -1
        space.laid_out_in[new_storage] = i  # at the end of memory where the slot before left it
        resident_count = insert(space, resident_count, new_storage, space.offset[new_storage])
        if space.offset[new_storage] == 0:
            low = arrays.bytes[new_storage]
        else:
            high = space.offset[new_storage]
    if next_reused >= 0 and space.laid_out_in[next_reused] != i:  # at the other end
        at = high - arrays.bytes[next_reused] if low > 0 else 0
        if at < low or at + arrays.bytes[next_reused] > high:
            return count, -1
        resident_count = _lay_out_one(absences, eviction, space, resident_count, next_reused, at, i)
        if low > 0:
            high = at
        else:
            low = arrays.bytes[next_reused]
    for k in range(arrays.touches.start[op], arrays.touches.start[op + 1]):
        s = arrays.touches.items[k]
        if space.laid_out_in[s] == i or always_resident[s] or (s == reused_buffer and required_reuse[i] >= 0):
            continue
        if low + arrays.bytes[s] > high:
            return count, -1
        resident_count = _lay_out_one(absences, eviction, space, resident_count, s, low, i)
        low += arrays.bytes[s]
    return count, resident_count


@kernel
def _lay_out_one(
    absences: Absences, eviction: EvictionState, space: AddressSpace, resident_count: int, s: int, at: int, i: int
) -> int:
    """Place one of an op's storages next to the others; returns the new number of residents."""
    if eviction.absence[s] >= 0 and absences.use[eviction.absence[s]] == i:
        absences.reload[eviction.absence[s]] = i
        eviction.returns[s] = i
    space.laid_out_in[s], eviction.state[s], space.placed_in[s] = i, ON_DEVICE, i
    return insert(space, resident_count, s, at)
