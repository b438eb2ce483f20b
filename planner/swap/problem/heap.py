"""A binary heap of items with the smallest key on top; of equal keys, the smallest item."""

from __future__ import annotations

from planner.jit import inlined_kernel, kernel
from planner.swap.problem.problem import Ints, Seconds


@kernel
def push(heap: Ints, size: int, key: Ints | Seconds, item: int) -> int:
    """Add an item, whose key is `key[item]`; returns the new size."""
    at = size
    while at > 0 and _precedes(key, item, heap[(at - 1) // 2]):
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = item
    return size + 1


@kernel
def pop(heap: Ints, size: int, key: Ints | Seconds) -> tuple[int, int]:
    """Remove the item on top; returns it and the new size."""
    top, last, at = heap[0], heap[size - 1], 0
    size -= 1
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and _precedes(key, heap[below + 1], heap[below]):
            below += 1
        if not _precedes(key, heap[below], last):
            break
        heap[at] = heap[below]
        at = below
    heap[at] = last
    return int(top), size


@inlined_kernel
def _precedes(key: Ints | Seconds, first: int, then: int) -> bool:
    return bool(key[first] < key[then] or (key[first] == key[then] and first < then))
