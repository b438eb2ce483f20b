"""The address pass: one pass over the slots that decides absences and offsets of all storages.

A new storage goes into a hole; if there is none, the neighbours whose next uses are latest are evicted. If storages
that the op itself needs are in the way, everything is evicted and the op's storages are laid out side by side, so that
the pass succeeds whenever each op's own storages fit. Where an op only fits because it reuses the buffer of an input,
that input is moved to one end of memory in the slot before, which leaves the rest in one piece.
"""

from __future__ import annotations

from planner.jit import kernel
from planner.swap.draft.absences import NEVER, Absences
from planner.swap.evict.address_space import AddressSpace, find, hole, lift, put, window
from planner.swap.evict.link_calendar import open_calendar, reserve
from planner.swap.evict.state import AWAY, DONE, HERE, UNMADE, EvictionInputs, EvictionState, arrive, open_step, put_off
from planner.swap.problem.problem import Bytes, Flags, Ints, Seconds

#: Taken off the score of a storage that could not be back in time.
_TOO_SOON = 1e6


@kernel
def evict_by_address(
    route: EvictionInputs,
    resident: Flags,
    home: Bytes,
    anchored: Flags,
    memory: int,
    on_demand: bool,
    brief: int,
    required_reuse: Ints,
    absences: Absences,
    reuses_buffer_of: Ints,
    eviction: EvictionState,
    space: AddressSpace,
) -> tuple[int, int]:
    """Run one eviction pass; allocates nothing.

    Args:
        route: order, graph, uses and times.
        resident: `[storages]`, live-in storages on the device when the step starts.
        home: `[storages]`, offsets of the residents in bytes.
        anchored: `[storages]`, residents outside this memory that never leave.
        memory: bytes.
        on_demand: swap only what an op waits for, least recently used first, instead of planning ahead.
        brief: storages that die within this many slots are placed at the upper end of memory.
        required_reuse: `[slots]`, the storage whose buffer must be reused, or -1; the slot before touches it too.
        absences: filled.
        reuses_buffer_of: `[slots]`, filled with the storage whose buffer the op in the slot reuses, or -1.
        eviction: scratch; at the end its `state` says which storages are on the device.
        space: scratch; at the end its `left` and `offset` hold the offsets of all residencies.

    Returns:
        The number of absences and -1, or, if the op in slot `i` needs more memory than there is or cancellation was
        requested before it, 0 and `i`.
    """
    order, flow, uses, clock = route.order, route.flow, route.uses, route.clock
    n, m, stop = order.shape[0], flow.bytes.shape[0], route.stop
    width = open_calendar(clock, eviction.calendar)
    state, absence, returns = eviction.state, eviction.absence, eviction.returns
    wanted, fresh, line = space.wanted, space.fresh, space.line
    count = open_step(route, resident, on_demand, absences, eviction, width)
    living = 0
    for s in range(m):
        fresh[s] = space.laid[s] = -1
        if state[s] == HERE and not anchored[s]:
            living = put(space, living, s, home[s])
    for i in range(n):
        if stop[0] != 0:
            return 0, i
        op = order[i]
        first, last = flow.touches.start[op], flow.touches.start[op + 1]
        for k in range(first, last):
            eviction.pinned[flow.touches.items[k]] = i
        reuses_buffer_of[i] = -1
        reused_buffer = uses.reused_buffer[i]
        if reused_buffer >= 0 and state[reused_buffer] == HERE and returns[reused_buffer] < i:
            heir = flow.creates[op]
            line[find(space, living, reused_buffer)] = heir
            reuses_buffer_of[i], space.offset[heir], fresh[heir] = reused_buffer, space.offset[reused_buffer], i
            state[reused_buffer], state[heir] = DONE, HERE
        must = asked = 0
        for search_step in range(3):  # what the op waits for, what it creates, what may be reloaded early
            if search_step == 1:
                for k in range(first, last):
                    s = flow.touches.items[k]
                    if state[s] == UNMADE and fresh[s] != i:
                        fresh[s], wanted[asked] = i, s
                        asked += 1
                must = asked
            else:
                k = eviction.head[i]
                while k >= 0:
                    if (absences.use[k] == i) == (search_step == 0):
                        wanted[asked] = absences.storage[k]
                        asked += 1
                    k = eviction.following[k]
        scored = False
        refused, refused_use = 2**62, n  # the size of an early reload that found no room, and the slot that needs it
        coming = required_reuse[i + 1] if i + 1 < n else -1
        for j in range(asked + 1):
            if j == must and coming >= 0 and 0 < space.offset[coming] < memory - flow.bytes[coming]:
                count, living = _lay_out(
                    route,
                    on_demand,
                    required_reuse,
                    absences,
                    reuses_buffer_of,
                    anchored,
                    eviction,
                    space,
                    width,
                    memory,
                    i,
                    count,
                    living,
                )
                if living < 0:
                    return 0, i
            if j == asked:
                break
            s = wanted[j]
            if state[s] == HERE:
                continue  # already laid out with all that this op needs
            size = flow.bytes[s]
            if j >= must and size >= refused and absences.use[absence[s]] >= refused_use:
                put_off(absences, eviction, s, i)  # it needs at least as much room, and no sooner
                continue
            top = not flow.persistent[s] and uses.slot[uses.start[s + 1] - 1] - i < brief
            at = hole(space, living, flow.bytes, memory, size, top)
            if at < 0:
                if not scored:
                    scored = True
                    _score(route, eviction, line, living, space.score, i, on_demand)
                a, b, least = window(space, living, flow.bytes, memory, size, eviction.pinned, i)
                if j >= must and (a < 0 or least <= clock[absences.use[absence[s]]] - clock[i]):
                    put_off(absences, eviction, s, i)
                    refused, refused_use = size, absences.use[absence[s]]
                    continue
                if a < 0:
                    count, living = _lay_out(
                        route, on_demand, required_reuse, absences, reuses_buffer_of, anchored, eviction, space, width,
                        memory, i, count, living,
                    )  # fmt: skip
                    if living < 0:
                        return 0, i
                    continue
                below = space.offset[line[a - 1]] + flow.bytes[line[a - 1]] if a > 0 else 0
                above = space.offset[line[b + 1]] if b + 1 < living else memory
                for c in range(a, b + 1):
                    count = _evict(route, on_demand, absences, eviction, space, width, line[c], i, count)
                living = lift(space, living, a, b)
                at = above - size if top else below
            living = put(space, living, s, at)
            state[s], fresh[s] = HERE, i
            if absence[s] >= 0:
                returns[s] = absences.use[absence[s]]
        for k in range(first, last):
            s = flow.touches.items[k]
            c = eviction.cursor[s]
            if state[s] == HERE and c < uses.start[s + 1] and uses.slot[c] == i:
                if uses.writes[c]:
                    eviction.valid[s], eviction.written[s] = False, i
                eviction.cursor[s] = c + 1
                if c + 1 == uses.start[s + 1] and not flow.persistent[s] and not flow.live_out[s]:
                    state[s] = DONE
                    p = find(space, living, s)
                    living = lift(space, living, p, p)
    for s in range(m):
        if (
            flow.persistent[s] and state[s] == HERE and not resident[s]
        ):  # it starts the step on the host, so it must end there
            absences.storage[count], absences.ready[count], absences.release[count] = s, eviction.written[s], n
            absences.reload[count], absences.use[count], absences.copy[count] = NEVER, NEVER, not eviction.valid[s]
            space.left[count] = space.offset[s]
            count += 1
    return count, -1


@kernel
def _score(
    route: EvictionInputs, eviction: EvictionState, line: Ints, living: int, score: Seconds, i: int, on_demand: bool
) -> None:
    """Score every resident for eviction: seconds until its next use or, on demand, seconds since its last use."""
    start, slot, persistent, clock, work, cursor = (
        route.uses.start, route.uses.slot, route.flow.persistent, route.clock, route.work, eviction.cursor,
    )  # fmt: skip
    returns, now, total = eviction.returns, clock[i], clock[clock.shape[0] - 1]
    for a in range(living):
        s = line[a]
        c = cursor[s]
        if on_demand:
            score[s] = now - clock[slot[c - 1]] if c > start[s] else now
        elif c < start[s + 1]:
            ahead = clock[slot[c]] - now
            score[s] = ahead - _TOO_SOON if returns[s] <= i and ahead < 2 * route.lead * work[s] else ahead
        elif persistent[s]:
            score[s] = total + clock[slot[start[s]]] - now
        else:
            score[s] = 2 * total - now


@kernel
def _evict(
    route: EvictionInputs,
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
    eviction.state[s] = AWAY
    if eviction.returns[s] > i:
        put_off(absences, eviction, s, i)
        return count
    absences.storage[count], absences.release[count] = s, i
    absences.ready[count] = i - 1 if on_demand else eviction.written[s]
    absences.copy[count] = not eviction.valid[s]
    space.left[count] = space.offset[s]
    eviction.valid[s], eviction.absence[s] = True, count
    if eviction.cursor[s] == route.uses.start[s + 1]:
        absences.reload[count], absences.use[count] = NEVER, NEVER
        return count + 1
    v = route.uses.slot[eviction.cursor[s]]
    absences.use[count] = v
    if v == i:  # only when the op's own storages are laid out again
        absences.reload[count] = i
    elif on_demand:
        arrive(absences, eviction, count, v)
    else:
        q = reserve(
            eviction.calendar.booked,
            eviction.calendar.free,
            eviction.calendar.slot,
            width,
            route.work[s] * route.lead,
            route.clock[i],
            route.clock[v],
        )
        arrive(absences, eviction, count, min(max(q, i + 1), v))
    return count + 1


@kernel
def _lay_out(
    route: EvictionInputs,
    on_demand: bool,
    required_reuse: Ints,
    absences: Absences,
    reuses_buffer_of: Ints,
    anchored: Flags,
    eviction: EvictionState,
    space: AddressSpace,
    width: float,
    memory: int,
    i: int,
    count: int,
    living: int,
) -> tuple[int, int]:
    """Clear the device and lay out what the op in slot `i` needs; returns the numbers of absences and residents.

    The second number is negative if the op needs more memory than there is.
    """
    flow, op, line = route.flow, route.order[i], space.line
    reused_buffer, heir, n = reuses_buffer_of[i], flow.creates[op], route.order.shape[0]
    coming = required_reuse[i + 1] if i + 1 < n else -1
    if (
        reused_buffer >= 0 and required_reuse[i] < 0
    ):  # its buffer was reused in this slot: undo that and evict it like the rest
        line[find(space, living, heir)] = reused_buffer
        eviction.state[reused_buffer], eviction.state[heir] = HERE, UNMADE
        reuses_buffer_of[i] = -1
    for a in range(living):
        s = line[a]
        if space.fresh[s] == i:
            continue  # placed in this slot, so it can just as well be placed elsewhere
        if eviction.returns[s] == i:  # its memory was reserved in an earlier slot for this op: reserve it only now
            absences.reload[eviction.absence[s]] = i
        else:
            count = _evict(route, on_demand, absences, eviction, space, width, s, i, count)
    living, low, high = 0, 0, memory
    if required_reuse[i] >= 0:
        if reused_buffer < 0:
            return count, -1
        space.laid[heir] = i  # at the end of memory where the slot before left it
        living = put(space, living, heir, space.offset[heir])
        if space.offset[heir] == 0:
            low = flow.bytes[heir]
        else:
            high = space.offset[heir]
    if coming >= 0 and space.laid[coming] != i:  # at the other end
        at = high - flow.bytes[coming] if low > 0 else 0
        if at < low or at + flow.bytes[coming] > high:
            return count, -1
        living = _lay(absences, eviction, space, living, coming, at, i)
        if low > 0:
            high = at
        else:
            low = flow.bytes[coming]
    for k in range(flow.touches.start[op], flow.touches.start[op + 1]):
        s = flow.touches.items[k]
        if space.laid[s] == i or anchored[s] or (s == reused_buffer and required_reuse[i] >= 0):
            continue
        if low + flow.bytes[s] > high:
            return count, -1
        living = _lay(absences, eviction, space, living, s, low, i)
        low += flow.bytes[s]
    return count, living


@kernel
def _lay(absences: Absences, eviction: EvictionState, space: AddressSpace, living: int, s: int, at: int, i: int) -> int:
    """Place one of an op's storages next to the others; returns the new number of residents."""
    if eviction.absence[s] >= 0 and absences.use[eviction.absence[s]] == i:
        absences.reload[eviction.absence[s]] = i
        eviction.returns[s] = i
    space.laid[s], eviction.state[s], space.fresh[s] = i, HERE, i
    return put(space, living, s, at)
