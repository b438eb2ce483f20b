"""The Graphviz layout of a dataflow graph, as SVG without colours."""

from __future__ import annotations

import re
import subprocess
from time import monotonic
from typing import Any
from xml.etree import ElementTree as Xml

from planner.errors import StowageError
from planner.units import bytes_label, several
from widgets.figures.theme import shorten
from widgets.info import Dataflow, End, OpBox

SVG = "{http://www.w3.org/2000/svg}"
#: Most letters of a line in the box of an op, and in an end or beside an edge.
_LONG, _SHORT = 24, 18
_GRAPH = {"nodesep": "0.1", "ranksep": "0.22", "pad": "0.05", "outputorder": "edgesfirst"}
_OP = {
    "shape": "box",
    "fontname": "Helvetica",
    "fontsize": "12",
    "margin": "0.15,0.05",
    "height": "0.3",
    "width": "0.6",
}
_END = {
    "shape": "box",
    "fontname": "Helvetica",
    "fontsize": "11",
    "margin": "0.1,0.02",
    "height": "0.2",
    "width": "0.2",
}
_EDGE = {"fontname": "Helvetica", "fontsize": "11", "arrowsize": "0.6"}
#: Pixels of the widest and of the thinnest edge.
_WIDEST, _THINNEST = 5.0, 0.8
#: Seconds within which a picture is laid out; thousands of ops would take many minutes.
_SECONDS = 30.0
#: Usable pixels in a notebook cell 700 pixels wide.
_ROOM = 676
#: Characters that XML does not allow in a text.
_UNSHOWN = re.compile("[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def lay_out(info: Dataflow) -> Xml.Element:
    """Lay out the picture from top to bottom or, if narrower, from left to right; nodes have their numbers as titles.

    If both are wider than a narrow cell, at most four or two ops share a row, in captured order from row to row. If no
    picture fits, the narrowest is used.

    Raises:
        StowageError: graphviz is not installed, or laying out takes too long.
    """
    pictures: list[Xml.Element] = []
    until = monotonic() + _SECONDS
    for direction, in_row in (("TB", 0), ("LR", 0), ("TB", 4), ("TB", 2)):
        try:
            pictures.append(Xml.fromstring(_pipe(info, direction, in_row, max(0.0, until - monotonic()))))
        except subprocess.TimeoutExpired as error:
            if pictures:
                break
            raise StowageError(
                f"dot has not laid out {several(len(info.ops), 'op')} within {_SECONDS:.0f} s; "
                "choose a module with fewer ops"
            ) from error
        if width_of(pictures[-1]) <= _ROOM:
            break
    return min(pictures, key=width_of)


def printable(text: str) -> str:
    """Text with unprintable characters replaced; line breaks are kept."""
    return _UNSHOWN.sub("\N{REPLACEMENT CHARACTER}", text)


def width_of(picture: Xml.Element) -> float:
    """Width of a picture at its natural size, in pixels."""
    return float(picture.get("viewBox", "").split()[2])


def _pipe(info: Dataflow, direction: str, in_row: int, seconds: float) -> str:
    package = _graphviz()
    dot = package.Digraph(graph_attr=_GRAPH | {"rankdir": direction}, edge_attr=_EDGE)
    for number, node in enumerate(info.nodes):
        dot.node(str(number), _label(_node_lines(node)), **(_OP if isinstance(node, OpBox) else _END))
    largest = max((flow.bytes for flow in info.flows), default=0)
    said = set()  # a tensor that several ops read is labelled once
    for flow in info.flows:
        lines: tuple[str, ...] = ()
        if max(flow.source, flow.target) < len(info.ops) and (flow.source, flow.storages) not in said:
            said.add((flow.source, flow.storages))
            lines = tuple(f" {line} " for line in (shorten(flow.label, _SHORT), _amount(flow.bytes)) if line)
        width = max(_THINNEST, _WIDEST * flow.bytes / max(largest, 1))
        dot.edge(str(flow.source), str(flow.target), _label(lines), penwidth=f"{width:.2f}")
    for number in range(len(info.ops) - in_row if in_row else 0):
        dot.edge(str(number), str(number + in_row), style="invis", weight="0")
    try:  # not by the package, which sets no limit of time
        done = subprocess.run(
            ["dot", "-Tsvg"], input=dot.source, capture_output=True, encoding="utf-8", timeout=seconds, check=True
        )
    except FileNotFoundError as error:
        raise StowageError(
            "dataflow graphs need the program dot, which is missing: install graphviz "
            "(apt install graphviz, brew install graphviz, conda install graphviz)"
        ) from error
    except subprocess.CalledProcessError as error:
        reason = " ".join(error.stderr.split()).rstrip(".;")
        raise StowageError(f"dot cannot draw {info.name}: {reason}; update graphviz, or choose a module") from error
    text: str = done.stdout
    return text


def _amount(size: int) -> str:
    """Bytes in short form: `512 KiB`, `1.50 MiB`."""
    return bytes_label(size).replace(".00 ", " ")


def _node_lines(node: OpBox | End) -> tuple[str, ...]:
    if isinstance(node, End):
        return shorten(node.label, _SHORT), _amount(node.bytes)
    return tuple(shorten(line, _LONG) for line in (node.label, *node.details))


def _label(lines: tuple[str, ...]) -> str:
    """Lines escaped for Graphviz, so that backslashes, entities and tags are shown literally."""
    package = _graphviz()
    shown = (printable(line).replace("\n", " ").replace("&", "&amp;") for line in lines if line)
    escaped = map(package.escape, shown)
    text: str = package.nohtml("\\n".join(escaped))
    return text


def _graphviz() -> Any:
    try:
        import graphviz
    except ImportError as error:
        raise StowageError(
            "dataflow graphs need the package graphviz, which is missing: run `pip install graphviz`"
        ) from error
    return graphviz
