"""The allocation gene: size classes and how many objects each has (SwapAdvisor, ASPLOS 2020, section 4.3).

Sizes are distinct and ascend. A class takes neighbouring sizes, and its objects are as large as its largest size;
class numbers begin at 0 and rise by 0 or 1 from size to size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.swap.problem.problem import Bytes

Classes = NDArray[np.int64]
Counts = NDArray[np.int64]


class Allocation(NamedTuple):
    """A pool: `classes[t]` is the class of size `t`, `counts[c]` how many objects class `c` has."""

    classes: Classes
    counts: Counts


def object_bytes(classes: Classes, sizes: Bytes) -> Bytes:
    """`[classes]`, how large the objects of each class are."""
    last = np.flatnonzero(np.diff(classes, append=-1))
    return np.asarray(sizes[last], np.int64)


def cross_classes(first: Classes, then: Classes, cut: int) -> Classes:
    """The first `cut` sizes as in one parent and the rest as in the other, repaired."""
    return repair_classes(np.concatenate([first[:cut], then[cut:]]))


def repair_classes(raw: Classes) -> Classes:
    """The smallest increases after which classes rise by 0 or 1, numbered from 0 again."""
    classes = np.maximum.accumulate(raw)
    # a size is at most as many classes below a later one as there are steps between them
    steps = np.arange(len(classes))
    classes = np.maximum.accumulate((classes - steps)[::-1])[::-1] + steps
    return np.asarray(classes - classes[:1], np.int64)


def mutate_classes(classes: Classes, flips: NDArray[np.bool_]) -> Classes:
    """Move a size, and all later ones with it, to the class above or below: whichever keeps the steps 0 or 1.

    Args:
        classes: the parent.
        flips: `[sizes - 1]`, which sizes from the second on are moved.
    """
    steps = np.diff(classes)
    return np.concatenate([classes[:1], np.cumsum(np.where(flips, 1 - steps, steps))]).astype(np.int64)


def cross_counts(first: Allocation, then: Allocation, cut: int, classes: Classes) -> Counts:
    """The counts of a child with these classes, not repaired yet.

    Each parent's counts are written out size by size, cut and joined, and averaged within each class of the child.
    """
    joined = np.concatenate([first.counts[first.classes][:cut], then.counts[then.classes][cut:]])
    return average_counts(joined, classes)


def average_counts(by_size: Counts, classes: Classes) -> Counts:
    """From a count per size to one per class: the mean, rounded, at least 1."""
    total, members = np.bincount(classes, weights=by_size), np.bincount(classes)
    return np.maximum(1, np.floor(total / members + 0.5)).astype(np.int64)


def mutate_counts(
    counts: Counts, chosen: NDArray[np.bool_], normal: NDArray[np.float64], width: float, spread: float
) -> Counts:
    """Draw the chosen counts from a Gaussian around the old ones, at least 1; not repaired yet.

    Args:
        counts: the parent's.
        chosen: `[classes]`, which to draw.
        normal: `[classes]`, standard normal.
        width: standard deviation as a share of the old count.
        spread: standard deviation at least, in objects.
    """
    drawn = np.rint(counts + normal * np.maximum(width * counts, spread))
    return np.where(chosen, np.maximum(1, drawn), counts).astype(np.int64)


def repair_counts(counts: Counts, objects: Bytes, least: Counts, most: Counts, capacity: int) -> Counts:
    """Lower counts inversely to the objects' size until the pool fits, so that each class gives up as many bytes.

    Args:
        counts: `[classes]`, the desired counts.
        objects: `[classes]`, bytes of an object.
        least, most: `[classes]`, no class is left with fewer objects or given more.
        capacity: bytes; if not even the least counts fit, those are returned.
    """
    counts = np.clip(counts, least, np.maximum(least, most))
    while (excess := int((counts * objects).sum()) - capacity) > 0:
        free = counts > least
        if not free.any():
            break
        share = excess / np.count_nonzero(free)
        lowered = np.where(free, np.minimum(counts - least, np.rint(share / objects)), 0).astype(np.int64)
        if not lowered.any():  # less than one object each is left to give up
            lowered[np.flatnonzero(free)[objects[free].argmin()]] = 1
        counts = counts - lowered
    return np.asarray(counts, np.int64)
