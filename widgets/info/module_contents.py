"""The parts of an opened module in execution order: its children, folded if identical, and its own ops."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from planner.graph import Graph, Kind, Module, Phase

#: A module without parameters or children, such as an activation function, is a part for each call, up to this many.
_MOST_CALLS = 4


@dataclass(frozen=True, eq=False)
class ModulePart:
    """One part of an opened module, or of several identical ones at once.

    Args:
        modules: the modules it represents; for a part of own ops, the opened modules.
        own: whether it represents ops of the opened modules themselves.
        count: identical siblings folded into it, per opened module.
        forward: its ops of the forward pass.
        storages: the storages it owns; the batch belongs to no part.
    """

    modules: tuple[Module, ...]
    own: bool
    count: int
    forward: tuple[int, ...]
    storages: tuple[int, ...]

    @property
    def can_open(self) -> bool:
        """Whether it has parts."""
        return not self.own and bool(self.modules[0].children)


def whole(graph: Graph, root: Module) -> ModulePart:
    """The whole model as one part."""
    return ModulePart((root,), False, 1, _forward(graph, root), root.all_storages)


def open_part(graph: Graph, part: ModulePart) -> tuple[ModulePart, ...]:
    """The parts of a module; for several identical modules, the parts at the same place are merged."""
    opened = [_parts(graph, module) for module in part.modules]
    places = [_join(same, same[0].count) for same in zip(*opened, strict=True)]
    runs = [tuple(run) for _, run in groupby(places, key=_look)]
    return tuple(_join(run, sum(part.count for part in run)) for run in runs)


def _parts(graph: Graph, module: Module) -> list[ModulePart]:
    forward = [(op, -1) for op in module.ops if graph.ops[op].phase is Phase.FORWARD]
    for place, child in enumerate(module.children):
        forward += [(op, place) for op in _forward(graph, child)]
    calls: dict[int, list[list[int]]] = {place: [] for place in range(len(module.children))}
    order: list[tuple[int, int]] = []
    for place, run in groupby(sorted(forward), key=lambda item: item[1]):
        calls.setdefault(place, []).append([op for op, _ in run])
        order.append((place, len(calls[place]) - 1))
    order += [(place, 0) for place, each in calls.items() if not each]
    parts = []
    for place, call in order:
        split = calls[place] or [[]]
        if len(split) > _MOST_CALLS or (place >= 0 and not _is_plain(graph, module.children[place])):
            split = [[op for run in split for op in run]]
        if call < len(split):
            parts.append(_part(graph, module, place, split, call))
    return parts


def _part(graph: Graph, module: Module, place: int, calls: list[list[int]], call: int) -> ModulePart:
    subject = module if place < 0 else module.children[place]
    owned = module.storages if place < 0 else subject.all_storages
    storages = {storage for storage in owned if graph.storages[storage].kind is not Kind.INPUT}
    made = [{storage for op in run for storage in graph.writes[op]} for run in calls]
    if call < len(calls) - 1:
        storages &= made[call]
    else:  # storages that no single call makes, such as gradients, count with the last call
        storages -= set().union(*made[:-1])
    return ModulePart((subject,), place < 0, 1, tuple(calls[call]), tuple(sorted(storages)))


def _is_plain(graph: Graph, module: Module) -> bool:
    return not module.children and not any(graph.storages[storage].persistent for storage in module.storages)


def _look(part: ModulePart) -> object:
    """A key by which equal neighbours are folded; ops of the opened module itself are never folded."""
    return -1 - part.forward[0] if part.own else part.modules[0].isomorphic_group


def _join(parts: tuple[ModulePart, ...], count: int) -> ModulePart:
    if len(parts) == 1:
        return parts[0]
    return ModulePart(
        tuple(dict.fromkeys(module for part in parts for module in part.modules)),
        parts[0].own,
        count,
        tuple(sorted(op for part in parts for op in part.forward)),
        tuple(sorted(storage for part in parts for storage in part.storages)),
    )


def _forward(graph: Graph, module: Module) -> tuple[int, ...]:
    return tuple(op for op in module.all_ops if graph.ops[op].phase is Phase.FORWARD)
