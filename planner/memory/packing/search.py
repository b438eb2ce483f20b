"""Search for an order of placing boxes that gives low offsets."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.cancel import CancelToken
from planner.memory.packing.portfolio import CompleteSearch
from planner.memory.packing.problem import PackingProblem

Ints = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
#: Without a time limit, the complete search is tried for up to `_MAX_EXACT_BOXES` boxes and `_NODES` nodes.
_MAX_EXACT_BOXES, _NODES = 12, 20_000
#: Shares of a time limit for a first search at the least height and for better orders.
_LEAST_SHARE, _ORDER_SHARE = 0.1, 0.15
#: Afterwards: seconds of a search at the least height, at first, and how many times longer the next one is; the share
#: of these that is spent on heights between, and on each of them.
_FIRST_SECONDS, _GROWTH, _BETWEEN_SHARE, _HEIGHT_SHARE = 0.5, 1.2, 0.4, 0.1
#: Heights between are lower by a part of what is above the least, from the largest part on; then by one byte.
_LARGEST_PART, _LEAST_PART = 2, 64
_MOST_ROUNDS = 1_000_000
_ORDERS_IMPROVED = 3  # greedy orders to improve; one alone gets stuck more often


class Lowest(NamedTuple):
    """The lowest placement found: its offsets and height, the bytes that any placement needs, and boxes that prove that
    the goal is below these, if a search did.
    """

    offsets: Ints
    peak: int
    bound: int
    blamed: Ints | None = None


Tell = Callable[[float, Lowest, str], object]


def lowest(
    boxes: PackingProblem, goal: int, rounds: int, seconds: float | None, stop: CancelToken, tell: Tell
) -> Lowest:
    """Search for a placement until its height is no more than `goal`, or proven to be the least.

    Args:
        boxes: what is placed.
        goal: bytes.
        rounds: number of reorderings after the greedy orders, without a time limit.
        seconds: time limit; None for a limit of rounds and nodes, which finds the same every time.
        stop: checked before each placement.
        tell: called with the share done, the lowest placement so far and what is done next.
    """
    begin = perf_counter()
    size = boxes.rounded.astype(np.float64)
    by_start = 1.0 + boxes.segments - boxes.begin
    length = boxes.length
    attempts: list[tuple[int, Floats, bool, Ints]] = []
    bound = boxes.bound
    for urgency in (size * np.sqrt(length), size, size * length, by_start, length, np.sqrt(size) * length):
        for best_fit in (False, True):
            stop.check()
            offsets = boxes.place(urgency, best_fit)
            peak = boxes.peak(offsets)
            if peak <= goal:
                return Lowest(offsets, peak, bound)
            attempts.append((peak, urgency, best_fit, offsets))
            least = min(attempts, key=lambda attempt: attempt[0])
            tell(0.0, Lowest(least[3], least[0], bound), "placing by greedy orders")
            if seconds is not None and perf_counter() - begin > seconds:
                return Lowest(least[3], least[0], bound)
    attempts.sort(key=lambda attempt: attempt[0])
    best = Lowest(attempts[0][3], attempts[0][0], bound)
    search = None
    if seconds is not None or len(boxes.sizes) <= _MAX_EXACT_BOXES:
        search = CompleteSearch(boxes)
    if search is not None and search.possible:
        if seconds is None:
            best = _complete_by_nodes(boxes, search, best, goal, stop, tell)
        else:
            tell(0.0, best, "searching all placements")
            best = _decide(boxes, search, best, max(best.bound, goal), None, begin + _LEAST_SHARE * seconds, stop)
        if best.peak <= max(goal, best.bound):
            return best
    searched, ordered = (_LEAST_SHARE, _ORDER_SHARE) if search is not None and search.possible else (0.0, 1.0)
    random = np.random.default_rng(0)
    for number, start in enumerate(attempts[:_ORDERS_IMPROVED]):
        share = searched + ordered * (number + 1) / _ORDERS_IMPROVED
        until = inf if seconds is None else begin + share * seconds
        count = rounds // _ORDERS_IMPROVED if seconds is None else _MOST_ROUNDS
        offsets, peak = _squeaky_wheel(boxes, start, goal, count, random, until, stop)
        if peak < best.peak:
            best = best._replace(offsets=offsets, peak=peak)
        if best.peak <= goal:
            return best
        tell(0.0 if seconds is None else (perf_counter() - begin) / seconds, best, "placing in better orders")
    if seconds is None or search is None or not search.possible:
        return best
    return _complete(boxes, search, best, goal, seconds, begin, stop, tell)


def _complete(
    boxes: PackingProblem, search: CompleteSearch, best: Lowest, goal: int, seconds: float, begin: float,
    stop: CancelToken, tell: Tell,
) -> Lowest:  # fmt: skip
    """Look for placements below the given one until the time is over, at the least height and between in turn.

    A puzzle without slack is often solved at its least height though no search finds a placement a little higher: what
    may be wasted prunes less. So the least height gets most of the time, and every step down takes as much as works.
    """
    end, slice_seconds, part = begin + seconds, _FIRST_SECONDS, _LARGEST_PART
    while True:
        until = min(end, perf_counter() + _BETWEEN_SHARE * slice_seconds)
        while best.peak > (least := max(best.bound, goal)) and (now := perf_counter()) < until:
            tell((now - begin) / seconds, best, "searching all placements")
            step = (best.peak - least) // part if part <= _LEAST_PART else 1
            found = _decide(
                boxes, search, best, best.peak - max(step, 1), None, min(until, now + _HEIGHT_SHARE * slice_seconds),
                stop,
            )  # fmt: skip
            part = max(part // 2, _LARGEST_PART) if found.peak < best.peak else min(2 * part, 2 * _LEAST_PART)
            best = found
        until = min(end, perf_counter() + slice_seconds)
        # a refuted height gives way to the next one
        while best.peak > (least := max(best.bound, goal)) and (now := perf_counter()) < until:
            tell((now - begin) / seconds, best, "searching all placements")
            best = _decide(boxes, search, best, least, None, until, stop)
        if best.peak <= least or perf_counter() >= end:
            return best
        slice_seconds *= _GROWTH


def _complete_by_nodes(
    boxes: PackingProblem, search: CompleteSearch, best: Lowest, goal: int, stop: CancelToken, tell: Tell
) -> Lowest:
    """Look for placements below the given one: the least, then one after the other until a search does not find any."""
    height = max(best.bound, goal)
    while best.peak > max(goal, best.bound):
        tell(0.0, best, "searching all placements")
        found = _decide(boxes, search, best, height, _NODES, inf, stop)
        if found is best and height == best.peak - 1:
            break
        best, height = found, found.peak - 1
    return best


def _decide(
    boxes: PackingProblem, search: CompleteSearch, best: Lowest, height: int, nodes: int | None, until: float,
    stop: CancelToken,
) -> Lowest:  # fmt: skip
    """The given placement, with what a search at a height has found out."""
    found = search.decide(height, nodes, until, stop)
    if found.fits:
        offsets = boxes.fixed.clip(0)
        offsets[search.boxes] = found.offsets
        return best._replace(offsets=offsets, peak=boxes.peak(offsets))
    if found.fits is False:
        # the first height that is refuted is the goal or above, so that its proof holds for the goal
        blamed = found.blamed if best.blamed is None else best.blamed
        return best._replace(bound=search.above(height), blamed=blamed)
    return best


def _squeaky_wheel(
    boxes: PackingProblem,
    start: tuple[int, Floats, bool, Ints],
    goal: int,
    rounds: int,
    random: np.random.Generator,
    until: float,
    stop: CancelToken,
) -> tuple[Ints, int]:
    """Make boxes at high offsets more urgent and place all again, repeatedly."""
    least, urgency, best_fit, best = start
    offsets = best
    urgency = urgency.copy()
    for _ in range(rounds):
        stop.check()
        if perf_counter() > until:
            break
        high = offsets + boxes.sizes > (goal + least) // 2
        urgency[high] *= random.uniform(1.17, 1.95, int(high.sum()))
        offsets = boxes.place(urgency, best_fit)
        peak = boxes.peak(offsets)
        if peak < least:
            best, least = offsets, peak
        if least <= goal:
            break
    return best, least
