"""The address walk: decides in one pass over the slots who is away when and where everybody lies.

A newcomer takes a hole; where there is none, the neighbours leave that are missed last. Where what the op itself needs
is in the way, everything leaves and the op's storages are laid out side by side, so that the walk succeeds whenever
each op's own storages fit. Where one only fits because it takes over an input's memory, that input is brought to one
end of memory in the slot before, so that all else has the rest.
"""

from __future__ import annotations

from planner.kernels import kernel
from planner.swap.draft.absences import NEVER, Gaps
from planner.swap.evict.address_space import Ground, find, hole, lift, put, window
from planner.swap.evict.link_calendar import book, open_calendar
from planner.swap.evict.state import AWAY, DONE, HERE, UNMADE, Desk, Route, arrive, open_step, put_off
from planner.swap.problem.problem import Bytes, Flags, Ints, Seconds

#: Taken off the score of a storage that could not be back in time.
_TOO_SOON = 1e6


@kernel
def walk_addresses(
    route: Route,
    resident: Flags,
    home: Bytes,
    anchored: Flags,
    memory: int,
    on_demand: bool,
    brief: int,
    taken: Ints,
    gaps: Gaps,
    inherits: Ints,
    desk: Desk,
    ground: Ground,
) -> tuple[int, int]:
    """Walk the slots once; allocates nothing.

    Args:
        route: what to follow.
        resident: `[storages]`, held storages on the device when the step starts.
        home: `[storages]`, their offsets.
        anchored: `[storages]`, residents that lie outside this memory and never leave.
        memory: bytes.
        on_demand: swap only what an op waits for, least recently used first, instead of planning ahead.
        brief: storages that die within this many slots lie at the upper end.
        taken: `[slots]`, who has to be taken over, or -1; the slot before has it among what it touches.
        gaps: filled.
        inherits: `[slots]`, filled with the storage whose memory the op in the slot takes over, or -1.
        desk: scratch; its `state` says who is on the device at the end.
        ground: scratch; its `left` and `offset` say where everything lay.

    Returns:
        The number of gaps and -1, or where the op in slot `i` needs more than there is or it was asked to stop by then,
        0 and `i`.
    """
    order, flow, uses, clock = route.order, route.flow, route.uses, route.clock
    n, m, stop = order.shape[0], flow.bytes.shape[0], route.stop
    width = open_calendar(clock, desk.calendar)
    state, gap, returns = desk.state, desk.gap, desk.returns
    wanted, fresh, line = ground.wanted, ground.fresh, ground.line
    count = open_step(route, resident, on_demand, gaps, desk, width)
    living = 0
    for s in range(m):
        fresh[s] = ground.laid[s] = -1
        if state[s] == HERE and not anchored[s]:
            living = put(ground, living, s, home[s])
    for i in range(n):
        if stop[0] != 0:
            return 0, i
        op = order[i]
        first, last = flow.touches.start[op], flow.touches.start[op + 1]
        for k in range(first, last):
            desk.pinned[flow.touches.items[k]] = i
        inherits[i] = -1
        donor = uses.donor[i]
        if donor >= 0 and state[donor] == HERE and returns[donor] < i:
            heir = flow.creates[op]
            line[find(ground, living, donor)] = heir
            inherits[i], ground.offset[heir], fresh[heir] = donor, ground.offset[donor], i
            state[donor], state[heir] = DONE, HERE
        must = asked = 0
        for turn in range(3):  # what the op waits for, what it makes, what may come early
            if turn == 1:
                for k in range(first, last):
                    s = flow.touches.items[k]
                    if state[s] == UNMADE and fresh[s] != i:
                        fresh[s], wanted[asked] = i, s
                        asked += 1
                must = asked
            else:
                k = desk.head[i]
                while k >= 0:
                    if (gaps.use[k] == i) == (turn == 0):
                        wanted[asked] = gaps.storage[k]
                        asked += 1
                    k = desk.following[k]
        scored = False
        refused, refused_use = 2**62, n  # the size of an early copy that found no room, and when it is needed
        coming = taken[i + 1] if i + 1 < n else -1
        for j in range(asked + 1):
            if j == must and coming >= 0 and 0 < ground.offset[coming] < memory - flow.bytes[coming]:
                count, living = _lay_out(
                    route, on_demand, taken, gaps, inherits, anchored, desk, ground, width, memory, i, count, living
                )
                if living < 0:
                    return 0, i
            if j == asked:
                break
            s = wanted[j]
            if state[s] == HERE:
                continue  # laid out with all that this op needs
            size = flow.bytes[s]
            if j >= must and size >= refused and gaps.use[gap[s]] >= refused_use:
                put_off(gaps, desk, s, i)  # no less room is needed, and no sooner
                continue
            top = not flow.stateful[s] and uses.slot[uses.start[s + 1] - 1] - i < brief
            at = hole(ground, living, flow.bytes, memory, size, top)
            if at < 0:
                if not scored:
                    scored = True
                    _score(route, desk, line, living, ground.score, i, on_demand)
                a, b, least = window(ground, living, flow.bytes, memory, size, desk.pinned, i)
                if j >= must and (a < 0 or least <= clock[gaps.use[gap[s]]] - clock[i]):
                    put_off(gaps, desk, s, i)
                    refused, refused_use = size, gaps.use[gap[s]]
                    continue
                if a < 0:
                    count, living = _lay_out(
                        route, on_demand, taken, gaps, inherits, anchored, desk, ground, width, memory, i, count,
                        living,
                    )  # fmt: skip
                    if living < 0:
                        return 0, i
                    continue
                below = ground.offset[line[a - 1]] + flow.bytes[line[a - 1]] if a > 0 else 0
                above = ground.offset[line[b + 1]] if b + 1 < living else memory
                for c in range(a, b + 1):
                    count = _evict(route, on_demand, gaps, desk, ground, width, line[c], i, count)
                living = lift(ground, living, a, b)
                at = above - size if top else below
            living = put(ground, living, s, at)
            state[s], fresh[s] = HERE, i
            if gap[s] >= 0:
                returns[s] = gaps.use[gap[s]]
        for k in range(first, last):
            s = flow.touches.items[k]
            c = desk.cursor[s]
            if state[s] == HERE and c < uses.start[s + 1] and uses.slot[c] == i:
                if uses.writes[c]:
                    desk.valid[s], desk.written[s] = False, i
                desk.cursor[s] = c + 1
                if c + 1 == uses.start[s + 1] and not flow.stateful[s] and not flow.kept[s]:
                    state[s] = DONE
                    p = find(ground, living, s)
                    living = lift(ground, living, p, p)
    for s in range(m):
        if flow.stateful[s] and state[s] == HERE and not resident[s]:  # it began the step on the host and ends it there
            gaps.storage[count], gaps.ready[count], gaps.release[count] = s, desk.written[s], n
            gaps.reload[count], gaps.use[count], gaps.copy[count] = NEVER, NEVER, not desk.valid[s]
            ground.left[count] = ground.offset[s]
            count += 1
    return count, -1


@kernel
def _score(route: Route, desk: Desk, line: Ints, living: int, score: Seconds, i: int, on_demand: bool) -> None:
    """How well each resident could leave: seconds until it is missed, or on demand, seconds since it was used."""
    start, slot, stateful, clock, work, cursor = (
        route.uses.start, route.uses.slot, route.flow.stateful, route.clock, route.work, desk.cursor,
    )  # fmt: skip
    returns, now, total = desk.returns, clock[i], clock[clock.shape[0] - 1]
    for a in range(living):
        s = line[a]
        c = cursor[s]
        if on_demand:
            score[s] = now - clock[slot[c - 1]] if c > start[s] else now
        elif c < start[s + 1]:
            ahead = clock[slot[c]] - now
            score[s] = ahead - _TOO_SOON if returns[s] <= i and ahead < 2 * route.lead * work[s] else ahead
        elif stateful[s]:
            score[s] = total + clock[slot[start[s]]] - now
        else:
            score[s] = 2 * total - now


@kernel
def _evict(
    route: Route, on_demand: bool, gaps: Gaps, desk: Desk, ground: Ground, width: float, s: int, i: int, count: int
) -> int:
    """Open a gap at slot `i`, or put off a reload that has not been needed yet; returns the number of gaps."""
    desk.state[s] = AWAY
    if desk.returns[s] > i:
        put_off(gaps, desk, s, i)
        return count
    gaps.storage[count], gaps.release[count] = s, i
    gaps.ready[count] = i - 1 if on_demand else desk.written[s]
    gaps.copy[count] = not desk.valid[s]
    ground.left[count] = ground.offset[s]
    desk.valid[s], desk.gap[s] = True, count
    if desk.cursor[s] == route.uses.start[s + 1]:
        gaps.reload[count], gaps.use[count] = NEVER, NEVER
        return count + 1
    v = route.uses.slot[desk.cursor[s]]
    gaps.use[count] = v
    if v == i:  # only when the op's own storages are laid out anew
        gaps.reload[count] = i
    elif on_demand:
        arrive(gaps, desk, count, v)
    else:
        q = book(
            desk.calendar.booked,
            desk.calendar.free,
            desk.calendar.slot,
            width,
            route.work[s] * route.lead,
            route.clock[i],
            route.clock[v],
        )
        arrive(gaps, desk, count, min(max(q, i + 1), v))
    return count + 1


@kernel
def _lay_out(
    route: Route,
    on_demand: bool,
    taken: Ints,
    gaps: Gaps,
    inherits: Ints,
    anchored: Flags,
    desk: Desk,
    ground: Ground,
    width: float,
    memory: int,
    i: int,
    count: int,
    living: int,
) -> tuple[int, int]:
    """Clear the device and lay out what the op in slot `i` needs; returns the numbers of gaps and residents.

    The second number is negative where the op needs more than there is.
    """
    flow, op, line = route.flow, route.order[i], ground.line
    donor, heir, n = inherits[i], flow.creates[op], route.order.shape[0]
    coming = taken[i + 1] if i + 1 < n else -1
    if donor >= 0 and taken[i] < 0:  # it gave its memory away in this slot: it takes that back and leaves like the rest
        line[find(ground, living, heir)] = donor
        desk.state[donor], desk.state[heir] = HERE, UNMADE
        inherits[i] = -1
    for a in range(living):
        s = line[a]
        if ground.fresh[s] == i:
            continue  # laid down in this slot, so it may just as well lie elsewhere
        if desk.returns[s] == i:  # reserved since an earlier slot, for this op: reserve it only now
            gaps.reload[desk.gap[s]] = i
        else:
            count = _evict(route, on_demand, gaps, desk, ground, width, s, i, count)
    living, low, high = 0, 0, memory
    if taken[i] >= 0:
        if donor < 0:
            return count, -1
        ground.laid[heir] = i  # at the end where the slot before has left it
        living = put(ground, living, heir, ground.offset[heir])
        if ground.offset[heir] == 0:
            low = flow.bytes[heir]
        else:
            high = ground.offset[heir]
    if coming >= 0 and ground.laid[coming] != i:  # at the other end
        at = high - flow.bytes[coming] if low > 0 else 0
        if at < low or at + flow.bytes[coming] > high:
            return count, -1
        living = _lay(gaps, desk, ground, living, coming, at, i)
        if low > 0:
            high = at
        else:
            low = flow.bytes[coming]
    for k in range(flow.touches.start[op], flow.touches.start[op + 1]):
        s = flow.touches.items[k]
        if ground.laid[s] == i or anchored[s] or (s == donor and taken[i] >= 0):
            continue
        if low + flow.bytes[s] > high:
            return count, -1
        living = _lay(gaps, desk, ground, living, s, low, i)
        low += flow.bytes[s]
    return count, living


@kernel
def _lay(gaps: Gaps, desk: Desk, ground: Ground, living: int, s: int, at: int, i: int) -> int:
    """Lay one of an op's storages down with the others; returns how many there are now."""
    if desk.gap[s] >= 0 and gaps.use[desk.gap[s]] == i:
        gaps.reload[desk.gap[s]] = i
        desk.returns[s] = i
    ground.laid[s], desk.state[s], ground.fresh[s] = i, HERE, i
    return put(ground, living, s, at)
