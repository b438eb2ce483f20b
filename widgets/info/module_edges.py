"""The tensors that the boxes of a model pass to each other in the forward pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner.graph import Graph
from widgets.info.module_contents import ModulePart


@dataclass(frozen=True, slots=True)
class Edge:
    """Bytes that one box passes to another in the forward pass; `back` if the edge closes a cycle, as in recurrence."""

    source: int
    target: int
    bytes: int
    back: bool


def find_edges(
    graph: Graph, parts: Sequence[ModulePart], parents: Sequence[int], opened: set[int], batch: set[int]
) -> tuple[Edge, ...]:
    """Follow every storage of the forward pass from the box that wrote it to the boxes that read it.

    Args:
        graph: the step.
        parts: the part of the model per box; the batch has the box after the last.
        parents: per box, the opened box that contains it, or -1.
        opened: boxes whose parts have boxes of their own.
        batch: storages of the batch.
    """
    box_of = {op: box for box, part in enumerate(parts) if box not in opened for op in part.forward}
    members = {box: _members(parts[box]) for box in opened if parts[box].count > 1}
    writer: dict[int, int] = {}
    passed: dict[tuple[int, int], set[int]] = {}
    for op in sorted(box_of):
        target = box_of[op]
        for storage in graph.reads[op]:
            source = len(parts) if storage in batch else box_of[writer[storage]] if storage in writer else target
            if source != target and not _crosses(writer.get(storage, -1), op, target, parents, members):
                passed.setdefault((source, target), set()).add(storage)
        writer |= dict.fromkeys(graph.writes[op], op)
    back = _closing([min(part.forward, default=0) for part in parts] + [-1], passed)
    return tuple(
        Edge(source, target, sum(graph.storages[s].bytes for s in storages), (source, target) in back)
        for (source, target), storages in sorted(passed.items())
    )


def _closing(rank: Sequence[int], pairs: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """The pairs that close a cycle, if pairs from an earlier to a later box are added first."""
    after: dict[int, set[int]] = {}

    def reaches(start: int, end: int) -> bool:
        seen, ahead = {start}, [start]
        while ahead:
            fresh = after.get(ahead.pop(), set()) - seen
            seen |= fresh
            ahead += fresh
        return end in seen

    back = set()
    for source, target in sorted(pairs, key=lambda pair: (rank[pair[0]] > rank[pair[1]], pair)):
        if reaches(target, source):
            back.add((source, target))
        else:
            after.setdefault(source, set()).add(target)
    return back


def _members(part: ModulePart) -> dict[int, int]:
    return {op: number for number, module in enumerate(part.modules) for op in module.all_ops}


def _crosses(source: int, target: int, box: int, parents: Sequence[int], members: dict[int, dict[int, int]]) -> bool:
    """Whether an op passes to an op of another module of the same folded box, which the fold already shows."""
    while box >= 0:
        inside = members.get(box, {})
        if source in inside and inside[source] != inside[target]:
            return True
        box = parents[box]
    return False
