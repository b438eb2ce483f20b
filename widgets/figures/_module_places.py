"""Where the rows of a module graph and the lanes of its arrows are, in pixels; rows are as wide as the notebook."""

from __future__ import annotations

from dataclasses import dataclass

from widgets.info.module_graph import ModuleGraph

ROW, GAP, HEAD, INSET = 26, 10, 26, 12
#: How much earlier a part ends, at the right, than the box it is in; and the room below its last part.
RIGHT, FOOT = 5, 7
#: Between two lanes: at most and at least, and all lanes together if there is room.
_WIDEST, _NARROWEST, _LANES = 9, 4, 72


@dataclass(frozen=True, slots=True)
class Place:
    """A box: its depth in others, and its upper and lower edge."""

    depth: int
    top: int
    bottom: int


@dataclass(frozen=True)
class Places:
    """Where everything is.

    Args:
        boxes: by position in the module graph; opened boxes before their parts.
        lanes: of each edge that does not lead to the next row, by its source and target.
        spacing: between two lanes.
        height: of the whole.
    """

    boxes: dict[int, Place]
    lanes: dict[tuple[int, int], int]
    spacing: float
    height: int

    @property
    def gutter(self) -> float:
        """Room at the right for the lanes."""
        return self.spacing * (max(self.lanes.values()) + 1) + 8 if self.lanes else 0


def find_places(info: ModuleGraph) -> Places:
    """Place boxes below each other in the order in which they run."""
    boxes: dict[int, Place] = {}
    bottom = _place(info, -1, 0, 0, boxes)
    lanes = _lanes(info)
    number = max(lanes.values(), default=0) + 1
    return Places(boxes, lanes, max(_NARROWEST, min(_WIDEST, _LANES / number)), bottom - GAP + 4)


def _rows(info: ModuleGraph, parent: int = -1) -> list[int]:
    """Boxes from top to bottom, opened ones before their parts, the batch before all."""
    ours = [number for number, box in enumerate(info.boxes) if box.parent == parent]
    ours.sort(key=lambda number: bool(info.boxes[number].ops))
    return [row for number in ours for row in (number, *_rows(info, number))]


def _lanes(info: ModuleGraph) -> dict[tuple[int, int], int]:
    """The lane of every edge that does not go to the very next row; edges that overlap have different lanes."""
    row = {number: at for at, number in enumerate(n for n in _rows(info) if not info.boxes[n].opened)}
    free: list[int] = []  # per lane, the row from which on it is free
    lanes = {}
    for edge in sorted(info.edges, key=lambda edge: (abs(row[edge.target] - row[edge.source]), row[edge.source])):
        if row[edge.target] != row[edge.source] + 1:
            first, last = sorted((row[edge.source], row[edge.target]))
            lane = next((lane for lane, until in enumerate(free) if until <= first), len(free))
            free[lane : lane + 1] = [last]
            lanes[edge.source, edge.target] = lane
    return lanes


def _place(info: ModuleGraph, parent: int, depth: int, top: int, places: dict[int, Place]) -> int:
    """Place the parts of a box, and return where the next row begins."""
    for number in _rows(info, parent):
        box = info.boxes[number]
        if box.parent != parent:
            continue
        if box.opened:
            places[number] = Place(depth, top, top)
            below = _place(info, number, depth + 1, top + HEAD + 2, places)
            places[number] = Place(depth, top, below - GAP + FOOT)
            top = below + FOOT
        else:
            places[number] = Place(depth, top, top + ROW)
            top += ROW + GAP
    return top
