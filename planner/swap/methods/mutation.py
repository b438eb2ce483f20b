"""Small changes to recipes: what a local search tries."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.swap.methods.candidate import Recipe, Tried
from planner.swap.problem.problem import Ints, Problem, Seconds
from planner.swap.schedule.topological import by_key, pull

_BRIEF = (10, 30, 100)
_LEAST_MEMORY = 0.75
#: How often what is on the device at the start is taken from the parent instead of being found out.
_KNOWN = 0.7
_TWICE = 0.4  # how often two changes are made at a time


@dataclass(frozen=True, eq=False)
class Mutation:
    """Changes recipes at random.

    Args:
        problem: what is planned.
        random: where chance comes from.
    """

    problem: Problem
    random: np.random.Generator

    def child(self, parent: Tried, other: Tried) -> Recipe:
        """A recipe that differs from its parent's in one or two ways.

        Args:
            parent: what is changed; its times may become the child's idea of time.
            other: another good one, for crossing.
        """
        recipe = parent.recipe
        changes = (
            self.slack, self.slack, self.lead, self.heed, self.early, self.place, self.clock,
            self.bias, self.relieved, self.relieved, self.relieved, self.moved, self.moved, self.crossed,
        )  # fmt: skip
        for _ in range(1 + int(self.random.random() < _TWICE)):
            change = changes[int(self.random.integers(len(changes)))]
            recipe = change(recipe, parent, other)
        start = parent.draft.resident if self.random.random() < _KNOWN else None
        return replace(recipe, start=start)

    def slack(self, recipe: Recipe, parent: Tried, other: Tried) -> Recipe:
        """Another share of memory left to packing."""
        share = recipe.memory / self.problem.memory * float(np.exp(self.random.normal(0, 0.012)))
        return replace(recipe, memory=aligned(self.problem, min(1.0, max(_LEAST_MEMORY, share))))

    def lead(self, recipe: Recipe, parent: Tried, other: Tried) -> Recipe:
        """Reloads reserved for longer or shorter."""
        return replace(recipe, lead=float(min(4.0, max(0.3, recipe.lead * np.exp(self.random.normal(0, 0.25))))))

    def heed(self, recipe: Recipe, parent: Tried, other: Tried) -> Recipe:
        """Heed for copies out, or none."""
        return replace(recipe, heed=not recipe.heed)

    def early(self, recipe: Recipe, parent: Tried, other: Tried) -> Recipe:
        """Reloads as early as memory allows, or as decided."""
        return replace(recipe, early=not recipe.early)

    def place(self, recipe: Recipe, parent: Tried, other: Tried) -> Recipe:
        """Addresses while walking, or packing afterwards."""
        return replace(recipe, brief=0 if recipe.brief else int(self.random.choice(_BRIEF)))

    def clock(self, recipe: Recipe, parent: Tried, other: Tried) -> Recipe:
        """An idea of time that is a blend of the old one and of what came of it."""
        if len(parent.timing.clock) != len(recipe.order) + 1 or self.random.random() < 0.1:
            return replace(recipe, clock=None)
        before = np.append(0.0, np.cumsum(self.problem.seconds[recipe.order])) if recipe.clock is None else recipe.clock
        share = self.random.random()
        return replace(recipe, clock=(1 - share) * before + share * parent.timing.clock)

    def bias(self, recipe: Recipe, parent: Tried, other: Tried) -> Recipe:
        """Some storages leave sooner or later than they would."""
        factors = np.ones(self.problem.storages) if recipe.bias is None else recipe.bias.copy()
        sizes = self.problem.flow.bytes
        how = int(self.random.integers(3))
        if how == 0:  # of one size, as storages of one kind are
            chosen = sizes == sizes[self._large()]
        elif how == 1:  # any few
            chosen = self.random.random(self.problem.storages) < 10 ** self.random.uniform(-3, -0.5)
        else:  # what one op touches
            op = int(self.random.integers(self.problem.ops))
            touches = self.problem.flow.touches
            chosen = np.zeros(self.problem.storages, np.bool_)
            chosen[touches.items[touches.start[op] : touches.start[op + 1]]] = True
        factors[chosen] *= np.exp(self.random.normal(0, 0.5))
        return replace(recipe, bias=factors)

    def relieved(self, recipe: Recipe, parent: Tried, other: Tried) -> Recipe:
        """What an op waited for stays longer, or what was in the way of its copy does."""
        who, seconds = waits(parent)
        if not len(who):
            return self.bias(recipe, parent, other)
        factors = np.ones(self.problem.storages) if recipe.bias is None else recipe.bias.copy()
        ins, storage = parent.timing.ins, parent.draft.gaps.storage
        for _ in range(1 + int(self.random.geometric(0.5))):
            late = int(self.random.choice(who, p=seconds / seconds.sum()))
            ahead = 0 if self.random.random() < 0.5 else int(self.random.geometric(0.15))
            chosen = storage[ins[max(0, late - ahead)]]
            factors[chosen] *= np.exp(-abs(self.random.normal(0, 0.7)))
        return replace(recipe, bias=factors)

    def moved(self, recipe: Recipe, parent: Tried, other: Tried) -> Recipe:
        """Some ops elsewhere, such as next to another op that needs the same storage."""
        n = self.problem.ops
        position = np.empty(n, np.int32)
        position[recipe.order] = np.arange(n, dtype=np.int32)
        key = position.astype(np.float64)
        for _ in range(1 + int(self.random.geometric(0.3))):
            op = int(self.random.integers(n))
            if self.random.random() < 0.6:
                users = self._users(self._large())
                op, beside = (int(each) for each in self.random.choice(users, 2))
                target = float(position[beside]) + self.random.choice((-0.5, 0.5))
            else:
                target = position[op] + self.random.choice((-1, 1)) * float(self.random.geometric(0.02))
            if target < position[op]:
                pull(self.problem.predecessors, position, key, op, target)
            else:
                key[op] = target
        return self._along(recipe, key)

    def crossed(self, recipe: Recipe, parent: Tried, other: Tried) -> Recipe:
        """The first ops as they are, the rest in another's order: SwapAdvisor's crossover (ASPLOS 2020, figure 4)."""
        n = self.problem.ops
        key = np.empty(n)
        key[other.recipe.order] = n + np.arange(n)
        kept = recipe.order[: int(self.random.integers(n + 1))]
        key[kept] = np.arange(len(kept))
        return self._along(recipe, key)

    def _along(self, recipe: Recipe, key: Seconds) -> Recipe:
        """The recipe in the order of these keys; an idea of time goes with the ops."""
        order: Ints = by_key(self.problem.predecessors, self.problem.successors, key)
        if (order == recipe.order).all():
            return recipe
        if recipe.clock is None:
            return replace(recipe, order=order)
        took = np.empty(self.problem.ops)
        took[recipe.order] = np.diff(recipe.clock)
        return replace(recipe, order=order, clock=np.append(0.0, np.cumsum(took[order])))

    def _large(self) -> int:
        """A storage, the likelier the larger it is."""
        sums = np.cumsum(self.problem.flow.bytes.astype(np.float64))
        return int(np.searchsorted(sums, self.random.random() * sums[-1], side="right")) if sums[-1] > 0 else 0

    def _users(self, storage: int) -> Ints:
        """The ops that touch a storage; op 0 where nobody does."""
        touches = self.problem.flow.touches
        entries = np.flatnonzero(touches.items == storage)
        ops = np.searchsorted(touches.start, entries, side="right") - 1
        return ops.astype(np.int32) if len(ops) else np.zeros(1, np.int32)


def waits(tried: Tried) -> tuple[Ints, Seconds]:
    """The copies in that ops waited for, by their place in the queue, and for how long."""
    compute, spans = tried.timing.compute, tried.timing.in_spans
    begins = compute[:, 0]
    idle = begins - np.append(0.0, compute[:-1, 1])
    slots = np.flatnonzero(idle > 0)
    if not len(slots) or not len(spans):
        return np.empty(0, np.int32), np.empty(0)
    last = np.searchsorted(spans[:, 1], begins[slots], side="right") - 1
    caused = (last >= 0) & (spans[np.maximum(last, 0), 1] == begins[slots])
    return last[caused].astype(np.int32), idle[slots[caused]]


def aligned(problem: Problem, share: float) -> int:
    """A share of the memory, in bytes that offsets can be."""
    return int(share * problem.memory) // problem.alignment * problem.alignment
