"""Parts of a coarse graph that are alike, such as the layers of a model, folded into one before they are searched.

What is chosen for a part depends on the rest only through groups and ops that no other looks like. Given what is chosen
for those, parts that cost the same may all be chosen alike, so that the merged ops of all of them can be one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, replace

from planner.partition.coarse import CoarseGraph, Fetch, GroupsAndOps, MergedOp, Variant
from planner.partition.search.choices.domains import States, group_options, members_by_labels, states_of
from planner.partition.search.choices.rules import SearchRules
from planner.partition.search.factors.repeats import find_repeats
from planner.partition.search.problem import Choice


@dataclass(frozen=True, eq=False)
class Folded:
    """A coarse graph in which one of several parts that are alike stands for all of them.

    Args:
        parts: the groups and ops that stand for themselves and others.
        rules: what may be chosen of them.
        group_of: per group of the whole coarse graph, the number of the one that stands for it.
        op_of: the same of every merged op.
    """

    parts: GroupsAndOps
    rules: SearchRules
    group_of: tuple[int, ...]
    op_of: tuple[int, ...]

    def unfolded(self, found: Choice) -> Choice:
        """The same choice for every group and op of the whole coarse graph."""
        stored = tuple(found.stored[group] for group in self.group_of)
        return replace(found, stored=stored, ways=tuple(found.ways[op] for op in self.op_of))


def fold(coarse: CoarseGraph, rules: SearchRules) -> Folded:
    """Find the parts of a coarse graph that are alike, and let one of them stand for the others.

    Args:
        coarse: the coarse graph.
        rules: what may be chosen; groups that may not be stored alike are not alike.
    """
    groups = len(coarse.groups)
    looks: dict[Hashable, int] = {}
    colors = [looks.setdefault(_group_look(coarse, rules, group), len(looks)) for group in range(groups)]
    scopes: list[tuple[tuple[int, ...], Hashable]] = []
    totals: list[Counter[int]] = [Counter() for _ in coarse.merged]
    for fetch in coarse.fetches:
        for number, place in fetch.readers:
            totals[number][place] += fetch.count
    known: dict[object, States] = {}
    numbers: dict[States, int] = {}
    options = [group_options(coarse, group) for group in range(groups)]
    for number, merged in enumerate(coarse.merged):
        slots = (*merged.inputs, *merged.outputs)
        around = list(dict.fromkeys(slot.group for slot in slots))
        places = {group: place for place, group in enumerate(around)}
        look = []
        for slot in slots:
            if slot not in known:
                known[slot] = states_of(options[slot.group], slot)
            states = numbers.setdefault(known[slot], len(numbers))
            look.append((states, slot.shape, slot.itemsize, places[slot.group]))
        allowed = None
        if rules.allowed_variant is not None:
            allowed = tuple(rules.allowed_variant(merged, variant) for variant in merged.variants)
        key = (
            id(merged.op), id(merged.variants), allowed, len(merged.ops), tuple(look),
            tuple(totals[number][place] for place in range(len(merged.inputs))),
        )  # fmt: skip
        scopes.append(((*around, groups + number), key))
    for fetch in coarse.fetches:
        if len(fetch.readers) > 1:
            ops = sorted({groups + number for number, _ in fetch.readers})
            readers = tuple((ops.index(groups + number), place) for number, place in fetch.readers)
            scopes.append((tuple(ops), (fetch.count, readers)))
    stands_for = find_repeats([*colors, *([len(looks)] * len(coarse.merged))], scopes).variables
    return _folded(coarse, rules, stands_for[:groups], [number - groups for number in stands_for[groups:]])


def _group_look(coarse: CoarseGraph, rules: SearchRules, group: int) -> Hashable:
    """What the options of a group, and what it costs to store it, depend on."""
    found, sizes = coarse.groups[group], coarse.label_bytes[group]
    options = group_options(coarse, group)
    labels = [label for label in options if isinstance(label, int)]
    pins = rules.pins.get(group, ())
    stored: Hashable = None
    if rules.replicate is not None:
        members = members_by_labels(coarse, group).items()
        stored = frozenset((frozenset(map(labels.index, own)), size) for own, size in members)
    return (
        tuple(found.sizes[label] for label in labels), tuple(sizes[label] for label in labels), found.whole,
        coarse.carried[group], tuple(rules.allowed is None or rules.allowed(group, label) for label in labels),
        tuple(labels.index(pin) if isinstance(pin, int) else pin for pin in pins), stored,
    )  # fmt: skip


def _folded(coarse: CoarseGraph, rules: SearchRules, groups: list[int], ops: list[int]) -> Folded:
    """Let groups and ops stand for others.

    Args:
        coarse: the coarse graph.
        rules: what may be chosen.
        groups: per group, which stands for it.
        ops: the same per merged op.
    """
    kept_groups, kept_ops = sorted(set(groups)), sorted(set(ops))
    new_group = {group: place for place, group in enumerate(kept_groups)}
    new_op = {op: place for place, op in enumerate(kept_ops)}
    group_of, op_of = tuple(new_group[group] for group in groups), tuple(new_op[op] for op in ops)
    members = defaultdict[int, list[int]](list)
    for number, stands in enumerate(ops):
        members[stands] += coarse.merged[number].ops
    merged = []
    for number in kept_ops:
        each = coarse.merged[number]
        inputs, outputs = (
            tuple(replace(slot, group=group_of[slot.group]) for slot in side) for side in (each.inputs, each.outputs)
        )
        merged.append(replace(each, ops=tuple(members[number]), inputs=inputs, outputs=outputs))
    counts: Counter[tuple[int, tuple[tuple[int, int], ...]]] = Counter()
    for fetch in coarse.fetches:
        readers = tuple(sorted((op_of[number], place) for number, place in fetch.readers))
        counts[group_of[fetch.group], readers] += fetch.count
    parts = GroupsAndOps(
        coarse.graph, tuple(coarse.groups[group] for group in kept_groups), coarse.sizes,
        tuple(coarse.label_bytes[group] for group in kept_groups),
        tuple(coarse.carried[group] for group in kept_groups), tuple(merged),
        tuple(Fetch(group, count, readers) for (group, readers), count in counts.items()),
        tuple(Counter(group_of)[place] for place in range(len(kept_groups))),
    )  # fmt: skip
    return Folded(parts, _folded_rules(coarse, rules, kept_groups, merged, kept_ops), group_of, op_of)


def _folded_rules(
    coarse: CoarseGraph, rules: SearchRules, kept_groups: list[int], merged: list[MergedOp], kept_ops: list[int]
) -> SearchRules:
    whole = {id(each): coarse.merged[number] for each, number in zip(merged, kept_ops, strict=True)}
    allowed, allowed_variant = rules.allowed, rules.allowed_variant

    def group_may(group: int, label: int) -> bool:
        return allowed is None or allowed(kept_groups[group], label)

    def op_may(op: MergedOp, variant: Variant) -> bool:
        return allowed_variant is None or allowed_variant(whole[id(op)], variant)

    return replace(
        rules,
        pins={place: rules.pins[group] for place, group in enumerate(kept_groups) if group in rules.pins},
        allowed=allowed and group_may,
        allowed_variant=allowed_variant and op_may,
    )
