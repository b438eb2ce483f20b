"""What a pool of size classes must hold for a graph, and initial pools."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.graph import Csr
from planner.jit import kernel
from planner.swap.methods.swapadvisor.allocation_gene import (
    Allocation,
    Classes,
    Counts,
    object_bytes,
    repair_counts,
)
from planner.swap.problem.problem import Bytes, Flags, Ints, Problem
from planner.swap.problem.uses import uses_of
from planner.swap.schedule.base_orders import captured

#: Attempts at random classes in which every op fits.
_MAX_DRAWS = 8


class Demand(NamedTuple):
    """What a pool is for: the distinct `sizes` in bytes, the size of each storage (-1: it takes no memory), how many
    storages there are of each size, what each op `touches`, and the pool's `capacity` in bytes."""

    sizes: Bytes
    size_of: Ints
    members: Counts
    touches: Csr
    capacity: int


class ClassPool(NamedTuple):
    """Objects side by side, class after class: class `c` has those from `first[c]` up to `first[c + 1]`.

    `offset[o]` is the offset of an object, `class_of[s]` the class of a storage.
    """

    first: Ints
    offset: Bytes
    class_of: Ints


def demand_of(problem: Problem) -> Demand:
    """The sizes of all storages that any op touches."""
    arrays = problem.arrays
    touched = np.unique(arrays.touches.items)
    sizes, index = np.unique(arrays.bytes[touched], return_inverse=True)
    size_of = np.full(problem.storages, -1, np.int32)
    size_of[touched] = index
    members = np.bincount(index, minlength=len(sizes)).astype(np.int64)
    return Demand(sizes, size_of, members, arrays.touches, problem.memory)


def pool_of(demand: Demand, allocation: Allocation) -> ClassPool:
    """Lay out the objects of an allocation."""
    classes, counts = allocation.classes, allocation.counts
    objects = np.repeat(object_bytes(classes, demand.sizes), counts)
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    # the extra entry is for -1, and for graphs without sizes
    class_of = np.append(classes, -1).astype(np.int32)[demand.size_of]
    return ClassPool(first, np.cumsum(objects) - objects, class_of)


def fit_counts(demand: Demand, classes: Classes, counts: Counts) -> Allocation:
    """The pool with these classes and counts repaired.

    No class is left with fewer objects than an op needs at once, nor given more than there are storages to fill.
    """
    least = _least(demand.touches, demand.size_of, classes, len(counts))
    most = np.bincount(classes, weights=demand.members).astype(np.int64)
    return Allocation(classes, repair_counts(counts, object_bytes(classes, demand.sizes), least, most, demand.capacity))


def fits(demand: Demand, allocation: Allocation) -> bool:
    """Whether a pool is within its capacity."""
    return bool((allocation.counts * object_bytes(allocation.classes, demand.sizes)).sum() <= demand.capacity)


def random_allocation(demand: Demand, random: np.random.Generator) -> Allocation:
    """Random steps between classes with a random probability, counts uniform up to what there is to fill, repaired.

    Classes so fine or so coarse that some op does not fit are drawn again a few times.
    """
    for _ in range(_MAX_DRAWS):
        steps = random.random(max(0, len(demand.sizes) - 1)) < random.random()
        classes = np.concatenate([[0], np.cumsum(steps)])[: len(demand.sizes)].astype(np.int64)
        most = np.bincount(classes, weights=demand.members).astype(np.int64)
        found = fit_counts(demand, classes, random.integers(1, most + 1))
        if fits(demand, found):
            break
    return found


def default_allocation(problem: Problem, demand: Demand) -> Allocation:
    """The pool that is used without a search for one: sizes up to the next power of two share a class.

    Each class gets as many objects as it has storages in use at once in the captured order; where that is more than
    the capacity, each gets the same share of it. It is our reading of a framework's pool, which rounds requests up and
    grows with demand: the paper does not describe the pool that its ablation falls back to.
    """
    arrays = problem.arrays
    powers = np.ceil(np.log2(np.maximum(demand.sizes, 1))).astype(np.int64)
    classes = np.unique(powers, return_inverse=True)[1].astype(np.int64)
    class_of = np.append(classes, -1)[demand.size_of].astype(np.int32)
    uses = uses_of(captured(problem), arrays)
    groups = int(classes.max(initial=-1)) + 1
    live = _most_live(arrays.live_in, arrays.persistent | arrays.live_out, uses.start, uses.slot, class_of, groups)
    wanted_bytes = int((live * object_bytes(classes, demand.sizes)).sum())
    share = min(1.0, demand.capacity / max(1, wanted_bytes))
    return fit_counts(demand, classes, np.maximum(1, np.floor(live * share)).astype(np.int64))


@kernel
def _least(touches: Csr, size_of: Ints, classes: Classes, count: int) -> Counts:
    """`[classes]`, the most storages of each that some op touches at once."""
    least, current = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for op in range(touches.start.shape[0] - 1):
        for k in range(touches.start[op], touches.start[op + 1]):
            c = classes[size_of[touches.items[k]]]
            current[c] += 1
            least[c] = max(least[c], current[c])
        for k in range(touches.start[op], touches.start[op + 1]):
            current[classes[size_of[touches.items[k]]]] = 0
    return least


@kernel
def _most_live(live_in: Flags, outlives: Flags, start: Ints, slot: Ints, class_of: Ints, count: int) -> Counts:
    """`[classes]`, the most storages of each that are in use in one slot when nothing ever leaves."""
    n = slot.max() + 1 if slot.shape[0] else 0
    change = np.zeros((count, n + 1), np.int32)
    for s in range(class_of.shape[0]):
        if start[s] < start[s + 1]:
            change[class_of[s], 0 if live_in[s] else slot[start[s]]] += 1
            if not outlives[s]:
                change[class_of[s], slot[start[s + 1] - 1] + 1] -= 1
    most = np.zeros(count, np.int64)
    for c in range(count):
        current = 0
        for i in range(n):
            current += change[c, i]
            most[c] = max(most[c], current)
    return most
