"""The peak as nested boxes: modules in modules, or lines in files, down to the kinds of tensors that each holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from planner.errors import StowageError
from planner.graph import Graph, storage_modules
from planner.plan import SwapPlan, Timeline
from planner.units import bytes_label, format_percent
from widgets.info.argument_types import require_graph
from widgets.info.colour_groups import GROUP_OF, STACK, Group
from widgets.info.holder_parts import NO_LINE
from widgets.info.residency_spans import stays
from widgets.info.source_lines import get_source_lines

#: What the boxes of an icicle are: modules in modules, or lines in files.
IcicleLevels = Literal["module", "line"]


@dataclass(frozen=True, slots=True)
class IcicleBox:
    """A box.

    Args:
        name: the path of a module, a file, a line of code, or a group.
        label: its last part.
        parent: position of the box that it is in; -1 for the first, which is the whole step.
        bytes: at the peak, of everything in it.
        group: of the tensors that a module or line holds itself; None for a box of boxes.
    """

    name: str
    label: str
    parent: int
    bytes: int
    group: Group | None = None


@dataclass(frozen=True, slots=True)
class PeakIcicle:
    """The peak as nested boxes.

    Args:
        name: what was captured.
        by: what the boxes are.
        boxes: parents before what is in them; the boxes in a box add up to it.
    """

    name: str
    by: IcicleLevels
    boxes: tuple[IcicleBox, ...]

    @property
    def peak_bytes(self) -> int:
        """The most bytes in use."""
        return self.boxes[0].bytes

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        if not self.peak_bytes:
            return f"{self.name} holds no memory at any time."
        boxes = [box for box in self.boxes if box.parent == 0]
        if self.by == "line":  # which are in files; what no line is known of is in none
            boxes = [
                box for box in self.boxes
                if box.group is None and (box.name == NO_LINE or self.boxes[box.parent].parent == 0)
            ]  # fmt: skip
        top = max(boxes, key=lambda box: box.bytes)
        name = f"what has {NO_LINE}" if top.name == NO_LINE else top.name
        share = format_percent(top.bytes / self.peak_bytes)
        return f"Of the peak of {bytes_label(self.peak_bytes)}, {name} holds {share}."


def get_peak_icicle(
    graph: Graph, plan: SwapPlan | None = None, timeline: Timeline | None = None, by: IcicleLevels = "module"
) -> PeakIcicle:
    """Divide the peak into nested boxes.

    Args:
        graph: the step.
        plan: its plan; by default the captured order with nothing swapped.
        timeline: seconds for the plan's slots; by default its predicted timeline.
        by: `"module"`, or `"line"` for the line of code.

    Raises:
        StowageError: `graph` is no graph, `by` is another word, or the plan or timeline is for another graph.
    """
    require_graph(graph)
    if by not in get_args(IcicleLevels):
        raise StowageError(f'by must be "module" or "line", got {by!r}')
    graph, spans = stays(graph, plan, timeline)
    present = sorted({int(spans.storage[span]) for span in spans.present(spans.fullest)})
    places = _modules(graph) if by == "module" else _lines(graph)
    held: dict[tuple[str, ...], int] = {(): 0}
    order = [(places[storage], GROUP_OF[graph.storages[storage].kind], storage) for storage in present]
    if by == "line":
        order.sort(key=lambda entry: (_in_file(entry[0]), STACK.index(entry[1])))
    groups: dict[tuple[str, ...], Group] = {}
    for place, group, storage in order:
        path = (*place, group.value)
        groups[path] = group
        for depth in range(len(path) + 1):
            held[path[:depth]] = held.get(path[:depth], 0) + graph.storages[storage].bytes
    numbers = {path: number for number, path in enumerate(held)}
    boxes = [
        IcicleBox(
            _name(path, groups) or graph.name, _label(path) or graph.name,
            numbers[path[:-1]] if path else -1, size, groups.get(path),
        )
        for path, size in held.items()
    ]  # fmt: skip
    return PeakIcicle(graph.name, by, tuple(boxes))


def _modules(graph: Graph) -> list[tuple[str, ...]]:
    """Per storage, the paths of the modules around it, the outermost first."""
    places = []
    for path in storage_modules(graph):
        parts = path.split(".") if path else []
        places.append(tuple(".".join(parts[: depth + 1]) for depth in range(len(parts))))
    return places


def _lines(graph: Graph) -> list[tuple[str, ...]]:
    """Per storage, its file and its line in it."""
    return [
        (line.rpartition(":")[0] or line, line) if line else (NO_LINE,) for line in get_source_lines(graph).of_storage
    ]


def _in_file(place: Sequence[str]) -> tuple[str, int]:
    number = place[-1].rpartition(":")[2]
    return place[0], int(number) if number.isdigit() else 0


def _name(path: tuple[str, ...], groups: dict[tuple[str, ...], Group]) -> str:
    return f"{path[-2]} {path[-1]}" if path in groups and len(path) > 1 else path[-1] if path else ""


def _label(path: tuple[str, ...]) -> str:
    """The last part of a module's path, or a line of the file that it is in."""
    if len(path) < 2:
        return path[-1] if path else ""
    return path[-1].removeprefix(f"{path[-2]}.").replace(f"{path[-2]}:", "line ")
