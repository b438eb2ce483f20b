"""What every worker has of a storage, as boxes of digits, and which worker sends which box to which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from math import gcd, prod

from planner.partition.tdl import Range
from planner.partition.workers.tensors.spreads import Cut, Spread, Whole, chunks, contiguous
from planner.program import members, places

#: Per digit, the outermost first, its values as first and last (exclusive).
Box = tuple[Range, ...]
#: The digits of a storage, the outermost first, which together are all of its addresses.
Digits = tuple[Cut, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """Who sends what to whom so that every worker has what it wants.

    Args:
        levels: workers exchange with those that have another number at these levels alone.
        digits: of the storage.
        have, want: per worker, the box that it has, and wants.
        received: per worker, the senders and what each sends, in the order of senders.
    """

    levels: tuple[int, ...]
    digits: Digits
    have: tuple[Box, ...]
    want: tuple[Box, ...]
    received: tuple[tuple[tuple[int, Box], ...], ...]

    @property
    def elements(self) -> int:
        """Elements that all workers together receive."""
        return sum(box_elements(box) for boxes in self.received for _, box in boxes)


def digits_of(elements: int, *spreads: Spread) -> Digits | None:
    """The digits of a storage whose values all spreads cut; cuts that overlap are cuts of one digit.

    Args:
        elements: of the storage.
        spreads: ways in which it is spread.

    Returns:
        None if the storage has no such digits.
    """
    cuts = sorted({level for spread in spreads for level in spread if isinstance(level, Cut)}, key=lambda c: c.stride)
    joined: list[Cut] = []
    for cut in cuts:
        around = cut
        while joined and joined[-1].block > around.stride and joined[-1] != around:
            around = _around(joined.pop(), around)
        joined.append(around)
    borders = sorted({1, elements} | {border for cut in joined for border in (cut.stride, cut.block)})
    if elements == 0 or any(above % below for below, above in pairwise(borders)):
        return None
    digits = tuple(Cut(below, above // below) for below, above in pairwise(borders))
    if elements == 1:
        digits = (Cut(1, 1),)  # of which a worker may have nothing
    return tuple(reversed(digits)) if set(joined) <= set(digits) else None


def is_partition(elements: int, spread: Spread) -> bool:
    """Whether the digits that levels cut are the same or do not overlap."""
    digits = digits_of(elements, spread)
    return digits is not None and all(level in digits for level in spread if isinstance(level, Cut))


def _around(left: Cut, right: Cut) -> Cut:
    """The digit that two cuts are cuts of."""
    step = gcd(left.stride, right.stride, left.block, right.block)
    return Cut(step, max(left.block, right.block) // step)


def box_of(digits: Digits, spread: Spread, mesh: Sequence[int], place: Sequence[int]) -> Box | None:
    """What a worker has of a storage; None if it is no box of these digits."""
    own = chunks(spread, mesh, place)
    box = []
    for digit in digits:
        inside = {cut: own[cut] for cut in own if digit.stride <= cut.stride and cut.block <= digit.block}
        elements = contiguous(digit.block, inside)
        if elements is None:
            return None
        box.append((elements[0] // digit.stride, elements[1] // digit.stride))
    return tuple(box)


def boxes_of(digits: Digits, spread: Spread, mesh: tuple[int, ...]) -> tuple[Box, ...] | None:
    """What every worker has of a storage; None if it is not a box for each of them."""
    found = tuple(box for place in places(mesh) if (box := box_of(digits, spread, mesh, place)) is not None)
    return found if len(found) == len(places(mesh)) else None


def box_elements(box: Box) -> int:
    """How many elements are in a box."""
    return prod(last - first for first, last in box)


def is_inside(small: Box, large: Box) -> bool:
    """Whether one box is in another."""
    return all(a[0] >= b[0] and a[1] <= b[1] for a, b in zip(small, large, strict=True))


@lru_cache(maxsize=4096)
def exchange_between(elements: int, have: Spread, want: Spread, mesh: tuple[int, ...]) -> Exchange | None:
    """Find what workers must send each other, within as few levels as will do; None if the digits do not agree.

    No element is sent to a worker that has it, nor twice to the same one.

    Args:
        elements: of the whole storage.
        have, want: how it is spread, and how it is to be; levels of summands are the same in both.
        mesh: how many parts each level cuts into.
    """
    found = _boxes_in_common(elements, have, want, mesh)
    if found is None:
        return None
    free = tuple(level for level, spread in enumerate(have) if spread is not Whole.SUMMED)
    changed = tuple(level for level in free if have[level] != want[level])
    return exchange_of(*found, mesh, changed) or exchange_of(*found, mesh, free)


@lru_cache(maxsize=4096)
def exchange_of(
    digits: Digits, held: tuple[Box, ...], wanted: tuple[Box, ...], mesh: tuple[int, ...], levels: tuple[int, ...]
) -> Exchange | None:
    """Find what workers must send each other within some levels; None if that is not enough.

    Args:
        digits: of the storage.
        held, wanted: per worker, the box that it has, and wants.
        mesh: how many parts each level cuts into.
        levels: workers exchange with those that have another number at these levels alone.
    """
    received = [
        _received(worker, members(mesh, place, levels), held, wanted[worker], mesh)
        for worker, place in enumerate(places(mesh))
    ]
    if None in received:
        return None
    return Exchange(levels, digits, held, wanted, tuple(boxes or () for boxes in received))


def _received(
    worker: int, group: Sequence[int], held: Sequence[Box], want: Box, mesh: tuple[int, ...]
) -> tuple[tuple[int, Box], ...] | None:
    """What a worker receives from whom; None if others of the group do not have all that it lacks."""
    if is_inside(want, held[worker]) or not box_elements(want):
        return ()
    place = places(mesh)
    order = sorted(group, key=lambda other: (_distance(place[worker], place[other]), (other - worker) % len(place)))
    cells: dict[int, list[Box]] = {}
    for cell in _cells(want, [held[other] for other in group]):
        owner = next((other for other in order if is_inside(cell, held[other])), None)
        if owner is None:
            return None
        cells.setdefault(owner, []).append(cell)
    return tuple((sender, box) for sender in sorted(cells) if sender != worker for box in _joined(cells[sender]))


def _distance(mine: Sequence[int], other: Sequence[int]) -> tuple[bool, ...]:
    """Outer levels have the slower links: workers that differ only at inner levels are nearer."""
    return tuple(a != b for a, b in zip(mine, other, strict=True))


def _cells(want: Box, held: Iterable[Box]) -> list[Box]:
    """A box cut wherever somebody's box begins or ends, so that everyone has all of a cell or nothing."""
    boxes = list(held)
    ranges = []
    for digit, (first, last) in enumerate(want):
        borders = {first, last} | {border for box in boxes for border in box[digit] if first < border < last}
        ranges.append(list(pairwise(sorted(borders))))
    return list(product(*ranges))


def _joined(cells: Sequence[Box]) -> list[Box]:
    """One box for cells that make up one."""
    around = tuple((min(r[0] for r in ranges), max(r[1] for r in ranges)) for ranges in zip(*cells, strict=True))
    return [around] if box_elements(around) == sum(box_elements(cell) for cell in cells) else list(cells)


@lru_cache(maxsize=4096)
def keeps(elements: int, have: Spread, want: Spread, mesh: tuple[int, ...]) -> bool:
    """Whether every worker has what it is to have."""
    found = _boxes_in_common(elements, have, want, mesh)
    if found is None:
        return False
    _, held, wanted = found
    return all(is_inside(small, large) for small, large in zip(wanted, held, strict=True))


def _boxes_in_common(
    elements: int, have: Spread, want: Spread, mesh: tuple[int, ...]
) -> tuple[Digits, tuple[Box, ...], tuple[Box, ...]] | None:
    """Digits, and what workers have of them in both spreads; None if one of these is no box of digits of both."""
    digits = digits_of(elements, have, want)
    held = None if digits is None else boxes_of(digits, have, mesh)
    wanted = None if digits is None else boxes_of(digits, want, mesh)
    return None if digits is None or held is None or wanted is None else (digits, held, wanted)


@lru_cache(maxsize=4096)
def steps_between(elements: int, have: Spread, want: Spread, mesh: tuple[int, ...]) -> tuple[Spread, ...] | None:
    """Spreads to pass through so that least is received: level by level if that is no more than all levels at once.

    Args:
        elements, have, want, mesh: as in `exchange_between`.

    Returns:
        The spreads after each step, the last of which is the wanted one; None if no way is known.
    """
    levels = [level for level, (old, new) in enumerate(zip(have, want, strict=True)) if old != new]
    ways = [_one_by_one(have, want, levels), _one_by_one(have, want, levels[::-1]), (want,)]
    costs = [_received_on_the_way(elements, have, way, mesh) for way in ways]
    known = [cost for cost in costs if cost is not None]
    return ways[costs.index(min(known))] if known else None


def _one_by_one(have: Spread, want: Spread, levels: Sequence[int]) -> tuple[Spread, ...]:
    spread, found = list(have), []
    for level in levels:
        spread[level] = want[level]
        found.append(tuple(spread))
    return tuple(found)


def _received_on_the_way(elements: int, have: Spread, way: Sequence[Spread], mesh: tuple[int, ...]) -> int | None:
    total = 0
    for step in way:
        found = exchange_between(elements, have, step, mesh)
        if found is None:
            return None
        total, have = total + found.elements, step
    return total
