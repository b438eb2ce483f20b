"""Offsets for boxes that must not overlap: each is alive for a span of time and takes some bytes."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.cancel import Cancelled, CancelToken
from planner.errors import StowageError
from planner.memory.packing.infeasible_subset import ConflictSearch, PackingConflict
from planner.memory.packing.problem import Gaps, checked
from planner.memory.packing.search import Lowest, lowest
from planner.progress import ShowProgress, reporting

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Packing:
    """The offsets of boxes.

    Args:
        offsets: `[boxes]`, bytes.
        peak: the largest offset + size, in bytes.
        max_live: bytes that any placement needs: the most that are alive at once.
        optimal: whether it is proven that no placement is lower: `peak` is `bound`. False does not mean that one is.
        seconds: duration of the search.
        bound: bytes that any placement is proven to need, `max_live` or more.
        conflict: boxes that alone show that the capacity is too low, if that is proven and was asked for.
    """

    offsets: Ints
    peak: int
    max_live: int
    optimal: bool
    seconds: float
    bound: int = 0
    conflict: PackingConflict | None = None


def pack(
    lower: ArrayLike,
    upper: ArrayLike,
    sizes: ArrayLike,
    *,
    capacity: int | None = None,
    alignment: int = 1,
    fixed: ArrayLike | None = None,
    gaps: Gaps | None = None,
    repeats: bool = False,
    rounds: int | None = None,
    seconds: float | None = None,
    explain: bool = False,
    stop: CancelToken | None = None,
    progress: ShowProgress = False,
) -> Packing:
    """Find low offsets, such that boxes that are alive at the same time share no byte.

    Greedy placement by first fit and best fit in several orders, then squeaky-wheel optimization (Joslin and
    Clements, JAIR 1999) of the best of these: boxes at high offsets are placed earlier in the next round. A complete
    search follows for a few boxes, or where `seconds` are given; without these, the same boxes get the same offsets
    every time. Stopped in these seconds, by Ctrl-C or `stop`, it returns the best placement so far.

    Args:
        lower, upper: `[boxes]`, alive at times `lower <= t < upper`; where they are equal, never.
        sizes: `[boxes]`, bytes.
        capacity: stop as soon as the height is no more than this; without it, when it is provably minimal.
        alignment: every offset is a multiple of this many bytes.
        fixed: `[boxes]`, predetermined offsets, -1 for the others.
        gaps: for each box, pairs of times between which it is not alive; it keeps its offset.
        repeats: whether time is cyclic, so that a box with `upper < lower` is alive from `lower` on and until `upper`,
            at one offset.
        rounds: number of reorderings after the greedy orders; by default, more for fewer boxes.
        seconds: search that long, unless it is proven before that nothing is lower.
        explain: if it is proven that nothing fits `capacity`, look for few boxes that show it, up to `seconds` more.
        stop: checked before each placement of all boxes; None to never cancel.
        progress: as in `planner.progress.reporting`.

    Raises:
        StowageError: the lists differ in length, a span or size is negative, or fixed boxes overlap.
        Cancelled: cancellation was requested, and no `seconds` are given or nothing has been placed yet.
    """
    begin = perf_counter()
    if seconds is not None and not seconds >= 0:
        raise StowageError(f"seconds must be 0 or more, got {seconds}")
    boxes = checked(lower, upper, sizes, alignment, fixed, repeats, gaps)
    goal = max(boxes.bound, capacity or 0)
    stop = stop or CancelToken()
    if rounds is None:
        rounds = min(max(300_000 // max(len(boxes.sizes), 1), 12), 600)
    known: list[Lowest] = []
    with reporting(progress) as report:

        def tell(share: float, found: Lowest, doing: str) -> None:
            known[:] = [found]
            report(min(share, 1.0), f"{doing}: {found.peak:,} bytes, at least {found.bound:,} are needed")

        conflict: ConflictSearch | None = None
        try:
            found = lowest(boxes, goal, rounds, seconds, stop, tell)
            if explain and capacity is not None and found.bound > capacity:
                tell(1.0, found, "looking for buffers that do not fit")
                conflict = ConflictSearch(boxes, capacity, found.blamed)
                conflict.run(seconds, stop)
        except (KeyboardInterrupt, Cancelled) as error:
            # a Cancelled that this token did not raise ends something around this call
            if seconds is None or not known or (isinstance(error, Cancelled) and not stop.requested):
                raise
            found = known[0]
    optimal = found.peak == found.bound
    return Packing(
        found.offsets, found.peak, boxes.bound, optimal, perf_counter() - begin, found.bound,
        None if conflict is None else conflict.found,
    )  # fmt: skip
