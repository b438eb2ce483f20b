"""Small random changes to choices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.kernels import kernel
from planner.swap.methods.annealing.choices import AWAY, FINE, OUT_RANK, RELEASE, RELOAD, Choices, Facts, Spans
from planner.swap.methods.annealing.lay_out import Sheet
from planner.swap.problem.problem import Ints

#: The state of a random generator: one odd 64 bit number.
Chance = NDArray[np.uint64]


@kernel
def draw(chance: Chance, below: int) -> int:
    """A random whole number from 0 on: xorshift64* (Vigna, ACM TOMS 2016)."""
    x = chance[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    chance[0] = x
    return int(np.int64((x * np.uint64(2685821657736338717)) >> np.uint64(33)) % below)


@kernel
def change(facts: Facts, choices: Choices, sheet: Sheet, count: int, focus: int, chance: Chance) -> None:
    """Make one random change, near slot `focus` if that is not negative.

    Args:
        facts: the problem.
        choices: changed.
        sheet, count: what the choices were laid out to, and how many gaps that are; it need not be up to date.
        focus: a slot, or -1.
        chance: the random generator.
    """
    order, _, donor, spans = choices
    n = order.shape[0]
    kind = draw(chance, 16)
    if kind < 4:
        row = _any_row(sheet.slot, facts.uses_start, spans.shape[0], focus, chance)
        _toggle(spans, row, n, focus, chance)
    elif kind < 9 and count > 0:
        k = _any_gap(sheet.gaps.release, sheet.gaps.use, count, focus, chance)
        row = sheet.row[k]
        if kind < 7:
            _shift(spans, row, RELOAD, sheet.gaps.reload[k], n, chance)
        else:
            _shift(spans, row, RELEASE, max(sheet.gaps.release[k], 0), n, chance)
    elif kind == 9 and count > 0:
        row = sheet.row[_any_gap(sheet.gaps.release, sheet.gaps.use, count, focus, chance)]
        far = 2 * FINE if draw(chance, 2) else min(n, 16) * FINE
        spans[row, OUT_RANK + draw(chance, 2)] = draw(chance, 2 * far + 1) - far
    elif kind < 12:
        op = draw(chance, n)
        for _ in range(8):
            a, b = facts.touch_start[op], facts.touch_start[op + 1]
            s = facts.touch_items[a + draw(chance, b - a)] if a < b else -1
            if s >= 0 and facts.held[s]:
                _house(facts, choices, s, n, chance)
                break
            op = draw(chance, n)
    elif kind < 14:
        op = draw(chance, n)
        for _ in range(n):
            a, b = facts.giver_start[op], facts.giver_start[op + 1]
            if a < b:
                donor[op] = facts.giver_items[a + draw(chance, b - a)] if donor[op] < 0 else -1
                break
            op = (op + 1) % n
    else:
        _move(facts, choices, focus, chance)


@kernel
def _toggle(spans: Spans, row: int, slots: int, focus: int, chance: Chance) -> None:
    """Let a storage leave in an idle time or stay: as long as can be, or around a slot."""
    leaves = not spans[row, AWAY]
    spans[row] = 0
    if not leaves:
        return
    how = draw(chance, 5)
    spans[row, AWAY] = 1
    spans[row, RELEASE], spans[row, RELOAD] = 0, slots
    if how == 1 and focus >= 0:
        spans[row, RELEASE] = focus
    if how == 2 and focus >= 0:
        spans[row, RELOAD] = focus + 1
    if how == 3 and focus >= 0:
        spans[row, RELEASE], spans[row, RELOAD] = focus, focus + 1
    if how == 4 and focus >= 0:  # only to lie elsewhere
        spans[row, RELEASE] = spans[row, RELOAD] = focus


@kernel
def _house(facts: Facts, choices: Choices, s: int, slots: int, chance: Chance) -> None:
    """Let a storage start the step elsewhere."""
    _, resident, _, spans = choices
    resident[s] = not resident[s]
    first, last = facts.uses_start[s] + s, facts.uses_start[s + 1] + s
    spans[first, AWAY] = spans[last, AWAY] = 0
    spans[first, RELOAD] = slots if draw(chance, 2) else draw(chance, slots)
    spans[last, RELEASE] = 0 if draw(chance, 2) else slots


@kernel
def _shift(spans: Spans, row: int, column: int, now: int, slots: int, chance: Chance) -> None:
    how = draw(chance, 6)
    if how < 2:
        spans[row, column] = max(0, now - 1)
    elif how < 4:
        spans[row, column] = min(slots, now + 1)
    elif how == 4:
        spans[row, column] = draw(chance, slots + 1)
    else:
        spans[row, column] = 0 if draw(chance, 2) else slots


@kernel
def _any_gap(release: Ints, use: Ints, count: int, focus: int, chance: Chance) -> int:
    """A random gap, rather one that ends or begins near the focus."""
    chosen, near = draw(chance, count), 2**31
    if focus < 0:
        return chosen
    for _ in range(min(8, count)):
        k = draw(chance, count)
        far = min(abs(release[k] - focus), abs(use[k] - focus))
        if far < near:
            chosen, near = k, far
    return chosen


@kernel
def _any_row(slot: Ints, uses_start: Ints, rows: int, focus: int, chance: Chance) -> int:
    """A random idle time, rather one that ends near the focus."""
    m = uses_start.shape[0] - 1
    chosen, near = draw(chance, rows), 2**31
    if focus < 0:
        return chosen
    for _ in range(8):
        s = draw(chance, m)
        a, b = uses_start[s], uses_start[s + 1]
        c = a + draw(chance, b - a + 1)
        if a == b:
            continue
        far = abs(slot[min(c, b - 1)] - focus)
        if far < near:
            chosen, near = c + s, far
    return chosen


@kernel
def _move(facts: Facts, choices: Choices, focus: int, chance: Chance) -> None:
    """Move an op to another slot that keeps every dependency; slots of releases and reloads go with the ops."""
    order, _, _, spans = choices
    n = order.shape[0]
    at = draw(chance, n) if focus < 0 else min(n - 1, max(0, focus + draw(chance, 17) - 8))
    op = order[at]
    low = at
    while low > 0:
        other, bound = order[low - 1], False
        for k in range(facts.before_start[op], facts.before_start[op + 1]):
            bound |= facts.before_items[k] == other
        if bound:
            break
        low -= 1
    high = at
    while high < n - 1:
        other, bound = order[high + 1], False
        for k in range(facts.after_start[op], facts.after_start[op + 1]):
            bound |= facts.after_items[k] == other
        if bound:
            break
        high += 1
    if low == high:
        return
    to = low + draw(chance, high - low)
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
def make_room(facts: Facts, choices: Choices, sheet: Sheet, full: int, chance: Chance) -> bool:
    """Let something leave, or for longer, that lies idle in a slot with too many bytes; False where nothing does."""
    _, resident, _, spans = choices
    uses_start, slot = facts.uses_start, sheet.slot
    m, n = uses_start.shape[0] - 1, choices.order.shape[0]
    chosen, seen = 0, 0
    start = draw(chance, m)
    for t in range(m):
        s = (start + t) % m
        a, b = uses_start[s], uses_start[s + 1]
        if a == b or facts.bytes[s] == 0:
            continue
        if full < slot[a] and not facts.held[s]:
            continue
        if full > slot[b - 1] and not facts.stateful[s] and not facts.kept[s]:
            continue
        low, high = a, b  # the first use at or after the slot
        while low < high:
            middle = (low + high) // 2
            if slot[middle] < full:
                low = middle + 1
            else:
                high = middle
        if low < b and slot[low] == full:
            continue
        row = low + s
        out = spans[row, AWAY] or (facts.held[s] and not resident[s] and low == a)
        out |= facts.stateful[s] and not resident[s] and low == b
        if out and spans[row, RELEASE] <= full < spans[row, RELOAD]:
            continue
        if low == a and resident[s] and facts.held[s] and (not facts.stateful[s] or not facts.updated[s]):
            row = -1 - s  # it may start on the host
        seen += 1
        if draw(chance, seen) == 0:
            chosen = row
        if seen >= 24:
            break
    if seen == 0:
        return False
    if chosen < 0:
        _house(facts, choices, -1 - chosen, n, chance)
        return True
    spans[chosen, AWAY] = 1
    if draw(chance, 2):
        spans[chosen, RELEASE], spans[chosen, RELOAD] = 0, n
    else:
        spans[chosen, RELEASE] = min(spans[chosen, RELEASE], full)
        spans[chosen, RELOAD] = max(spans[chosen, RELOAD], full + 1)
    return True
