"""The module graph as nested rows in execution order, so that their bars can be compared.

An edge to the next box is a short arrow; longer edges run through lanes at the right.
"""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from planner.units import bytes_label
from widgets.figures._module_layout import INSET, RIGHT, ModuleLayout, find_places
from widgets.figures._module_style import colours, module_style
from widgets.figures._swap_traffic import DOWN, UP, move_text, moved
from widgets.figures.frame import TIMES
from widgets.figures.html_drawing import Drawing
from widgets.figures.theme import AUTO, Theme, unbroken
from widgets.info import STACK, Box, Edge, ModuleGraph

#: Pixels from the right edge of an outermost row to the end of an amount; amounts are aligned at every depth.
_MARGIN = 30


def draw(info: ModuleGraph, theme: Theme) -> Drawing:
    """Draw the rows."""
    places, moves = find_places(info), moved(info)
    root = Xml.Element("div", {"class": f"stowage-modules{' auto' if theme is AUTO else ''}", "style": colours(theme)})
    root.set("role", "figure")
    root.set("aria-label", info.summary)
    _add(root, "style").text = module_style(theme)
    title = _add(root, "div", "title", "Modules")
    _add(title, "span", text=info.name)
    _add(root, "div", "summary", unbroken(info.summary))
    _draw_legend(root, info, moves)
    rows = _add(root, "div", "boxes moving" if info.swaps else "boxes")
    rows.set("style", f"height:{places.height}px")
    for number in places.boxes:
        _draw_box(rows, info, number, places, moves.get(number))
    lanes = _add(rows, "svg", "lanes", width=f"{_lanes_width(places):g}", height=str(places.height))
    for edge in info.edges:
        _draw_edge(rows, lanes, info, edge, places)
    return Drawing(Xml.tostring(root, encoding="unicode", short_empty_elements=False))


def _draw_legend(root: Xml.Element, info: ModuleGraph, moves: dict[int, tuple[int, int]]) -> None:
    legend = _add(root, "div", "legend")
    for group in info.groups:
        entry = _add(legend, "span")
        _add(entry, "i", style=f"background:var(--kind{STACK.index(group)})").tail = group.value
    if info.swaps:
        _add(legend, "span", text=f"{UP} copied to the host, {DOWN} copied back")
        shown = {box: pair for box, pair in moves.items() if box >= 0 and not info.boxes[box].opened}
        rest = [sum(pair[way] for box, pair in moves.items() if box not in shown) for way in (0, 1)]
        if any(rest):
            _add(legend, "span", text=f"elsewhere {move_text(*rest)}")


def _draw_box(
    rows: Xml.Element, info: ModuleGraph, number: int, places: ModuleLayout, moves: tuple[int, int] | None
) -> None:
    box, place = info.boxes[number], places.boxes[number]
    kinds = ("box", "opened" if box.opened else "", "folded" if box.count > 1 else "")
    right = places.gutter + RIGHT * place.depth
    row = _add(rows, "div", " ".join(filter(None, kinds)), title=box.description)
    row.set(
        "style",
        f"left:{INSET * place.depth}px;right:{right:g}px;top:{place.top}px;height:{place.bottom - place.top}px;"
        f"padding-right:{_MARGIN - RIGHT * place.depth}px",
    )
    name = _add(row, "div", "name")
    _add(name, "b" if box.paths else "span", text=box.label)
    if box.count > 1:
        _add(name, "u", text=f"{TIMES}{box.count}")
    if box.kind:
        _add(name, "em", text=box.kind)
    if info.swaps:
        _add(row, "div", "moves", move_text(*moves) if moves and not box.opened else "")
    bar = _add(row, "div", "bar")
    if not box.opened:
        _draw_bar(bar, box, info.largest_bytes)
    _add(row, "div", "size", bytes_label(box.total_bytes))


def _draw_bar(bar: Xml.Element, box: Box, largest: int) -> None:
    for number, group in enumerate(STACK):
        share = box.bytes.get(group, 0) / max(largest, 1)
        if share:
            _add(bar, "i", style=f"width:{100 * share:.2f}%;background:var(--kind{number})")


def _lanes_width(places: ModuleLayout) -> float:
    return places.gutter + RIGHT * (1 + max((place.depth for place in places.boxes.values()), default=0))


def _draw_edge(rows: Xml.Element, lanes: Xml.Element, info: ModuleGraph, edge: Edge, places: ModuleLayout) -> None:
    source, target = places.boxes[edge.source], places.boxes[edge.target]
    told = f"{bytes_label(edge.bytes)} from {info.boxes[edge.source].label}"
    lane = places.lanes.get((edge.source, edge.target))
    if lane is None:
        arrow = _add(rows, "div", "edge down", title=told)
        # in the space between the swap amounts and the bar, which is empty in the headers of opened boxes too
        right = f"calc({places.gutter + _MARGIN + 13:g}px + var(--size) + var(--bar))"
        arrow.set("style", f"top:{source.bottom}px;height:{target.top - source.bottom}px;right:{right}")
        return
    width = _lanes_width(places)
    start, end = (width - places.gutter - RIGHT * place.depth for place in (source, target))
    x, y0, y1 = width - places.gutter + 6 + places.spacing * (lane + 0.5), source.bottom - 8, target.top + 8
    turn = 4 if y1 > y0 else -4
    group = _add(lanes, "g", "edge")
    _add(group, "title").text = told
    path = f"M{start:g} {y0}H{x - 4:g}Q{x:g} {y0} {x:g} {y0 + turn}V{y1 - turn}Q{x:g} {y1} {x - 4:g} {y1}H{end + 3:g}"
    line = _add(group, "path", d=path)
    if edge.back:
        line.set("class", "back")
    _add(group, "path", "head", d=f"M{end + 0.5:g} {y1}l6 -3.5v7z")


def _add(parent: Xml.Element, tag: str, kind: str = "", text: str | None = None, **attributes: str) -> Xml.Element:
    element = Xml.SubElement(parent, tag, {"class": kind} if kind else {}, **attributes)
    element.text = text
    return element
