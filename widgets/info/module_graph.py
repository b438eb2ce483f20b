"""The model as boxes and arrows: modules opened level by level, identical neighbours folded, and their bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.graph import Graph, Kind, module_tree
from planner.plan import SwapPlan, own_graph
from planner.units import bytes_label, format_percent, several
from widgets.info.argument_types import require_graph, require_plan
from widgets.info.colour_groups import GROUP_OF, STACK, Group
from widgets.info.memory_by_kind import get_memory_by_kind
from widgets.info.module_contents import ModulePart, open_part, whole
from widgets.info.module_edges import Edge, find_edges
from widgets.info.module_swaps import Swap, find_swaps
from widgets.info.residency_spans import captured_stays

#: Most boxes that a readable drawing may have.
_READABLE = 60


@dataclass(frozen=True, slots=True)
class Box:
    """One box of the picture.

    Args:
        parent: position of the opened box that contains it, or -1.
        paths: the modules it represents; empty for ops of the opened module itself and for the batch.
        label: name of the module (`"conv1"`, `"1 … 35"`) or of the ops.
        kind: class name, or `""`.
        count: identical siblings folded into it.
        opened: whether its parts have boxes of their own.
        ops: number of ops of its modules in all phases; for a box of ops, the number of those ops.
        bytes: per group, at the step's peak, of all modules it represents.
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

    @property
    def description(self) -> str:
        """What the box represents and holds, in one line."""
        where = ", ".join(self.paths[:3]) + (" …" if len(self.paths) > 3 else "")
        amounts = ", ".join(f"{group.value} {bytes_label(size)}" for group, size in self.bytes.items())
        return f"{where or self.label}: {several(self.ops, 'op')}; {amounts or 'nothing'} at the peak"


@dataclass(frozen=True, eq=False)
class ModuleGraph:
    """A model at one level of detail.

    Args:
        name: what was captured.
        boxes: parents before their parts, parts in the order in which they run.
        edges: between boxes that are not opened.
        swaps: the swaps of the plan, if there is a plan.
        peak_bytes: the most bytes alive at once when nothing is swapped.
        elsewhere_bytes: the part of `peak_bytes` that is in no box, because no module computed it.
    """

    name: str
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    peak_bytes: int
    elsewhere_bytes: int
    swaps: tuple[Swap, ...] = ()

    @property
    def out_bytes(self) -> int:
        """Bytes copied to the host in a step."""
        return sum(swap.out_bytes for swap in self.swaps)

    @property
    def in_bytes(self) -> int:
        """Bytes copied back from the host in a step."""
        return sum(swap.in_bytes for swap in self.swaps)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that any box holds, in stacking order."""
        return tuple(group for group in STACK if any(box.bytes.get(group) for box in self.boxes))

    @property
    def largest_bytes(self) -> int:
        """Bytes of the largest box that is not opened."""
        return max((box.total_bytes for box in self.boxes if not box.opened), default=0)

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        closed = [box for box in self.boxes if not box.opened]
        largest = max(closed, key=lambda box: box.total_bytes, default=None)
        if largest is None or not self.peak_bytes:
            return f"{self.name} runs no module that holds memory."
        name = largest.paths[0] if largest.paths else largest.label
        if len(largest.paths) > 1:
            name += f" to {largest.paths[-1]}"
        text = (
            f"With nothing swapped the step peaks at {bytes_label(self.peak_bytes)}; of "
            f"{len(closed)} boxes the largest, {name}, holds {format_percent(largest.total_bytes / self.peak_bytes)}."
        )
        if self.swaps:
            text += f" The plan copies {bytes_label(self.out_bytes)} to the host and {bytes_label(self.in_bytes)} back."
        return text


def get_module_graph(graph: Graph, most_boxes: int = 20, plan: SwapPlan | None = None) -> ModuleGraph:
    """Fold a graph into boxes.

    Modules are opened a whole level at a time while there is room, then the largest ones. A single module that wraps
    others is opened until there are several.

    Args:
        graph: the step.
        most_boxes: limit on closed boxes; the top level is always drawn whole, and so are the contents of a single
            wrapping module, as long as the drawing is readable.
        plan: a plan whose copies are shown, if any.

    Raises:
        StowageError: `graph` is no graph, or the plan is for another one.
    """
    require_graph(graph)
    if plan is not None:
        require_plan(plan)
        graph = own_graph(graph, plan)
    spans = captured_stays(graph)
    peak = get_memory_by_kind(graph)
    at_peak = {int(spans.storage[span]): int(spans.bytes[span]) for span in spans.present(peak.peak_at)}
    parts, parents, opened = _opened(graph, at_peak, most_boxes)
    boxes = [_box(graph, part, parents[at], at in opened, at_peak) for at, part in enumerate(parts)]
    batch = {storage.id for storage in graph.storages if storage.kind is Kind.INPUT}
    if batch:
        there = sum(at_peak.get(storage, 0) for storage in batch)
        boxes.append(Box(-1, (), "batch", "", 1, False, 0, {Group.INPUT: there} if there else {}))
    inside = sum(box.total_bytes for box in boxes if box.parent < 0)
    return ModuleGraph(
        graph.name, tuple(boxes), find_edges(graph, parts, parents, opened, batch), peak.peak_bytes,
        peak.peak_bytes - inside, () if plan is None else find_swaps(graph, plan, parts, opened, batch),
    )  # fmt: skip


def _opened(graph: Graph, at_peak: Mapping[int, int], most: int) -> tuple[list[ModulePart], list[int], set[int]]:
    """The parts in drawing order, the position of each one's parent part, and the positions of the opened parts."""
    top = open_part(graph, whole(graph, module_tree(graph)))
    inside: dict[int, tuple[ModulePart, ...]] = {}

    def weight(part: ModulePart) -> int:
        return sum(at_peak.get(storage, 0) for storage in part.storages)

    closed, level = len(top), list(top)
    while (only := _only(level)) is not None:
        parts = open_part(graph, only)
        if closed - 1 + len(parts) > max(most, _READABLE):
            break
        closed += len(parts) - 1
        inside[id(only)], level = parts, list(parts)
    while level:
        opening = {id(part): open_part(graph, part) for part in level if part.can_open}
        room = most - closed
        if sum(len(parts) - 1 for parts in opening.values()) > room:
            level.sort(key=weight, reverse=True)
        below: list[ModulePart] = []
        for part in level:
            parts = opening.get(id(part), ())
            if parts and closed - 1 + len(parts) <= most:
                closed += len(parts) - 1
                inside[id(part)] = parts
                below += parts
        level = below
    laid: list[ModulePart] = []
    parents: list[int] = []
    opened: set[int] = set()

    def lay(part: ModulePart, parent: int) -> None:
        here = len(laid)
        laid.append(part)
        parents.append(parent)
        if id(part) in inside:
            opened.add(here)
            for each in inside[id(part)]:
                lay(each, here)

    for part in top:
        lay(part, -1)
    return laid, parents, opened


def _only(parts: Sequence[ModulePart]) -> ModulePart | None:
    """The only module among parts, if it contains others."""
    modules = [part for part in parts if not part.own]
    return modules[0] if len(modules) == 1 and modules[0].can_open else None


def _box(graph: Graph, part: ModulePart, parent: int, opened: bool, at_peak: Mapping[int, int]) -> Box:
    amounts = dict.fromkeys(STACK, 0)
    for storage in part.storages:
        amounts[GROUP_OF[graph.storages[storage].kind]] += at_peak.get(storage, 0)
    ops = len(part.forward) if part.own else sum(len(module.all_ops) for module in part.modules)
    return Box(
        parent, () if part.own else tuple(module.path for module in part.modules), _label(graph, part),
        "" if part.own else part.modules[0].kind, part.count, opened, ops,
        {group: size for group, size in amounts.items() if size},
    )  # fmt: skip


def _label(graph: Graph, part: ModulePart) -> str:
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
