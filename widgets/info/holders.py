"""The holders of memory at one moment: storages by group and by part of the model or line of code."""

from __future__ import annotations

from dataclasses import dataclass

from planner.graph import Graph
from widgets.info.model_division import GroupBy, get_holder_parts
from widgets.info.residency_spans import ResidencySpans
from widgets.info.storage_groups import Group


@dataclass(frozen=True, slots=True)
class Holder:
    """Storages of one part of the model and one group.

    Args:
        name: path of the module, or a range of them; a line of code; a single tensor's name.
        group: their group.
        storages: number of storages.
        bytes: their total size.
    """

    name: str
    group: Group
    storages: int
    bytes: int


def get_holders(graph: Graph, spans: ResidencySpans, moment: float, by: GroupBy = "module") -> tuple[Holder, ...]:
    """The holders of memory at a moment, the largest first; every byte present is in exactly one of them.

    Args:
        graph: the step.
        spans: its residencies.
        moment: on their axis.
        by: `"module"`, `"line"` for the line of code, or `"kind"`.

    Raises:
        StowageError: `by` is another word.
    """
    present = {int(spans.storage[span]) for span in spans.present(moment)}
    holders = []
    for part in get_holder_parts(graph, sorted(present), by):
        held = [graph.storages[storage] for storage in part.storages if storage in present]
        size = sum(storage.bytes for storage in held)
        if size:
            name = part.name_of(held[0].name) if len(held) == 1 else part.name
            holders.append(Holder(name, part.group, len(held), size))
    return tuple(sorted(holders, key=lambda holder: -holder.bytes))
