"""The model as boxes and arrows: modules opened level by level, identical neighbours folded, bytes at the step's peak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.graph import Graph, Kind, module_tree
from widgets.info.groups import GROUP_OF, STACK, Group
from widgets.info.memory_by_kind import get_memory_by_kind
from widgets.info.module_parts import Part, open_part, whole
from widgets.info.stays import captured_stays
from widgets.info.units import bytes_text, count_text, percent_text


@dataclass(frozen=True, slots=True)
class Box:
    """One box of the picture.

    Args:
        parent: position of the opened box it lies in, or -1.
        paths: the modules it stands for; none where it stands for ops of the opened module itself, or for the batch.
        label: name of the module (`"conv1"`, `"1 … 35"`), or of the ops.
        kind: class name, or `""`.
        count: identical siblings folded into it.
        opened: whether its parts are boxes of their own.
        ops: ops of its modules, all phases together; of the ops themselves for a box of ops.
        bytes: per group, at the step's peak, of all modules it stands for.
    """

    parent: int
    paths: tuple[str, ...]
    label: str
    kind: str
    count: int
    opened: bool
    ops: int
    bytes: Mapping[Group, int]

    @property
    def total_bytes(self) -> int:
        """Bytes of all groups together."""
        return sum(self.bytes.values())


@dataclass(frozen=True, slots=True)
class Edge:
    """Bytes that boxes hand on in the forward pass; `back` where they go to a box that ran before, as in recurrence."""

    source: int
    target: int
    bytes: int
    back: bool


@dataclass(frozen=True, eq=False)
class ModuleGraph:
    """A model at one level of detail.

    Args:
        name: what was captured.
        boxes: parents before their parts, parts in the order in which they run.
        edges: between boxes that are not opened.
        peak_bytes: the most bytes alive at once when nothing is swapped.
        elsewhere_bytes: the part of it that is in no box, because no module computed it.
    """

    name: str
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    peak_bytes: int
    elsewhere_bytes: int

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        tops = [box for box in self.boxes if box.parent < 0]
        if not tops or not self.peak_bytes:
            return f"{self.name} runs no module that holds memory."
        largest = max(self.boxes, key=lambda box: (not box.opened) * box.total_bytes)
        share = percent_text(largest.total_bytes / self.peak_bytes)
        name = largest.paths[0] if len(largest.paths) == 1 else largest.label
        if len(largest.paths) > 1:
            name = f"{largest.paths[0]} to {largest.paths[-1]}"
        return (
            f"Bytes at the peak of {bytes_text(self.peak_bytes)} that the step reaches with nothing swapped: "
            f"of {count_text(sum(not box.opened for box in self.boxes), 'box')} the largest, {name}, holds {share}."
        )


def get_module_graph(graph: Graph, most_boxes: int = 60) -> ModuleGraph:
    """Fold a graph into boxes.

    Modules are opened a whole level at a time while there is room, then the largest ones.

    Args:
        graph: the step.
        most_boxes: how many boxes may be closed, that is, drawn as boxes; the top level is drawn whole.
    """
    stays = captured_stays(graph)
    peak = get_memory_by_kind(graph)
    at_peak = {int(stays.storage[stay]): int(stays.bytes[stay]) for stay in stays.present(peak.peak_at)}
    parts, parents, opened = _opened(graph, at_peak, most_boxes)
    boxes = [_box(graph, part, parent, part in opened, at_peak) for part, parent in zip(parts, parents, strict=True)]
    batch = {storage.id for storage in graph.storages if storage.kind is Kind.INPUT}
    if batch:
        there = sum(at_peak.get(storage, 0) for storage in batch)
        boxes.append(Box(-1, (), "batch", "", 1, False, 0, {Group.INPUT: there} if there else {}))
    inside = sum(box.total_bytes for box in boxes if box.parent < 0)
    return ModuleGraph(
        graph.name, tuple(boxes), _edges(graph, parts, opened, batch, len(boxes) - 1), peak.peak_bytes,
        peak.peak_bytes - inside,
    )  # fmt: skip


def _opened(graph: Graph, at_peak: Mapping[int, int], most: int) -> tuple[list[Part], list[int], set[int]]:
    """Parts in drawing order, the position of the part each lies in, and the positions of those that are opened."""
    top = open_part(graph, whole(graph, module_tree(graph)))
    inside: dict[int, tuple[Part, ...]] = {}

    def weight(part: Part) -> int:
        return sum(at_peak.get(storage, 0) for storage in part.storages)

    closed, level = len(top), list(top)
    while level:
        opening = {id(part): open_part(graph, part) for part in level if part.can_open}
        room = most - closed
        if sum(len(parts) - 1 for parts in opening.values()) > room:
            level.sort(key=weight, reverse=True)
        below: list[Part] = []
        for part in level:
            parts = opening.get(id(part), ())
            if parts and closed - 1 + len(parts) <= most:
                closed += len(parts) - 1
                inside[id(part)] = parts
                below += parts
        level = below
    parts: list[Part] = []
    parents: list[int] = []
    opened: set[int] = set()

    def lay(part: Part, parent: int) -> None:
        here = len(parts)
        parts.append(part)
        parents.append(parent)
        if id(part) in inside:
            opened.add(here)
            for each in inside[id(part)]:
                lay(each, here)

    for part in top:
        lay(part, -1)
    return parts, parents, opened


def _box(graph: Graph, part: Part, parent: int, opened: bool, at_peak: Mapping[int, int]) -> Box:
    amounts = dict.fromkeys(STACK, 0)
    for storage in part.storages:
        amounts[GROUP_OF[graph.storages[storage].kind]] += at_peak.get(storage, 0)
    ops = len(part.forward) if part.own else sum(len(module.all_ops) for module in part.modules)
    return Box(
        parent, () if part.own else tuple(module.path for module in part.modules), _label(graph, part),
        "" if part.own else part.modules[0].kind, part.count, opened, ops,
        {group: size for group, size in amounts.items() if size},
    )  # fmt: skip


def _label(graph: Graph, part: Part) -> str:
    if not part.own:
        names = list(dict.fromkeys(module.name for module in part.modules))
        return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
    if any(graph.outputs and graph.outputs[0] in graph.ops[op].outputs for op in part.forward):
        return "loss"
    names = list(dict.fromkeys(op_label(graph.ops[op].target) for op in part.forward))
    return ", ".join(names[:3]) + (f" +{len(names) - 3}" if len(names) > 3 else "")


def op_label(target: str) -> str:
    """`add` for `aten.add.Tensor`."""
    parts = target.split(".")
    return (parts[1] if len(parts) > 1 else target).strip("_")


def _edges(graph: Graph, parts: list[Part], opened: set[int], batch: set[int], batch_box: int) -> tuple[Edge, ...]:
    box_of = {op: box for box, part in enumerate(parts) if box not in opened for op in part.forward}
    rank = {box: min(part.forward, default=0) for box, part in enumerate(parts)} | {batch_box: -1}
    writer = dict.fromkeys(batch, batch_box) if batch else {}
    passed: dict[tuple[int, int], set[int]] = {}
    for op in sorted(box_of):
        for storage in graph.reads[op]:
            source = writer.get(storage, box_of[op])
            if source != box_of[op]:
                passed.setdefault((source, box_of[op]), set()).add(storage)
        for storage in graph.writes[op]:
            writer[storage] = box_of[op]
    return tuple(
        Edge(source, target, sum(graph.storages[s].bytes for s in storages), rank[source] > rank[target])
        for (source, target), storages in sorted(passed.items())
    )
