"""The cost of every slot of an op, by how the op is split and how the slot's group is stored."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

import numpy as np

from planner.partition.coarse import MergedOp
from planner.partition.search.choices.domains import Domains, Sequences, States
from planner.partition.search.choices.rules import SearchRules
from planner.partition.search.costs.evaluate import divides, stage_bytes
from planner.partition.search.costs.moved_bytes import SlotBytes, gathers, read_bytes, repeats, spread_bytes
from planner.partition.search.factors.min_sum import Costs
from planner.partition.strategy import Split, State, Unread

#: What a slot costs at one level by variant and option: in all, for what lies around chunks, and how often what other
#: levels move is moved; None for nothing, and for once.
UnitCosts = tuple[Costs, Costs | None, Costs | None, Costs | None]
#: How each variant of an op wants a slot to be spread.
Wants = tuple[State | None, ...]


class SlotCosts:
    """Costs of slots and stages by sequences of variants and options; what looks alike is worked out once.

    Args:
        rules: the mesh, and the weights of its levels.
    """

    def __init__(self, rules: SearchRules) -> None:
        """Begin with nothing known."""
        self._rules = rules
        self._moved = {workers: SlotBytes(workers) for workers in rules.mesh}
        self._units: dict[Hashable, UnitCosts] = {}
        self._costs: dict[Hashable, Costs] = {}
        self._stages: dict[Hashable, Costs] = {}
        self._numbers: dict[int, list[list[int]]] = {}
        self._states: dict[Hashable, int] = {}
        self._slots: dict[tuple[int, int], int] = {}
        self._alike: dict[Hashable, int] = {}
        self._alive: list[object] = []

    def number(self, states: States) -> int:
        """A number for how a tensor is spread by each option; equal ones have the same."""
        return self._states.setdefault(states, len(self._states))

    def numbers(self, domains: Domains) -> list[list[int]]:
        """Per merged op and slot, the number of how it is spread by each option."""
        if id(domains) not in self._numbers:
            self._alive.append(domains)
            self._numbers[id(domains)] = [list(map(self.number, states)) for states in domains.states]
        return self._numbers[id(domains)]

    def costs(self, merged: MergedOp, place: int, states: States, ways: Sequences, stored: Sequences) -> Costs:
        """The cost of one slot of one op, per sequence of variants and per sequence of options.

        Args:
            merged: the op.
            place: which slot, inputs first.
            states: how the slot is spread by each option of its group.
            ways: the sequences of variants.
            stored: the sequences of options.
        """
        key = self._slot(merged, place), self.number(states), id(ways), id(stored)
        if key not in self._costs:
            self._alive += [ways, stored]  # their numbers are not given to others
            self._costs[key] = self._sum(merged, place, states, ways, stored)
        return self._costs[key]

    def _slot(self, merged: MergedOp, place: int) -> int:
        """A number for what a slot and what its op's variants want of it; equal ones have the same."""
        if (id(merged), place) not in self._slots:
            slot = (*merged.inputs, *merged.outputs)[place]
            wants = tuple(variant.states[place] for variant in merged.variants)
            halo = place if any(getattr(want, "halo", False) for want in wants) else -1
            own = (id(merged.op), halo) if halo >= 0 else (place < len(merged.inputs),)
            key = slot.shape, slot.itemsize, wants, own
            self._alive.append(merged)
            self._slots[id(merged), place] = self._alike.setdefault(key, len(self._alike))
        return self._slots[id(merged), place]

    def stages(self, merged: MergedOp, ways: Sequences) -> Costs:
        """The cost of what workers combine while an op runs, per sequence of variants."""
        key = id(merged.op), id(merged.variants), id(ways)
        if key not in self._stages:
            self._alive += [merged, ways]
            self._stages[key] = self._stage_sum(merged, ways)
        return self._stages[key]

    def _stage_sum(self, merged: MergedOp, ways: Sequences) -> Costs:
        rules, costs, variants = self._rules, np.zeros(len(ways)), merged.variants
        if not any(variant.strategy is not None and variant.strategy.stages for variant in variants):
            return costs
        levels = list(zip(rules.mesh, rules.weights, ways.T, strict=False))
        for level, (workers, weight, here) in enumerate(levels):
            for number in np.unique(here):
                rows = here == number
                for stage, elements in stage_bytes(merged, variants[number], workers):
                    whole = np.array([not divides(merged, variant, stage) for variant in variants])
                    times = np.full(rows.sum(), elements * weight)
                    for outer, _, before in levels[:level]:
                        times *= np.where(whole[before[rows]], outer, 1)
                    costs[rows] += times
        return costs

    def _sum(self, merged: MergedOp, place: int, states: States, ways: Sequences, stored: Sequences) -> Costs:
        costs = np.zeros((len(ways), len(stored)))
        copies: Costs | None = None  # as many parts of outer levels receive what inner levels move
        for level, (workers, weight) in enumerate(zip(self._rules.mesh, self._rules.weights, strict=False)):
            if level == ways.shape[1]:
                break
            unit, halo, gathered, repeated = self._of_level(merged, place, states, workers)
            rows, columns = ways[:, level], stored[:, level]
            here = unit.take(rows, 0).take(columns, 1)
            if halo is not None:
                parts = np.ones(len(ways))
                for outer in range(level):
                    parts *= np.where(ways[:, outer] == ways[:, level], self._rules.mesh[outer], 1)
                here += halo.take(rows, 0).take(columns, 1) * (parts[:, None] - 1)
            if copies is not None:
                here *= copies
            if repeated is not None and level:
                costs *= repeated.take(rows, 0).take(columns, 1)
            costs += here if weight == 1 else here * weight
            if level + 1 < ways.shape[1] and gathered is not None:
                times = gathered.take(rows, 0).take(columns, 1)
                copies = times if copies is None else copies * times
        return costs

    def _of_level(self, merged: MergedOp, place: int, states: States, workers: int) -> UnitCosts:
        key = self._slot(merged, place), self.number(states), workers
        if key not in self._units:
            wants = tuple(variant.states[place] for variant in merged.variants)
            slot, reads = (*merged.inputs, *merged.outputs)[place], place < len(merged.inputs)
            if reads and any(isinstance(want, Split) and want.halo for want in wants):
                self._units[key] = self._with_halo(merged, place, states, workers)
            else:
                self._units[key] = _without_halo(slot.shape, slot.itemsize, wants, states, workers, reads)
        return self._units[key]

    def _with_halo(self, merged: MergedOp, place: int, states: States, workers: int) -> UnitCosts:
        moved = self._moved[workers]
        wants = tuple(variant.states[place] for variant in merged.variants)
        unit, halo = np.zeros((2, len(wants), len(states)))
        for row, variant in enumerate(merged.variants):
            if isinstance(wants[row], Unread):
                continue
            around = moved.halo(merged, variant, place)
            for column, have in enumerate(states):
                unit[row, column] = moved.read(merged, variant, place, have)
                halo[row, column] = around if isinstance(have, Split) else 0.0
        return unit, halo if halo.any() else None, *_times(wants, states, workers, reads=True)


@lru_cache(maxsize=1 << 14)
def _without_halo(
    shape: tuple[int, ...], itemsize: int, wants: Wants, states: States, workers: int, reads: bool
) -> UnitCosts:
    """What `SlotCosts` knows of any slot that looks so; kept for the next search, which often is for the same step."""
    different = list(dict.fromkeys(wants))
    unit = np.zeros((len(different), len(states)))
    for row, want in enumerate(different):
        if reads and isinstance(want, Unread):
            continue
        for column, have in enumerate(states):
            if reads:
                unit[row, column] = read_bytes(shape, itemsize, have, want, workers)
            else:
                unit[row, column] = spread_bytes(shape, itemsize, want, have, workers)
    rows = [different.index(want) for want in wants]
    return unit[rows], None, *_times(wants, states, workers, reads=reads)


def _times(wants: Wants, states: States, workers: int, *, reads: bool) -> tuple[Costs | None, Costs | None]:
    """How often what inner, and what outer levels move is moved; None for once."""
    gathered, repeated = np.ones((2, len(wants), len(states)))
    for row, want in enumerate(wants):
        if reads and isinstance(want, Unread):
            continue
        for column, have in enumerate(states):
            before, after = (have, want) if reads else (want, have)
            gathered[row, column] = workers if gathers(before, after) else 1
            repeated[row, column] = workers if repeats(before, after) else 1
    return None if (gathered == 1).all() else gathered, None if (repeated == 1).all() else repeated
