"""The model as nested rows, drawn by ourselves where Graphviz is missing.

Boxes stand below each other in the order in which they run, so their bars can be compared. What a box hands to the
next one is a short arrow; what it hands further on runs through lanes at the right.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree as Xml

from widgets.figures._swap_graph import DOWN, UP, move_text, moved
from widgets.figures.frame import SQUARE, TIMES
from widgets.figures.theme import FONT, Theme, mixed, shorten, wrapped
from widgets.info.groups import STACK
from widgets.info.module_edges import Edge
from widgets.info.module_graph import Box, ModuleGraph
from widgets.info.units import bytes_text

_WIDTH, _SIDE, _TOP_LINE, _LINE = 700, 12, 22, 16
_ROW, _GAP, _HEAD, _INSET = 26, 12, 24, 12
#: Counted from the right edge of the outermost boxes: where bars begin and end, and where amounts end.
_BARS, _AMOUNT = (250, 92), 22
_LANE, _ARROW = 9, 264
_LETTERS, _LINE_LENGTH = 36, 108


@dataclass(frozen=True)
class Svg:
    """A drawing that notebooks show; `text` is the whole of it."""

    text: str

    def _repr_html_(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class _Place:
    left: int
    right: int
    top: int
    bottom: int


def draw(info: ModuleGraph, theme: Theme) -> Svg:
    """Draw the rows."""
    lines = wrapped(info.summary, _LINE_LENGTH)
    lanes = _lanes(info)
    edge = _WIDTH - _SIDE - (_LANE * (max(lanes.values()) + 1) + 6 if lanes else 0)
    places: dict[int, _Place] = {}
    bottom = _lay(info, -1, _SIDE, edge, _TOP_LINE + _LINE * (len(lines) + 2) + 8, places)
    height = bottom + _SIDE - _GAP
    svg = Xml.Element(
        "svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {_WIDTH} {height}", width=str(_WIDTH),
        height=str(height), role="img", style=f"background:{theme.paper};max-width:100%;font:11px {FONT}",
    )  # fmt: skip
    svg.set("aria-label", info.summary)
    arrow = _add(
        _add(svg, "defs"),
        "marker",
        id=f"to{theme.third[1:]}",
        viewBox="0 0 8 8",
        refX=7,
        refY=4,
        markerWidth=6,
        markerHeight=6,
    )
    arrow.set("orient", "auto")
    _add(arrow, "path", d="M0 0L8 4L0 8z", fill=theme.third)
    title = _text(svg, _SIDE, _TOP_LINE, "Modules", theme.ink, size=14, weight=600)
    _span(title, f"\N{NO-BREAK SPACE} {shorten(info.name, 60)}", theme.third)
    for number, line in enumerate(lines, 1):
        _text(svg, _SIDE, _TOP_LINE + 4 + _LINE * number, line, theme.second, size=12)
    legend = _text(svg, _SIDE, _TOP_LINE + 6 + _LINE * (len(lines) + 1), "", theme.second)
    for group in info.groups:
        _span(legend, f"{SQUARE} ", theme.kinds[group])
        _span(legend, f"{group.value}\N{NO-BREAK SPACE}\N{NO-BREAK SPACE} ", theme.second)
    if info.swaps:
        _span(legend, f"{UP} to the host, {DOWN} back", theme.second)
    moves = moved(info)
    for number, place in places.items():  # opened boxes come before what lies in them
        _draw_box(svg, info.boxes[number], place, edge, _depth(info, number), info.largest_bytes, theme)
        if number in moves and not info.boxes[number].opened:
            text = _text(svg, edge - _ARROW - 8, place.top + 17, move_text(*moves[number]), theme.second)
            text.set("text-anchor", "end")
    for link in info.edges:
        _draw_edge(svg, info, link, places, edge, lanes.get((link.source, link.target), -1), theme)
    return Svg(Xml.tostring(svg, encoding="unicode"))


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


def _lay(info: ModuleGraph, parent: int, left: int, right: int, top: int, places: dict[int, _Place]) -> int:
    """Give the parts of a box their places, and say where the next row may begin."""
    for number in _rows(info, parent):
        box = info.boxes[number]
        if box.parent != parent:
            continue
        if box.opened:
            places[number] = _Place(left, right, top, top)
            below = _lay(info, number, left + _INSET, right - 4, top + _HEAD, places)
            places[number] = _Place(left, right, top, below - _GAP + 6)
            top = below + 6
        else:
            places[number] = _Place(left, right, top, top + _ROW)
            top += _ROW + _GAP
    return top


def _depth(info: ModuleGraph, number: int) -> int:
    parent = info.boxes[number].parent
    return 0 if parent < 0 else 1 + _depth(info, parent)


def _draw_box(svg: Xml.Element, box: Box, place: _Place, edge: int, depth: int, largest: int, theme: Theme) -> None:
    fill = mixed(theme.paper, theme.third, 0.06 + 0.05 * depth) if box.opened else theme.paper
    group = _add(svg, "g")
    _add(group, "title").text = box.description
    _add(
        group, "rect", x=place.left, y=place.top, width=place.right - place.left, height=place.bottom - place.top, rx=2,
        fill=fill, stroke=theme.line,
    )  # fmt: skip
    base = place.top + 17
    label = shorten(box.label, _LETTERS)
    name = _text(group, place.left + 9, base, label, theme.ink, weight=600 if box.paths else 400)
    if box.count > 1:
        _span(name, f" {TIMES}{box.count}", theme.second)
    _span(name, f"\N{NO-BREAK SPACE} {shorten(box.kind, max(_LETTERS - len(label), 8))}", theme.third)
    _text(group, edge - _AMOUNT, base, bytes_text(box.total_bytes), theme.ink).set("text-anchor", "end")
    if box.opened:
        return
    x, whole = float(edge - _BARS[0]), _BARS[0] - _BARS[1]
    for kind in STACK:
        width = whole * box.bytes.get(kind, 0) / max(largest, 1)
        if width:
            _add(
                group, "rect", x=round(x, 2), y=place.top + 10, width=round(width, 2), height=7, fill=theme.kinds[kind]
            )
        x += width


def _draw_edge(
    svg: Xml.Element, info: ModuleGraph, link: Edge, places: dict[int, _Place], edge: int, lane: int, theme: Theme
) -> None:
    source, target = places[link.source], places[link.target]
    if lane < 0:
        path = f"M{edge - _ARROW} {source.bottom}V{target.top}"
    else:
        x, y0, y1 = edge + 10 + _LANE * lane, source.bottom - 7, target.top + 7
        turn = 4 if y1 > y0 else -4
        path = f"M{source.right} {y0}H{x - 4}Q{x} {y0} {x} {y0 + turn}V{y1 - turn}Q{x} {y1} {x - 4} {y1}H{target.right}"
    line = _add(svg, "path", d=path, fill="none", stroke=theme.third)
    line.set("marker-end", f"url(#to{theme.third[1:]})")
    if link.back:
        line.set("stroke-dasharray", "3 2")
    _add(line, "title").text = f"{bytes_text(link.bytes)} from {info.boxes[link.source].label}"


def _add(parent: Xml.Element, tag: str, **attributes: object) -> Xml.Element:
    return Xml.SubElement(parent, tag, {name: str(value) for name, value in attributes.items()})


def _text(parent: Xml.Element, x: int, y: int, text: str, fill: str, size: int = 11, weight: int = 400) -> Xml.Element:
    element = _add(parent, "text", x=x, y=y, fill=fill)
    element.set("font-size", str(size))
    element.set("font-weight", str(weight))
    element.text = text
    return element


def _span(parent: Xml.Element, text: str, fill: str, weight: int = 400) -> None:
    span = _add(parent, "tspan", fill=fill)
    span.set("font-weight", str(weight))
    span.text = text
