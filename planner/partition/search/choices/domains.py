"""What the search chooses from: per group and per op, sequences of one choice for each level."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from planner.errors import StowageError
from planner.partition.coarse import GroupsAndOps, MergedOp, Option, Slot, Stored
from planner.partition.search.choices.rules import SearchRules
from planner.partition.strategy import Partial
from planner.partition.tdl import Reduction

#: Labels serve a group that have at least this share of the bytes that its commonest label has.
_MOST_OF_A_GROUP = 0.9
_SUM = Partial(Reduction.SUM)
#: Sequences of choices, one row each and one column per level; what is chosen is a number in a list of choices.
Sequences = NDArray[np.int64]
#: How a tensor is spread by each option of its group.
States = tuple[Stored | None, ...]
#: The choices that are already made, level by level; None for a level that is free.
Fixed = Sequence[int | None]


class Domains:
    """Every sequence of options of the groups and of variants of the ops; equal ones are one array.

    Args:
        coarse: the groups and ops.
        rules: what may be chosen.
    """

    def __init__(self, coarse: GroupsAndOps, rules: SearchRules) -> None:
        """List the options of every group: its labels, whole, and, if it may be stored so, as partial sums."""
        self._coarse, self._rules = coarse, rules
        self._known: dict[Hashable, Sequences] = {}
        self.options = [group_options(coarse, group) for group in range(len(coarse.groups))]
        self._may_be_whole = [self._can_be_whole(group) for group in range(len(coarse.groups))]

    @cached_property
    def states(self) -> list[tuple[States, ...]]:
        """Per merged op and slot, inputs first, how the slot is spread by each option of its group."""
        known: dict[Slot, States] = {}
        for merged in self._coarse.merged:
            for slot in (*merged.inputs, *merged.outputs):
                if slot not in known:
                    known[slot] = states_of(self.options[slot.group], slot)
        return [tuple(known[slot] for slot in (*each.inputs, *each.outputs)) for each in self._coarse.merged]

    def group(self, group: int, fixed: Fixed) -> Sequences:
        """The sequences of options of a group.

        Args:
            group: which.
            fixed: per level known so far, the option that it has to be.

        Raises:
            StowageError: a pin cannot be met.
        """
        coarse, rules, options = self._coarse, self._rules, self.options[group]
        found, sizes = coarse.groups[group], coarse.label_bytes[group]
        labels = [label for label in options if isinstance(label, int)]
        allowed = tuple(rules.allowed is None or rules.allowed(group, label) for label in labels)
        pins = tuple(rules.pin(group, level) for level in range(len(fixed)))
        key = (
            tuple(found.sizes[label] for label in labels), tuple(sizes[label] for label in labels), found.whole,
            coarse.carried[group], allowed, tuple(labels.index(pin) if isinstance(pin, int) else pin for pin in pins),
            tuple(fixed),
        )  # fmt: skip
        if key not in self._known:

            def alive(chosen: list[int]) -> list[int]:
                pin = pins[len(chosen)]
                if pin == "replicated":
                    return [len(labels)]
                workers = rules.mesh[len(chosen)]
                able = [
                    place for place, label in enumerate(labels)
                    if found.sizes[label] // _cut(chosen, rules.mesh, place) >= workers
                ]  # fmt: skip
                if isinstance(pin, int):
                    if labels.index(pin) not in able or found.whole:
                        name = coarse.graph.tensors[min(found.members)].name
                        raise StowageError(f"{name} cannot be split {workers} ways as it is pinned")
                    return [labels.index(pin)]
                able = [place for place in able if allowed[place]]
                most = [place for place in able if sizes[labels[place]] >= _MOST_OF_A_GROUP * sizes[labels[able[0]]]]
                able = most if len(most) > 1 else able[:2]
                if found.whole or not able or rules.replicate is not None:
                    able = ([] if found.whole else able) + [len(labels)]
                return able + ([len(labels) + 1] if coarse.carried[group] else [])

            self._known[key] = _sequences(alive, fixed)
        return self._known[key]

    def op(self, merged: MergedOp, fixed: Fixed) -> Sequences:
        """The sequences of variants of merged ops.

        That every worker computes everything is one if no other variant serves all workers, or if it is allowed and
        all outputs may be whole.

        Args:
            merged: the ops.
            fixed: per level known so far, the variant that it has to be.
        """
        rules, variants = self._rules, merged.variants
        everything = all(self._may_be_whole[slot.group] for slot in merged.outputs)
        sums = any(self._coarse.carried[slot.group] for slot in (*merged.inputs, *merged.outputs))
        allowed = tuple(rules.allowed_variant is None or rules.allowed_variant(merged, each) for each in variants)
        key = id(variants), everything, sums, allowed, tuple(fixed)
        if key not in self._known:

            def alive(chosen: list[int]) -> list[int]:
                workers = rules.mesh[len(chosen)]
                able = [
                    place for place, variant in enumerate(variants[:-1])
                    if allowed[place] and variant.size // _cut(chosen, rules.mesh, place) >= workers
                    and variant.strategy is not None and (sums or variant.strategy.axis is not None)
                ]  # fmt: skip
                return able + ([len(variants) - 1] if (everything and allowed[-1]) or not able else [])

            self._known[key] = _sequences(alive, fixed)
        return self._known[key]

    def _can_be_whole(self, group: int) -> bool:
        pins = self._rules.pins.get(group, ())
        if self._rules.replicate is not None or "replicated" in pins:
            return True
        whole = self.options[group].index(None)
        return bool(self._rules.mesh) and whole in self.group(group, (None,))


def group_options(coarse: GroupsAndOps, group: int) -> tuple[Option, ...]:
    """How a group may be stored: by its labels, whole, and as partial sums if it may be."""
    sizes = coarse.label_bytes[group]
    labels = sorted(coarse.groups[group].sizes, key=lambda label: (-sizes[label], label))
    return (*labels, None, *((_SUM,) if coarse.carried[group] else ()))


def states_of(options: Sequence[Option], slot: Slot) -> States:
    """How a slot is spread by each option of its group."""
    return tuple(slot.state(option) for option in options)


def members_by_labels(coarse: GroupsAndOps, group: int) -> dict[frozenset[int], int]:
    """By the labels of the members of a group, how many bytes they have."""
    found: dict[frozenset[int], int] = {}
    for tensor, labels in coarse.groups[group].members.items():
        own = frozenset(labels.values())
        found[own] = found.get(own, 0) + coarse.sizes[tensor]
    return found


def _cut(chosen: list[int], mesh: Sequence[int], place: int) -> int:
    """Into how many parts outer levels have cut a choice."""
    return prod(workers for workers, other in zip(mesh, chosen, strict=False) if other == place)


def _sequences(alive: Callable[[list[int]], list[int]], fixed: Fixed) -> Sequences:
    rows: list[list[int]] = [[]]
    for choice in fixed:
        rows = [[*row, place] for row in rows for place in alive(row) if choice is None or place == choice]
    return np.array(rows, np.int64).reshape(len(rows), len(fixed))
