"""The holders of memory at one moment: storages by part of the model and by group."""

from __future__ import annotations

from dataclasses import dataclass

from planner.graph import Graph
from widgets.info.model_division import get_holder_parts
from widgets.info.residency_spans import ResidencySpans
from widgets.info.storage_groups import Group


@dataclass(frozen=True, slots=True)
class Holder:
    """Storages of one part of the model and one group.

    Args:
        name: path of the module, or a range of them; a single tensor's name.
        group: their group.
        storages: number of storages.
        bytes: their total size.
    """

    name: str
    group: Group
    storages: int
    bytes: int


def get_holders(graph: Graph, spans: ResidencySpans, moment: float) -> tuple[Holder, ...]:
    """The holders of memory at a moment, the largest first; every byte present is in exactly one of them."""
    present = {int(spans.storage[span]) for span in spans.present(moment)}
    holders = []
    for part in get_holder_parts(graph, sorted(present)):
        held = [graph.storages[storage] for storage in part.storages if storage in present]
        size = sum(storage.bytes for storage in held)
        if size:
            name = held[0].name if len(held) == 1 else part.name
            holders.append(Holder(name, part.group, len(held), size))
    return tuple(sorted(holders, key=lambda holder: -holder.bytes))
