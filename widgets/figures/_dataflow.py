"""The dataflow graph: ops as boxes marked with their phase, and tensors as edges whose width shows their bytes."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from planner.graph import Phase
from widgets.figures._dataflow_layout import SVG, lay_out, printable
from widgets.figures._dataflow_style import colours, dataflow_style
from widgets.figures.html_drawing import Drawing
from widgets.figures.theme import AUTO, Theme, unbroken
from widgets.info import STACK, Dataflow, End, Flow, OpBox

_PHASES = tuple(Phase)
#: Width of the phase mark at the left of a box.
_BAND = 4
#: Smallest readable share of the natural size; in a cell too narrow for it, the graph scrolls.
_SMALLEST = 0.75


def draw(info: Dataflow, theme: Theme) -> Drawing:
    """Draw the graph."""
    root = Xml.Element("div", {"class": f"stowage-dataflow{' auto' if theme is AUTO else ''}", "style": colours(theme)})
    root.set("role", "figure")
    root.set("aria-label", printable(info.summary))
    _add(root, "style").text = dataflow_style(theme)
    title = _add(root, "div", "title", "Dataflow")
    _add(title, "span", text=" · ".join(filter(None, (info.name, info.module, info.kind))))
    _add(root, "div", "summary", unbroken(info.summary))
    legend = _add(root, "div", "legend")
    for phase in info.phases if len(info.phases) > 1 else ():
        _add(_add(legend, "span"), "i", style=f"background:var(--phase{_PHASES.index(phase)})").tail = phase.value
    for group in info.groups:
        entry = _add(_add(legend, "span"), "i", "edge", style=f"background:var(--kind{STACK.index(group)})")
        entry.tail = group.value
    _add(root, "div", "graph").append(_picture(info))
    return Drawing(Xml.tostring(root, encoding="unicode", short_empty_elements=False))


def _picture(info: Dataflow) -> Xml.Element:
    laid = lay_out(info)
    box = laid.get("viewBox", "").split()
    picture = Xml.Element("svg", viewBox=" ".join(box), width=box[2], height=box[3])
    picture.set("style", f"min-width:{_SMALLEST * float(box[2]):.0f}px")
    (graph,) = laid.findall(f"{SVG}g")
    moved = _add(picture, "g", transform=graph.get("transform", ""))
    flows = {(flow.source, flow.target): flow for flow in info.flows}
    for group in graph.findall(f"{SVG}g"):
        source, arrow, target = group.findtext(f"{SVG}title", "").partition("->")
        if arrow:
            _draw_flow(moved, group, flows[int(source), int(target)])
        else:
            _draw_node(moved, group, info.nodes[int(source)])
    return picture


def _draw_node(parent: Xml.Element, laid: Xml.Element, node: OpBox | End) -> None:
    group = _add(parent, "g", "op" if isinstance(node, OpBox) else "end")
    _add(group, "title", text=node.description)
    left, top, right, bottom = _bounds(laid)
    height = bottom - top
    if isinstance(node, OpBox):
        _add(group, "rect", **_at(left, top, right - left, height), rx="4")
        band = f"M{left + _BAND + 1:g} {top:g}h{3 - _BAND}a4 4 0 0 0-4 4v{height - 8:g}a4 4 0 0 0 4 4h{_BAND - 3}z"
        _add(group, "path", style=f"fill:var(--phase{_PHASES.index(node.phase)})", d=band)
    else:
        _add(group, "rect", **_at(left, top, right - left, height))
        mark = _at(left, top + 1, _BAND - 1, height - 2)
        _add(group, "rect", style=f"fill:var(--kind{STACK.index(node.group)})", **mark)
    _draw_texts(group, laid, _BAND / 2)


def _draw_flow(parent: Xml.Element, laid: Xml.Element, flow: Flow) -> None:
    group = _add(parent, "g", "flow", style=f"--kind:var(--kind{STACK.index(flow.group)})")
    _add(group, "title", text=flow.description)
    line = laid.find(f"{SVG}path")
    if line is not None:
        _add(group, "path", d=line.get("d", ""), **{"stroke-width": line.get("stroke-width", "1")})
    head = laid.find(f"{SVG}polygon")
    if head is not None:
        _add(group, "polygon", points=head.get("points", ""))
    _draw_texts(group, laid, 0)


def _draw_texts(parent: Xml.Element, laid: Xml.Element, shift: float) -> None:
    """Draw the lines of a label; the last of several is in a lighter ink."""
    for number, line in enumerate(laid.findall(f"{SVG}text")):
        text = _add(parent, "text", "second" if number else "", (line.text or "").strip())
        text.set("x", f"{float(line.get('x', 0)) + shift:g}")
        text.set("y", line.get("y", ""))


def _bounds(laid: Xml.Element) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a box."""
    (outline,) = laid.findall(f"{SVG}polygon")
    xs, ys = zip(*(map(float, point.split(",")) for point in outline.get("points", "").split()), strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _at(left: float, top: float, width: float, height: float) -> dict[str, str]:
    return {"x": f"{left:g}", "y": f"{top:g}", "width": f"{width:g}", "height": f"{height:g}"}


def _add(parent: Xml.Element, tag: str, kind: str = "", text: str | None = None, **attributes: str) -> Xml.Element:
    element = Xml.SubElement(parent, tag, {"class": kind} if kind else {}, **attributes)
    element.text = text and printable(text)
    return element
