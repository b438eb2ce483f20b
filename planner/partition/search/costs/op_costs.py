"""The cost of merged ops as tables over what is around them: stored groups, and copies that are fetched once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from planner.partition.coarse import GroupsAndOps
from planner.partition.search.choices.domains import Domains, Sequences
from planner.partition.search.costs.evaluate import want_key
from planner.partition.search.costs.slot_costs import SlotCosts
from planner.partition.search.factors.dual_bound import StarFactor
from planner.partition.search.factors.elimination_step import LeastOf
from planner.partition.search.factors.min_sum import FORBIDDEN, Costs, min_sum

#: Numbers of sequences of variants.
Rows = NDArray[np.int64]
#: The state in which an input is wanted, level by level: the number of an option, or of something else.
Want = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SharedInput:
    """Contents that an op reads and others too.

    Args:
        place: which input.
        count: how many contents.
        copies: per variable that says which copies are fetched once for all readers, and per value of it, the states
            in which there are copies; with its first value there is none.
    """

    place: int
    count: int
    copies: tuple[tuple[int, tuple[tuple[Want, ...], ...]], ...] = ()


class OpCosts:
    """Costs of merged ops; ops that look alike from inside are worked out once.

    Args:
        coarse: the coarse graph.
        domains: the options of every group.
        costs: the costs of slots.
        stored: per group, its sequences of options.
        ways: per merged op, its sequences of variants.
    """

    def __init__(
        self, coarse: GroupsAndOps, domains: Domains, costs: SlotCosts, stored: Sequence[Sequences],
        ways: Sequence[Sequences],
    ) -> None:  # fmt: skip
        """Begin with nothing known."""
        self._coarse, self._costs, self._stored, self._ways = coarse, costs, stored, ways
        self._states, self._numbers = domains.states, costs.numbers(domains)
        self._options = domains.options
        self._slots: dict[tuple[int, int], Costs] = {}
        self._wants: dict[Hashable, tuple[list[Want], dict[Want, list[int]]]] = {}
        self._not_options: dict[Hashable, int] = {}
        self._signatures: dict[int, int] = {}
        self._looks: dict[Hashable, int] = {}
        self._chosen: dict[Hashable, int] = {}
        self._stars: dict[Hashable, tuple[tuple[Costs, ...], Rows]] = {}

    def slot(self, number: int, place: int) -> Costs:
        """The cost of one slot of one op, per sequence of variants and per sequence of options."""
        if (number, place) not in self._slots:
            merged, states = self._coarse.merged[number], self._states[number][place]
            stored = self._stored[(*merged.inputs, *merged.outputs)[place].group]
            self._slots[number, place] = self._costs.costs(merged, place, states, self._ways[number], stored)
        return self._slots[number, place]

    def wants(self, number: int, place: int) -> list[Want]:
        """Per sequence of variants, the state in which an op wants an input."""
        return self._wanted(number, place)[0]

    def rows(self, number: int, place: int) -> dict[Want, list[int]]:
        """By state in which an op wants an input, the sequences of variants that want it so."""
        return self._wanted(number, place)[1]

    def signature(self, number: int, counts: Sequence[float], shared: Sequence[SharedInput]) -> Hashable:
        """What the table of merged ops depends on.

        Args:
            number: which.
            counts: per input, how many contents they pay for alone.
            shared: what others read as well.
        """
        if number not in self._signatures:
            self._signatures[number] = self._signature(number)
        order = {copy: place for place, copy in enumerate(sorted({copy for each in shared for copy, _ in each.copies}))}
        entries = tuple(
            (each.place, each.count, tuple((order[copy], wants) for copy, wants in each.copies)) for each in shared
        )
        return self._signatures[number], tuple(counts), entries

    def least(self, number: int, counts: Sequence[float], shared: Sequence[SharedInput]) -> LeastOf:
        """The least cost of merged ops by the groups and copies around them, of all ways to come by their inputs.

        Args:
            number: which.
            counts: per input, how many contents they pay for alone.
            shared: what others read as well.
        """
        variables, _ = self._variables(number, shared)
        costs = []
        for parts in self._patterns(number, counts, shared):
            names = sorted(parts)  # -1 is the first, and joins the next
            found = min_sum([parts[name] for name in names])
            used = dict(zip(names, found.shape, strict=True))
            costs.append(found.reshape([used.get(name, 1) for name in variables]))
        return LeastOf(variables, tuple(costs))

    def star(self, number: int, counts: Sequence[float], shared: Sequence[SharedInput]) -> tuple[StarFactor, Rows]:
        """The cost of merged ops as a sum over variables, for every way of splitting them and of taking copies.

        Args:
            number: which.
            counts: per input, how many contents they pay for alone.
            shared: what others read as well.

        Returns:
            The factor, and the sequence of variants of each of its ways.
        """
        variables, sizes = self._variables(number, shared)
        key = self.signature(number, counts, shared)
        if key not in self._stars:
            patterns = self._patterns(number, counts, shared)
            ways = len(self._ways[number])
            parts = []
            for place, (name, size) in enumerate(zip(variables, sizes, strict=True)):
                blocks = [parts_of.get(name, np.zeros((ways, size))) for parts_of in patterns]
                if place == 0:
                    blocks = [block + each.get(-1, 0.0) for block, each in zip(blocks, patterns, strict=True)]
                parts.append(np.concatenate(blocks))
            if not parts:
                parts.append(np.concatenate([each[-1] for each in patterns]))
            rows = np.tile(np.arange(ways), len(patterns))
            able = np.all([part.min(1) < FORBIDDEN / 2 for part in parts], axis=0)
            self._stars[key] = tuple(part[able] for part in parts), rows[able]
        parts_found, rows = self._stars[key]
        return StarFactor(variables, parts_found), rows

    def parts(self, number: int, counts: Sequence[int], place: int) -> tuple[dict[int, Costs], int]:
        """By variable, the cost per way and value; and the variable of one input, -1 if it has one value alone."""
        (parts,) = self._patterns(number, counts, ())
        group = self._coarse.merged[number].inputs[place].group
        name = group if len(self._stored[group]) > 1 else -1
        if name not in parts:
            parts[name] = np.zeros((len(self._ways[number]), 1))
        return parts, name

    def scope(self, number: int, shared: Sequence[SharedInput]) -> tuple[int, ...]:
        """The variables around an op."""
        return self._variables(number, shared)[0]

    def work(self, number: int) -> int:
        """How many combinations of ways and of what is around an op there are."""
        return len(self._ways[number]) * prod(self._variables(number, ())[1])

    def best(self, number: int, counts: Sequence[float], shared: Sequence[SharedInput], values: dict[int, int]) -> int:
        """The cheapest sequence of variants of merged ops.

        Args:
            number: which.
            counts: per input, how many contents they pay for alone.
            shared: what others read as well.
            values: of all variables.
        """
        variables, _ = self._variables(number, shared)
        key = self.signature(number, counts, shared), tuple(values[name] for name in variables)
        if key not in self._chosen:
            merged, ways = self._coarse.merged[number], self._ways[number]
            slots = (*merged.inputs, *merged.outputs)

            def chosen(place: int) -> Costs:
                group = slots[place].group
                costs: Costs = self.slot(number, place)[:, values[group] if len(self._stored[group]) > 1 else 0]
                return costs

            total = len(merged.ops) * self._costs.stages(merged, ways)
            for place in range(len(slots)):
                if times := counts[place] if place < len(merged.inputs) else len(merged.ops):
                    total = total + times * chosen(place)
            for each in shared:  # what is fetched or taken does not depend on the other contents
                wants, cheapest = self.wants(number, each.place), each.count * chosen(each.place)
                for copy, there in each.copies:
                    ready = there[values[copy]]
                    cheapest = np.minimum(cheapest, np.where([want in ready for want in wants], 0.0, FORBIDDEN))
                total = total + cheapest
            self._chosen[key] = int(total.argmin())
        return self._chosen[key]

    def _wanted(self, number: int, place: int) -> tuple[list[Want], dict[Want, list[int]]]:
        merged, ways = self._coarse.merged[number], self._ways[number]
        slot = merged.inputs[place]
        key = id(merged.op), id(merged.variants), place, self._numbers[number][place], id(ways)
        if key not in self._wants:
            options = self._options[slot.group]
            keys = []
            for variant in merged.variants:
                want = want_key(merged, variant, place)
                if isinstance(want, int):
                    keys.append(options.index(want))
                else:
                    keys.append(-1 - self._not_options.setdefault(want, len(self._not_options)))
            wants = [tuple(keys[choice] for choice in way) for way in ways.tolist()]
            rows: dict[Want, list[int]] = {}
            for row, one in enumerate(wants):
                rows.setdefault(one, []).append(row)
            self._wants[key] = wants, rows
        return self._wants[key]

    def _signature(self, number: int) -> int:
        """A number for what the table of an op depends on but for who else reads its inputs; equal ones have one."""
        merged = self._coarse.merged[number]
        groups = [slot.group for slot in (*merged.inputs, *merged.outputs)]
        places = {group: place for place, group in enumerate(sorted(set(groups)))}
        slots = tuple(
            (states, id(self._stored[group]), places[group])
            for states, group in zip(self._numbers[number], groups, strict=True)
        )
        look = id(merged.op), id(merged.variants), len(merged.ops), id(self._ways[number]), slots
        return self._looks.setdefault(look, len(self._looks))

    def _variables(self, number: int, shared: Sequence[SharedInput]) -> tuple[tuple[int, ...], list[int]]:
        merged = self._coarse.merged[number]
        sizes = {
            slot.group: len(self._stored[slot.group])
            for slot in (*merged.inputs, *merged.outputs)
            if len(self._stored[slot.group]) > 1
        }
        sizes |= {copy: len(wants) for each in shared for copy, wants in each.copies}
        return tuple(sorted(sizes)), [sizes[name] for name in sorted(sizes)]

    def _patterns(self, number: int, counts: Sequence[float], shared: Sequence[SharedInput]) -> list[dict[int, Costs]]:
        """For every choice of what is fetched and what is taken from a copy: by variable, the cost per way and value.

        What has one value alone is variable -1.
        """
        merged, stored = self._coarse.merged[number], self._stored
        base = {-1: len(merged.ops) * self._costs.stages(merged, self._ways[number])[:, None]}
        _add_all(base, [
            (slot.group if len(stored[slot.group]) > 1 else -1, times * self.slot(number, place))
            for place, slot in enumerate((*merged.inputs, *merged.outputs))
            if (times := counts[place] if place < len(merged.inputs) else len(merged.ops))
        ])  # fmt: skip
        found = []
        for choice in product(*([None, *each.copies] for each in shared)):
            parts = dict(base)
            for each, copy in zip(shared, choice, strict=True):
                group = merged.inputs[each.place].group
                if copy is None:
                    name = group if len(stored[group]) > 1 else -1
                    _add_all(parts, [(name, each.count * self.slot(number, each.place))])
                else:
                    _add_all(parts, [(copy[0], self._taken(number, each.place, copy[1]))])
            found.append(parts)
        return found

    def _taken(self, number: int, place: int, wants: Sequence[Sequence[Want]]) -> Costs:
        """Nothing where there is a copy in the state that is wanted, and any other copy is of no use."""
        rows = self.rows(number, place)
        costs = np.full((len(self._ways[number]), len(wants)), FORBIDDEN)
        for column, there in enumerate(wants):
            for want in there:
                costs[rows.get(want, []), column] = 0.0
        return costs


def _add_all(parts: dict[int, Costs], more: Sequence[tuple[int, Costs]]) -> None:
    for name, costs in more:
        parts[name] = parts[name] + costs if name in parts else costs
