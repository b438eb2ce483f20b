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
_PARTNERS = 16


def fits(problem: Problem, order: Ints) -> bool:
    """Whether any plan, however slow, runs the ops in this order; decided exactly."""
    return required_reuses(order, problem.flow, problem.memory, np.empty(problem.ops, np.int32)) < 0


def reorder_for_reuse(problem: Problem, order: Ints, sets: Bytes) -> Ints | None:
    """An order similar to the one given that has a plan; None if none was found.

    Args:
        problem: what is planned.
        order: `[ops]`, the op in each slot.
        sets: `[ops]`, the working set of each op in bytes.
    """
    found = _ReuseOrder(problem, order, sets).order()
    return found if found is not None and fits(problem, found) else None


class _ReuseOrder:
    """Ties ops into chains that run without another op in between; `after[b] = a` and `before[a] = b` where `a, b`."""

    def __init__(self, problem: Problem, order: Ints, sets: Bytes) -> None:
        flow, self.stop = problem.flow, problem.stop
        self.flow = flow
        self.memory, self.sets = problem.memory, sets.tolist()
        self.old: list[int] = order.tolist()
        self.place = {op: place for place, op in enumerate(self.old)}
        self.touches = [set(part.tolist()) for part in np.split(flow.touches.items, flow.touches.start[1:-1])]
        self.reusables = [part.tolist() for part in np.split(flow.overwrites.items, flow.overwrites.start[1:-1])]
        self.earlier = [
            part.tolist() for part in np.split(problem.predecessors.items, problem.predecessors.start[1:-1])
        ]
        self.users: dict[int, list[int]] = {}
        for op in self.old:
            for storage in self.touches[op]:
                self.users.setdefault(storage, []).append(op)
        self.after: dict[int, int] = {}
        self.before: dict[int, int] = {}

    def order(self) -> Ints | None:
        """Tie every op that has to reuse a buffer to the op right before it; None if one cannot be tied."""
        waiting = deque(op for op in self.old if self.sets[op] > self.memory)
        beside = dict.fromkeys(self.old, 0)  # further bytes that must be on the device, for the op that follows
        found: list[int] | None = self.old
        while waiting:
            op = waiting.popleft()
            if op in self.after:
                continue
            for reusable, partner, more in self._ways(op, beside[op]):
                self.stop.check()
                trial = self._scheduled(op, reusable, partner)
                if trial is not None:
                    found, beside[partner] = trial, more
                    if self.sets[partner] + more > self.memory and partner not in self.after:
                        waiting.append(partner)
                    break
            else:
                return None
        return None if found is None else np.array(found, np.int32)

    def _ways(self, op: int, beside: int) -> Iterator[tuple[int, int, int]]:
        """Buffers the op could reuse, each with an op that could come right before and the bytes it leaves room for."""
        for reusable in self.reusables[op]:
            size = int(self.flow.bytes[reusable])
            if self.sets[op] + beside - size <= self.memory:
                yield from ((reusable, *one) for one in islice(self._partners(op, reusable, size), _PARTNERS))

    def _partners(self, op: int, reusable: int, size: int) -> Iterator[tuple[int, int]]:
        near = sorted(self.old, key=lambda other: abs(self.place[op] - 1 - self.place[other]))
        for other in sorted(near, key=lambda other: reusable not in self.touches[other]):
            if other == op or other in self.before:
                continue
            more = 0 if reusable in self.touches[other] else size
            least = max((int(self.flow.bytes[one]) for one in self.reusables[other]), default=0)
            if self.sets[other] + more - least <= self.memory:
                yield other, more

    def _scheduled(self, op: int, reusable: int, partner: int) -> list[int] | None:
        """Tie an op to the one right before, after all others that use the reused buffer; undone if impossible."""
        self.after[op], self.before[partner] = partner, op
        old = self.earlier[op]
        self.earlier[op] = list({*old, *self.users[reusable]} - {op})
        found = _by_chain(self.old, self.earlier, self.after, self.before)
        if found is None:
            del self.after[op], self.before[partner]
            self.earlier[op] = old
        return found


def _by_chain(
    old: Sequence[int], earlier: Sequence[Sequence[int]], after: dict[int, int], before: dict[int, int]
) -> list[int] | None:
    """The ops chain by chain, as close to the old order as possible; None if chains depend on each other in a cycle."""
    chains: list[list[int]] = []
    of, place = [0] * len(old), [0] * len(old)
    for op in old:
        if op in after:
            continue
        chain = [op]
        while chain[-1] in before:
            chain.append(before[chain[-1]])
        for number, one in enumerate(chain):
            of[one], place[one] = len(chains), number
        chains.append(chain)
    if sum(map(len, chains)) < len(old):
        return None  # a cycle
    when = {op: slot for slot, op in enumerate(old)}
    needs: list[set[int]] = [set() for _ in chains]
    for op in old:
        for one in earlier[op]:
            if of[one] != of[op]:
                needs[of[op]].add(of[one])
            elif place[one] > place[op]:
                return None
    follows, missing = inverted([list(each) for each in needs]), [len(each) for each in needs]
    ready = [(when[chains[c][-1]], c) for c, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    found: list[int] = []
    while ready:
        _, c = heapq.heappop(ready)
        found += chains[c]
        for later in follows[c]:
            missing[later] -= 1
            if not missing[later]:
                heapq.heappush(ready, (when[chains[later][-1]], later))
    return found if len(found) == len(old) else None
