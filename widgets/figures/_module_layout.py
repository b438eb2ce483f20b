"""The layout of the rows of a module graph and the lanes of its arrows, in pixels; rows are as wide as the notebook."""

from __future__ import annotations

from dataclasses import dataclass

from widgets.info import ModuleGraph

ROW, GAP, HEAD, INSET = 26, 10, 26, 12
#: Inset of a part at the right edge of its box, and the room below the last part.
RIGHT, FOOT = 5, 7
#: Largest and smallest distance between two lanes, and width of all lanes if there is room.
_WIDEST, _NARROWEST, _LANES = 9, 4, 72


@dataclass(frozen=True, slots=True)
class BoxPlace:
    """A box: its nesting depth, and its upper and lower edge."""

    depth: int
    top: int
    bottom: int


@dataclass(frozen=True)
class ModuleLayout:
    """The positions of boxes and lanes.

    Args:
        boxes: by position in the module graph; opened boxes before their parts.
        lanes: lane of each edge that does not lead to the next row, by source and target.
        spacing: distance between two lanes.
        height: total height.
    """

    boxes: dict[int, BoxPlace]
    lanes: dict[tuple[int, int], int]
    spacing: float
    height: int

    @property
    def gutter(self) -> float:
        """Width at the right that the lanes take."""
        return self.spacing * (max(self.lanes.values()) + 1) + 8 if self.lanes else 0


def find_places(info: ModuleGraph) -> ModuleLayout:
    """Place boxes below each other in execution order."""
    boxes: dict[int, BoxPlace] = {}
    bottom = _place(info, -1, 0, 0, boxes)
    lanes = _lanes(info)
    number = max(lanes.values(), default=0) + 1
    return ModuleLayout(boxes, lanes, max(_NARROWEST, min(_WIDEST, _LANES / number)), bottom - GAP + 4)


def _rows(info: ModuleGraph, parent: int = -1) -> list[int]:
    """Boxes from top to bottom, opened boxes before their parts, the batch first."""
    ours = [number for number, box in enumerate(info.boxes) if box.parent == parent]
    ours.sort(key=lambda number: bool(info.boxes[number].ops))
    return [row for number in ours for row in (number, *_rows(info, number))]


def _lanes(info: ModuleGraph) -> dict[tuple[int, int], int]:
    """The lane of every edge that does not lead to the next row; overlapping edges have different lanes."""
    row = {number: at for at, number in enumerate(n for n in _rows(info) if not info.boxes[n].opened)}
    free: list[int] = []  # per lane, the first row where it is free
    lanes = {}
    for edge in sorted(info.edges, key=lambda edge: (abs(row[edge.target] - row[edge.source]), row[edge.source])):
        if row[edge.target] != row[edge.source] + 1:
            first, last = sorted((row[edge.source], row[edge.target]))
            lane = next((lane for lane, until in enumerate(free) if until <= first), len(free))
            free[lane : lane + 1] = [last]
            lanes[edge.source, edge.target] = lane
    return lanes


def _place(info: ModuleGraph, parent: int, depth: int, top: int, places: dict[int, BoxPlace]) -> int:
    """Place the parts of a box; returns the top of the next row."""
    for number in _rows(info, parent):
        box = info.boxes[number]
        if box.parent != parent:
            continue
        if box.opened:
            places[number] = BoxPlace(depth, top, top)
            below = _place(info, number, depth + 1, top + HEAD + 2, places)
            places[number] = BoxPlace(depth, top, below - GAP + FOOT)
            top = below + FOOT
        else:
            places[number] = BoxPlace(depth, top, top + ROW)
            top += ROW + GAP
    return top
