"""An order in which everything fits, where some ops only fit by reusing the buffer of an input.

Such an op comes last of all that use the input, and right after an op that leaves room for it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from planner.graph import inverted
from planner.swap.problem.problem import Bytes, Ints, Problem
from planner.swap.schedule.required_reuse import required_reuses

#: How many ops are tried at most as the one right before.
_MAX_PARTNERS = 16


def fits(problem: Problem, order: Ints) -> bool:
    """Whether any plan, however slow, runs the ops in this order; decided exactly."""
    return required_reuses(order, problem.arrays, problem.memory, np.empty(problem.ops, np.int32)) < 0


def reorder_for_reuse(problem: Problem, order: Ints, set_bytes: Bytes) -> Ints | None:
    """An order similar to the one given that has a plan; None if none was found.

    Args:
        problem: what is planned.
        order: `[ops]`, the op in each slot.
        set_bytes: `[ops]`, the working set of each op in bytes.
    """
    found = _ReuseOrder(problem, order, set_bytes).order()
    return found if found is not None and fits(problem, found) else None


class _ReuseOrder:
    """Ties ops into chains that run without another op in between; `after[b] = a` and `before[a] = b` where `a, b`."""

    def __init__(self, problem: Problem, order: Ints, set_bytes: Bytes) -> None:
        arrays, self.stop = problem.arrays, problem.stop
        self.arrays = arrays
        self.memory, self.set_bytes = problem.memory, set_bytes.tolist()
        self.old_order: list[int] = order.tolist()
        self.position = {op: position for position, op in enumerate(self.old_order)}
        self.touches = [set(part.tolist()) for part in np.split(arrays.touches.items, arrays.touches.start[1:-1])]
        self.reusables = [part.tolist() for part in np.split(arrays.overwrites.items, arrays.overwrites.start[1:-1])]
        self.earlier = [
            part.tolist() for part in np.split(problem.predecessors.items, problem.predecessors.start[1:-1])
        ]
        self.users: dict[int, list[int]] = {}
        for op in self.old_order:
            for storage in self.touches[op]:
                self.users.setdefault(storage, []).append(op)
        self.after: dict[int, int] = {}
        self.before: dict[int, int] = {}

    def order(self) -> Ints | None:
        """Tie every op that has to reuse a buffer to the op right before it; None if one cannot be tied."""
        waiting = deque(op for op in self.old_order if self.set_bytes[op] > self.memory)
        # further bytes that must be on the device, for the op that follows
        extra_bytes = dict.fromkeys(self.old_order, 0)
        found: list[int] | None = self.old_order
        while waiting:
            op = waiting.popleft()
            if op in self.after:
                continue
            for reusable, partner, partner_bytes in self._ways(op, extra_bytes[op]):
                self.stop.check()
                trial = self._scheduled(op, reusable, partner)
                if trial is not None:
                    found, extra_bytes[partner] = trial, partner_bytes
                    if self.set_bytes[partner] + partner_bytes > self.memory and partner not in self.after:
                        waiting.append(partner)
                    break
            else:
                return None
        return None if found is None else np.array(found, np.int32)

    def _ways(self, op: int, extra_bytes: int) -> Iterator[tuple[int, int, int]]:
        """Buffers the op could reuse, each with an op that could come right before and the bytes it leaves room for."""
        for reusable in self.reusables[op]:
            size = int(self.arrays.bytes[reusable])
            if self.set_bytes[op] + extra_bytes - size <= self.memory:
                yield from ((reusable, *one) for one in islice(self._partners(op, reusable, size), _MAX_PARTNERS))

    def _partners(self, op: int, reusable: int, size: int) -> Iterator[tuple[int, int]]:
        near = sorted(self.old_order, key=lambda other: abs(self.position[op] - 1 - self.position[other]))
        for other in sorted(near, key=lambda other: reusable not in self.touches[other]):
            if other == op or other in self.before:
                continue
            partner_bytes = 0 if reusable in self.touches[other] else size
            least = max((int(self.arrays.bytes[one]) for one in self.reusables[other]), default=0)
            if self.set_bytes[other] + partner_bytes - least <= self.memory:
                yield other, partner_bytes

    def _scheduled(self, op: int, reusable: int, partner: int) -> list[int] | None:
        """Tie an op to the one right before, after all others that use the reused buffer; undone if impossible."""
        self.after[op], self.before[partner] = partner, op
        old_order = self.earlier[op]
        self.earlier[op] = list({*old_order, *self.users[reusable]} - {op})
        found = _by_chain(self.old_order, self.earlier, self.after, self.before)
        if found is None:
            del self.after[op], self.before[partner]
            self.earlier[op] = old_order
        return found


def _by_chain(
    old_order: Sequence[int], earlier: Sequence[Sequence[int]], after: dict[int, int], before: dict[int, int]
) -> list[int] | None:
    """The ops chain by chain, as close to the old order as possible; None if chains depend on each other in a cycle."""
    chains: list[list[int]] = []
    chain_of, position = [0] * len(old_order), [0] * len(old_order)
    for op in old_order:
        if op in after:
            continue
        chain = [op]
        while chain[-1] in before:
            chain.append(before[chain[-1]])
        for number, one in enumerate(chain):
            chain_of[one], position[one] = len(chains), number
        chains.append(chain)
    if sum(map(len, chains)) < len(old_order):
        return None  # a cycle
    old_slot = {op: slot for slot, op in enumerate(old_order)}
    required_chains: list[set[int]] = [set() for _ in chains]
    for op in old_order:
        for one in earlier[op]:
            if chain_of[one] != chain_of[op]:
                required_chains[chain_of[op]].add(chain_of[one])
            elif position[one] > position[op]:
                return None
    follows, missing = inverted([list(each) for each in required_chains]), [len(each) for each in required_chains]
    ready = [(old_slot[chains[c][-1]], c) for c, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    found: list[int] = []
    while ready:
        _, c = heapq.heappop(ready)
        found += chains[c]
        for later in follows[c]:
            missing[later] -= 1
            if not missing[later]:
                heapq.heappush(ready, (old_slot[chains[later][-1]], later))
    return found if len(found) == len(old_order) else None
