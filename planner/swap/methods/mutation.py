"""Small changes to candidates, for a local search."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.swap.methods.candidate import Candidate, Evaluation
from planner.swap.problem.problem import Ints, Problem, Seconds
from planner.swap.schedule.topological_moves import by_key, pull

_SHORT_LIVED_SLOTS = (10, 30, 100)
_LEAST_MEMORY = 0.75
#: Probability that a child takes the storages resident at the start from its parent instead of determining them.
_KEEP_RESIDENTS = 0.7
_SECOND_CHANGE = 0.4  # probability of two changes at a time


@dataclass(frozen=True, eq=False)
class Mutation:
    """Changes candidates at random.

    Args:
        problem: what is planned.
        random: the random generator.
    """

    problem: Problem
    random: np.random.Generator

    def child(self, parent: Evaluation, other: Evaluation) -> Candidate:
        """A candidate that differs from its parent's in one or two ways.

        Args:
            parent: the evaluation to change; its times may become the child's clock.
            other: another good evaluation, for crossover.
        """
        candidate = parent.candidate
        changes = (
            self.slack, self.slack, self.lead, self.avoid_late_copies, self.prefetch, self.assign_addresses, self.clock,
            self.bias, self.relieve_waits, self.relieve_waits, self.relieve_waits, self.move_ops, self.move_ops,
            self.cross_orders,
        )  # fmt: skip
        for _ in range(1 + int(self.random.random() < _SECOND_CHANGE)):
            change = changes[int(self.random.integers(len(changes)))]
            candidate = change(candidate, parent, other)
        initial_residents = parent.draft.resident if self.random.random() < _KEEP_RESIDENTS else None
        return replace(candidate, initial_residents=initial_residents)

    def slack(self, candidate: Candidate, parent: Evaluation, other: Evaluation) -> Candidate:
        """Change the share of memory left to packing."""
        share = candidate.memory / self.problem.memory * float(np.exp(self.random.normal(0, 0.012)))
        return replace(candidate, memory=aligned(self.problem, min(1.0, max(_LEAST_MEMORY, share))))

    def lead(self, candidate: Candidate, parent: Evaluation, other: Evaluation) -> Candidate:
        """Reserve more or less time for reloads."""
        return replace(candidate, lead=float(min(4.0, max(0.3, candidate.lead * np.exp(self.random.normal(0, 0.25))))))

    def avoid_late_copies(self, candidate: Candidate, parent: Evaluation, other: Evaluation) -> Candidate:
        """Toggle whether a storage stays if its copy out could not be done in time."""
        return replace(candidate, avoid_late_copies=not candidate.avoid_late_copies)

    def prefetch(self, candidate: Candidate, parent: Evaluation, other: Evaluation) -> Candidate:
        """Toggle whether reloads are moved as early as memory allows."""
        return replace(candidate, prefetch=not candidate.prefetch)

    def assign_addresses(self, candidate: Candidate, parent: Evaluation, other: Evaluation) -> Candidate:
        """Toggle between addresses during the pass and packing afterwards."""
        return replace(
            candidate,
            short_lived_slots=0 if candidate.short_lived_slots else int(self.random.choice(_SHORT_LIVED_SLOTS)),
        )

    def clock(self, candidate: Candidate, parent: Evaluation, other: Evaluation) -> Candidate:
        """Blend the clock with the times that resulted from it, or reset it."""
        if len(parent.timing.clock) != len(candidate.order) + 1 or self.random.random() < 0.1:
            return replace(candidate, clock=None)
        before = (
            np.append(0.0, np.cumsum(self.problem.seconds[candidate.order]))
            if candidate.clock is None
            else candidate.clock
        )
        share = self.random.random()
        return replace(candidate, clock=(1 - share) * before + share * parent.timing.clock)

    def bias(self, candidate: Candidate, parent: Evaluation, other: Evaluation) -> Candidate:
        """Make some storages leave sooner or later."""
        factors = np.ones(self.problem.storages) if candidate.bias is None else candidate.bias.copy()
        sizes = self.problem.arrays.bytes
        kind = int(self.random.integers(3))
        if kind == 0:  # all of one size, as storages of one kind are
            chosen = sizes == sizes[self._large()]
        elif kind == 1:  # a few at random
            chosen = self.random.random(self.problem.storages) < 10 ** self.random.uniform(-3, -0.5)
        else:  # what one op touches
            op = int(self.random.integers(self.problem.ops))
            touches = self.problem.arrays.touches
            chosen = np.zeros(self.problem.storages, np.bool_)
            chosen[touches.items[touches.start[op] : touches.start[op + 1]]] = True
        factors[chosen] *= np.exp(self.random.normal(0, 0.5))
        return replace(candidate, bias=factors)

    def relieve_waits(self, candidate: Candidate, parent: Evaluation, other: Evaluation) -> Candidate:
        """Keep what an op waited for longer, or what delayed its copy."""
        queue_positions, seconds = waits(parent)
        if not len(queue_positions):
            return self.bias(candidate, parent, other)
        factors = np.ones(self.problem.storages) if candidate.bias is None else candidate.bias.copy()
        ins, storage = parent.timing.ins, parent.draft.absences.storage
        for _ in range(1 + int(self.random.geometric(0.5))):
            late = int(self.random.choice(queue_positions, p=seconds / seconds.sum()))
            earlier = 0 if self.random.random() < 0.5 else int(self.random.geometric(0.15))
            chosen = storage[ins[max(0, late - earlier)]]
            factors[chosen] *= np.exp(-abs(self.random.normal(0, 0.7)))
        return replace(candidate, bias=factors)

    def move_ops(self, candidate: Candidate, parent: Evaluation, other: Evaluation) -> Candidate:
        """Move some ops, such as next to another op that needs the same storage."""
        n = self.problem.ops
        position = np.empty(n, np.int32)
        position[candidate.order] = np.arange(n, dtype=np.int32)
        key = position.astype(np.float64)
        for _ in range(1 + int(self.random.geometric(0.3))):
            op = int(self.random.integers(n))
            if self.random.random() < 0.6:
                users = self._users(self._large())
                op, neighbour = (int(each) for each in self.random.choice(users, 2))
                target = float(position[neighbour]) + self.random.choice((-0.5, 0.5))
            else:
                target = position[op] + self.random.choice((-1, 1)) * float(self.random.geometric(0.02))
            if target < position[op]:
                pull(self.problem.predecessors, position, key, op, target)
            else:
                key[op] = target
        return self._reordered(candidate, key)

    def cross_orders(self, candidate: Candidate, parent: Evaluation, other: Evaluation) -> Candidate:
        """Keep the first ops, and take the rest in another's order: SwapAdvisor's crossover (ASPLOS 2020, figure 4)."""
        n = self.problem.ops
        key = np.empty(n)
        key[other.candidate.order] = n + np.arange(n)
        first_ops = candidate.order[: int(self.random.integers(n + 1))]
        key[first_ops] = np.arange(len(first_ops))
        return self._reordered(candidate, key)

    def _reordered(self, candidate: Candidate, key: Seconds) -> Candidate:
        """The candidate in the order of these keys; the times of its clock move with the ops."""
        order: Ints = by_key(self.problem.predecessors, self.problem.successors, key)
        if (order == candidate.order).all():
            return candidate
        if candidate.clock is None:
            return replace(candidate, order=order)
        durations = np.empty(self.problem.ops)
        durations[candidate.order] = np.diff(candidate.clock)
        return replace(candidate, order=order, clock=np.append(0.0, np.cumsum(durations[order])))

    def _large(self) -> int:
        """A random storage, with probability proportional to its size."""
        sums = np.cumsum(self.problem.arrays.bytes.astype(np.float64))
        return int(np.searchsorted(sums, self.random.random() * sums[-1], side="right")) if sums[-1] > 0 else 0

    def _users(self, storage: int) -> Ints:
        """The ops that touch a storage; op 0 if there are none."""
        touches = self.problem.arrays.touches
        entries = np.flatnonzero(touches.items == storage)
        ops = np.searchsorted(touches.start, entries, side="right") - 1
        return ops.astype(np.int32) if len(ops) else np.zeros(1, np.int32)


def waits(evaluation: Evaluation) -> tuple[Ints, Seconds]:
    """The copies in that ops waited for, by position in the queue, and for how many seconds."""
    compute, spans = evaluation.timing.compute, evaluation.timing.in_spans
    begins = compute[:, 0]
    waited = begins - np.append(0.0, compute[:-1, 1])
    slots = np.flatnonzero(waited > 0)
    if not len(slots) or not len(spans):
        return np.empty(0, np.int32), np.empty(0)
    last_copy = np.searchsorted(spans[:, 1], begins[slots], side="right") - 1
    caused_by_copy = (last_copy >= 0) & (spans[np.maximum(last_copy, 0), 1] == begins[slots])
    return last_copy[caused_by_copy].astype(np.int32), waited[slots[caused_by_copy]]


def aligned(problem: Problem, share: float) -> int:
    """A share of the memory in bytes, rounded down to the alignment."""
    return int(share * problem.memory) // problem.alignment * problem.alignment
