"""The holders of memory at one moment: storages by group and by part of the model or line of code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.graph import Graph, Storage
from widgets.info.argument_types import require_graph
from widgets.info.colour_groups import Group
from widgets.info.holder_parts import LARGEST_SHARE, NO_LINE, GroupBy, get_holder_parts
from widgets.info.residency_spans import ResidencySpans

#: How many tensors of a holder are named.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Holder:
    """Storages of one part of the model and one group, or of one line of code.

    Args:
        name: path of the module, or a range of them; a line of code; a single tensor's name.
        group: their group; of a line, the one that holds most.
        storages: number of storages.
        bytes: their total size.
        tensors: names of the largest of them, the largest first.
        more_groups: of a line, its other groups.
        parts: what a line that holds more than a quarter is divided into, the largest first; their bytes are its own.
    """

    name: str
    group: Group
    storages: int
    bytes: int
    tensors: tuple[str, ...]
    more_groups: tuple[Group, ...] = ()
    parts: tuple[Holder, ...] = ()


def get_holders(graph: Graph, spans: ResidencySpans, moment: float, by: GroupBy = "module") -> tuple[Holder, ...]:
    """The holders of memory at a moment, the largest first; every byte present is in exactly one of them.

    By line, there is one for each line.

    Args:
        graph: the step.
        spans: its residencies.
        moment: on their axis.
        by: `"module"`, `"line"` for the line of code, or `"kind"`.

    Raises:
        StowageError: `graph` is no graph, or `by` is another word.
    """
    require_graph(graph)
    present = {int(spans.storage[span]) for span in spans.present(moment)}
    holders, lines = list[Holder](), defaultdict[str, list[tuple[Holder, list[Storage]]]](list)
    for part in get_holder_parts(graph, sorted(present), by):
        held = [graph.storages[storage] for storage in part.storages if storage in present]
        size = sum(storage.bytes for storage in held)
        if size:
            name = part.name_of(held[0].name) if len(held) == 1 else part.name
            holders.append(Holder(name, part.group, len(held), size, _largest(held)))
            lines[part.line].append((holders[-1], held))
    if by == "line":
        most = LARGEST_SHARE * sum(holder.bytes for holder in holders)
        holders = [_line(line, parts, most) for line, parts in lines.items()]
    return _sorted(holders)


def _line(line: str, divided: Sequence[tuple[Holder, list[Storage]]], most: float) -> Holder:
    """A line as one holder, which keeps its parts if it holds more than `most` bytes."""
    parts, storages = [part for part, _ in divided], [storage for _, held in divided for storage in held]
    size, held = sum(storage.bytes for storage in storages), defaultdict[Group, int](int)
    for part in parts:
        held[part.group] += part.bytes
    group, *more = sorted(held, key=lambda group: -held[group])
    inner = [replace(part, name=part.name.removeprefix(line).lstrip() or part.group.value) for part in parts]
    return Holder(
        line or NO_LINE, group, len(storages), size, _largest(storages), tuple(more),
        _sorted(inner) if len(inner) > 1 and size > most else (),
    )  # fmt: skip


def _sorted(holders: Sequence[Holder]) -> tuple[Holder, ...]:
    return tuple(sorted(holders, key=lambda holder: -holder.bytes))


def _largest(storages: Sequence[Storage]) -> tuple[str, ...]:
    return tuple(storage.name for storage in sorted(storages, key=lambda storage: -storage.bytes)[:_NAMED])
