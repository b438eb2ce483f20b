"""The search of `exhaustive` in one order, compiled: which spans to be away in, which slots, which queues, where.

Constants are passed with a type, as `np.int64(0)`: numba compiles a kernel anew for every literal that it is given.
Rows are assigned number by number: for whole ones it would compile what to say of shapes that differ, too. Largest
numbers, sums and indices are found without NumPy's functions, which take two seconds to compile.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_NONE = -9
# columns of the table of gaps
_STORAGE, _READY, _RELEASE, _RELEASE_TO, _START, _START_TO, _USE = range(7)


@njit(cache=True)
def search(sec, memory, sizes, per_unit, uses, starts, rows, table, reusers, persistent, below, result, queues):
    """Seconds of the fastest plan in this order, or `below`; fills in its stays and queues."""
    n, m = sec.shape[0], sizes.shape[0]
    used, rest = np.zeros((m + 1, n), np.int64), np.zeros((m + 1, n), np.int64)
    for s in range(m - 1, -1, -1):
        for i in range(n):
            rest[s, i] = rest[s + 1, i] + sizes[s] * ((uses[s] >> i) & 1)
    head = np.zeros(n + 1)
    for i in range(n):
        head[i + 1] = head[i] + sec[i]
    tail = head[n] - head
    loads = np.zeros((m + 1, 2))
    choice = starts[:-1] - 1
    picked = np.empty(table.shape[0], np.int64)
    s = 0
    while s >= 0:
        choice[s] += 1
        if choice[s] == starts[s + 1]:
            choice[s] = starts[s] - 1
            s -= 1
            continue
        begin, stop, first, after = rows[choice[s]]
        loads[s + 1, 0], loads[s + 1, 1] = loads[s, 0], loads[s, 1]
        fits = True
        for i in range(n):
            here = begin <= i < stop
            for g in range(first, after):
                back = n if table[g, _START] == _NONE else table[g, _START_TO]
                here &= not max(table[g, _RELEASE], 0) <= i < back
            used[s + 1, i] = used[s, i] + sizes[s] * here
            fits &= used[s + 1, i] + rest[s + 1, i] <= memory
        for g in range(first, after):
            loads[s + 1, 0] += sizes[s] * per_unit * (table[g, _READY] != _NONE)
            loads[s + 1, 1] += sizes[s] * per_unit * (table[g, _START] != _NONE)
        if not fits or max(loads[s + 1, 0], loads[s + 1, 1]) >= below:
            continue
        if s + 1 < m:
            s += 1
            continue
        count = 0
        for t in range(m):
            for g in range(rows[choice[t], 2], rows[choice[t], 3]):
                picked[count] = g
                count += 1
        below = _slots(
            sec, head, tail, memory, sizes, per_unit, choice, rows, table, reusers, persistent, picked[:count],
            used[m].copy(), below, result, queues,
        )  # fmt: skip
    return below


@njit(cache=True)
def _slots(
    sec,
    head,
    tail,
    memory,
    sizes,
    per_unit,
    choice,
    rows,
    table,
    reusers,
    persistent,
    picked,
    used,
    below,
    result,
    queues,
):
    """Try every slot for the copies of these gaps; `used` is what they take when away as long as can be."""
    count, n = picked.shape[0], sec.shape[0]
    release, start = np.empty(count, np.int64), np.empty(count, np.int64)
    option, put = np.full(count, -1), np.zeros((count, 2), np.int64)
    for j in range(count):
        release[j], start[j] = table[picked[j], _RELEASE_TO], table[picked[j], _START]
    perms = np.zeros((2, max(count, 1)), np.int64)
    if _queues(sec, tail, sizes, per_unit, table, picked, release, start, below, np.int64(0), perms) >= below:
        return below
    j = 0
    while j >= 0:
        if j == count:
            time = _queues(sec, tail, sizes, per_unit, table, picked, release, start, below, np.int64(1), perms)
            if time < below and _place(
                n, memory, sizes, choice, rows, table, reusers, persistent, release, start, result
            ):
                below = time
                _write_down(table, picked, release, start, perms, result, queues)
                if time <= head[n] * (1 + 1e-12):
                    return below
            j -= 1
            continue
        g = picked[j]
        size = sizes[table[g, _STORAGE]]
        if option[j] >= 0:  # take back
            for i in range(max(table[g, _RELEASE], 0), put[j, 0]):
                used[i] -= size
            for i in range(put[j, 1], table[g, _START_TO]):
                used[i] -= size
        option[j] += 1
        returns = table[g, _START] != _NONE
        wide = table[g, _START_TO] - table[g, _START] + 1 if returns else 1
        tall = table[g, _RELEASE_TO] - table[g, _RELEASE] + 1
        if option[j] == wide * tall:
            option[j], release[j], start[j] = -1, table[g, _RELEASE_TO], table[g, _START]
            j -= 1
            continue
        release[j] = table[g, _RELEASE_TO] - option[j] // wide
        start[j] = table[g, _START] + option[j] % wide
        put[j, 0], put[j, 1] = max(release[j], 0), start[j] if returns else n
        fits = True
        for i in range(max(table[g, _RELEASE], 0), put[j, 0]):
            used[i] += size
            fits &= used[i] <= memory
        if returns:
            for i in range(put[j, 1], table[g, _START_TO]):
                used[i] += size
                fits &= used[i] <= memory
        if not fits or (returns and start[j] < release[j]):
            continue
        if option[j] > 0:
            time = _queues(sec, tail, sizes, per_unit, table, picked, release, start, below, np.int64(0), perms)
            if time >= below:
                continue
        j += 1
    return below


@njit(cache=True)
def _queues(sec, tail, sizes, per_unit, table, picked, release, start, below, exact, best):
    """The least seconds of all queue orders; any below `below` if not `exact`.

    `best` is filled with the two queues as places in `picked`. What has no place in a queue yet follows it without
    waiting for the rest, which is never slower. Where slots are not settled yet, a copy in waits for the copy out of
    its own gap at least.
    """
    count = picked.shape[0]
    queue, length = np.zeros((2, max(count, 1)), np.int64), np.zeros(2, np.int64)
    for j in range(count):  # all copies: those that have their place first
        for way in range(2):
            if table[picked[j], _READY if way == 0 else _START] != _NONE:
                queue[way, length[way]] = j
                length[way] += 1
    total = length[0] + length[1]
    trying = np.full(total + 1, -1)
    scratch = np.empty((4, count + sec.shape[0] + 1))
    none = np.int64(0)
    if _run(sec, tail, sizes, per_unit, table, picked, release, start, length, none, queue, below, scratch) >= below:
        return below
    if total == 0:
        return tail[0]
    d = 0
    while d >= 0:
        way, at = (0, d) if d < length[0] else (1, d - length[0])
        if trying[d] >= 0:  # take back
            p = trying[d]
            queue[way, at], queue[way, p] = queue[way, p], queue[way, at]
        trying[d] = at if trying[d] < 0 else trying[d] + 1
        if trying[d] == length[way]:
            trying[d] = -1
            d -= 1
            continue
        p = trying[d]
        queue[way, at], queue[way, p] = queue[way, p], queue[way, at]
        if exact and at > 0 and _may_precede(table, picked, release, start, way, queue[way, at], queue[way, at - 1]):
            continue
        time = _run(sec, tail, sizes, per_unit, table, picked, release, start, length, d + 1, queue, below, scratch)
        if time >= below:
            continue
        if d + 1 < total:
            d += 1
            continue
        below = time
        for p in range(count):
            best[0, p], best[1, p] = queue[0, p], queue[1, p]
        if not exact:
            return below
    return below


@njit(cache=True)
def _may_precede(table, picked, release, start, way, j, other):
    """Whether one copy may as well go before another that is right ahead: it waits less and is waited for sooner."""
    a, b = picked[j], picked[other]
    if way == 0:
        begin, end, other_begin, other_end = table[a, _READY], release[j], table[b, _READY], release[other]
    else:
        begin, end, other_begin, other_end = start[j], table[a, _USE], start[other], table[b, _USE]
    same = begin == other_begin and end == other_end
    return (begin <= other_begin and end <= other_end and not same) or (same and j < other)


@njit(cache=True)
def _run(sec, tail, sizes, per_unit, table, picked, release, start, length, settled, queue, below, scratch):
    """Seconds until all is done, at least; infinite where the queues wait for each other.

    The first `settled` copies have their place in the queues, those out first.
    """
    n = sec.shape[0]
    outs_settled, ins_settled = min(settled, length[0]), max(settled - length[0], 0)
    op_end, out_end, in_end, own_end = scratch
    op_end[0] = 0.0
    out_end[:] = -1.0
    in_end[:] = -1.0
    own_end[:] = -1.0
    i, left = 0, length[0] + length[1] + n
    done_outs = done_ins = 0  # of those with a place
    out_free = in_free = last = 0.0
    while left > 0:
        before = left
        for p in range(length[0]):
            j = queue[0, p]
            ready = table[picked[j], _READY]
            if out_end[p] >= 0:
                continue
            if i <= ready or done_outs < min(p, outs_settled):
                if p < outs_settled:
                    break
                continue
            out_end[p] = own_end[j] = max(out_free, op_end[ready + 1]) + sizes[table[picked[j], _STORAGE]] * per_unit
            last = max(last, out_end[p])
            if p < outs_settled:
                out_free = out_end[p]
                done_outs += 1
            left -= 1
        for p in range(length[1]):
            j = queue[1, p]
            if in_end[p] >= 0:
                continue
            may = i >= start[j] and done_ins >= min(p, ins_settled)
            may &= table[picked[j], _READY] == _NONE or own_end[j] >= 0
            begin = max(in_free, own_end[j])
            if may:
                begin = max(begin, op_end[start[j]])
                for q in range(length[0]):
                    if release[queue[0, q]] <= start[j]:
                        may &= out_end[q] >= 0
                        begin = max(begin, out_end[q])
            if not may:
                if p < ins_settled:
                    break
                continue
            in_end[p] = begin + sizes[table[picked[j], _STORAGE]] * per_unit
            last = max(last, in_end[p])
            if p < ins_settled:
                in_free = in_end[p]
                done_ins += 1
            left -= 1
        if i < n:
            begin, may = op_end[i], True
            for q in range(length[0]):
                if release[queue[0, q]] <= i:
                    may &= out_end[q] >= 0
                    begin = max(begin, out_end[q])
            for q in range(length[1]):
                if table[picked[queue[1, q]], _USE] <= i:
                    may &= in_end[q] >= 0
                    begin = max(begin, in_end[q])
            if may:
                op_end[i + 1] = begin + sec[i]
                last = max(last, op_end[i + 1])
                i += 1
                left -= 1
        if last >= below:
            return last
        if left == before:
            return np.inf
    # what has no place yet follows, one after the other
    for way in range(2):
        clock = out_free if way == 0 else in_free
        least = np.inf
        for p in range(outs_settled if way == 0 else ins_settled, length[way]):
            j = queue[way, p]
            clock += sizes[table[picked[j], _STORAGE]] * per_unit
            least = min(least, tail[release[j] if way == 0 else table[picked[j], _USE]])
        if least < np.inf:
            last = max(last, clock + least)
    return last


@njit(cache=True)
def _place(n, memory, sizes, choice, rows, table, reusers, persistent, release, start, result):
    """Whether the stays fit side by side; if so, they are written into `result`."""
    m, count, j = sizes.shape[0], 0, 0
    stay = np.empty((64, 3), np.int64)
    box = np.arange(64)
    first, last = np.full(m, -1), np.full(m, -1)
    for s in range(m):
        begin, stop, absence, after = rows[choice[s]]
        opened = begin
        for g in range(absence, after):
            if table[g, _RELEASE] != _NONE:
                stay[count, 0], stay[count, 1], stay[count, 2] = s, opened, release[j]
                first[s] = count if first[s] < 0 else first[s]
                last[s] = count
                count += 1
            opened = start[j] if table[g, _START] != _NONE else -1
            j += 1
        if opened >= 0:
            stay[count, 0], stay[count, 1], stay[count, 2] = s, opened, stop
            first[s] = count if first[s] < 0 else first[s]
            last[s] = count
            count += 1
        home = persistent[s] and (after == absence or table[absence, _RELEASE] != _NONE)
        if home and last[s] != first[s]:
            box[last[s]] = box[first[s]]
    for _ in range(m):  # chains of reused buffers, from whatever end
        for s in range(m):
            if reusers[s] >= 0:
                a, b = box[last[s]], box[first[reusers[s]]]
                for r in range(count):
                    if box[r] == max(a, b):
                        box[r] = min(a, b)
    mask, size = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for r in range(count):
        size[box[r]] = sizes[stay[r, 0]]
        for i in range(stay[r, 1], stay[r, 2]):
            mask[box[r]] |= 1 << i
    offset = np.zeros(count, np.int64)
    if not _stack(n, memory, mask, size, offset):
        return False
    result[0, 0] = count
    for r in range(count):
        result[1 + r, 0], result[1 + r, 1], result[1 + r, 2] = stay[r, 0], stay[r, 1], stay[r, 2]
        result[1 + r, 3] = offset[box[r]]
    return True


@njit(cache=True)
def _stack(n, memory, mask, size, offset):
    """Place boxes, each lying at the bottom or on another as in any placement pushed down; whether they fit.

    Lowest first, so that later boxes are never lower; of those equally low, in the order of their numbers.
    """
    boxes, count = np.empty(mask.shape[0], np.int64), 0
    for r in range(mask.shape[0]):
        if mask[r] != 0:
            boxes[count] = r
            count += 1
    peak, low = np.zeros((count + 1, n), np.int64), np.zeros(count + 1, np.int64)
    chosen, placed = np.full(count + 1, -1), np.zeros(count, np.bool_)
    d = 0
    while d >= 0:
        if d == count:
            return True
        if chosen[d] >= 0:
            placed[chosen[d]] = False
        else:
            for i in range(n):
                need = max(peak[d, i], low[d])
                for b in range(count):
                    if not placed[b] and (mask[boxes[b]] >> i) & 1:
                        need += size[boxes[b]]
                if need > memory:
                    chosen[d] = count  # cannot become a placement
        found = -1
        for b in range(chosen[d] + 1, count):
            if placed[b]:
                continue
            at, r = 0, boxes[b]
            for i in range(n):
                if (mask[r] >> i) & 1:
                    at = max(at, peak[d, i])
            if at + size[r] > memory or at < low[d] or (at == low[d] and d > 0 and b < chosen[d - 1]):
                continue
            found = b
            offset[r], low[d + 1] = at, at
            for i in range(n):
                peak[d + 1, i] = at + size[r] if (mask[r] >> i) & 1 else peak[d, i]
            break
        if found < 0:
            chosen[d] = -1
            d -= 1
        else:
            chosen[d], placed[found] = found, True
            d += 1
    return False


@njit(cache=True)
def _write_down(table, picked, release, start, perms, result, queues):
    outs = ins = 0
    for j in range(picked.shape[0]):
        outs += table[picked[j], _READY] != _NONE
        ins += table[picked[j], _START] != _NONE
    result[0, 1], result[0, 2] = outs, ins
    for p in range(outs):
        j = perms[0, p]
        g = picked[j]
        queues[0, p, 0], queues[0, p, 1], queues[0, p, 2] = table[g, _STORAGE], table[g, _READY], release[j]
    for p in range(ins):
        j = perms[1, p]
        g = picked[j]
        queues[1, p, 0], queues[1, p, 1], queues[1, p, 2] = table[g, _STORAGE], start[j], table[g, _USE]
