"""The model as nested boxes laid out by Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

from widgets.figures._swap_graph import draw_host
from widgets.figures.frame import SQUARE, TIMES
from widgets.figures.theme import Theme, escape, mixed, shorten, wrapped
from widgets.info.groups import STACK
from widgets.info.module_graph import Box, ModuleGraph
from widgets.info.units import bytes_text

if TYPE_CHECKING:
    from graphviz import Digraph

_FONT = "Helvetica,Arial,sans-serif"
#: Width of a box in points, and letters of a name and class that fit beside an amount.
_WIDTH, _LETTERS = 220, 28
_LINE_LENGTH = 76
_BREAK = '<BR ALIGN="LEFT"/>'


def draw(info: ModuleGraph, theme: Theme) -> Digraph:
    """Draw the boxes."""
    from graphviz import Digraph
    from graphviz import escape as literal

    head = [f'<B>Modules</B>  <FONT COLOR="{theme.third}">{escape(shorten(info.name, 60))}</FONT>']
    head += [_small(escape(line), theme.second) for line in wrapped(info.summary, _LINE_LENGTH)]
    entries = [f'<FONT COLOR="{theme.kinds[group]}">{SQUARE}</FONT> {group.value}' for group in info.groups]
    head.append(_small("   ".join(entries), theme.second))
    graph = Digraph(
        "modules",
        graph_attr={
            "bgcolor": theme.paper, "fontname": _FONT, "fontsize": "12", "fontcolor": theme.ink, "labelloc": "t",
            "labeljust": "l", "ranksep": "0.19", "nodesep": "0.3", "pad": "0.15", "tooltip": literal(info.name),
            "label": f"<{''.join(line + _BREAK for line in head)}>",
        },
        node_attr={
            "shape": "box", "style": "filled", "fillcolor": theme.paper, "color": theme.line, "fontname": _FONT,
            "fontsize": "10", "fontcolor": theme.ink, "margin": "0.07,0.03", "height": "0",
        },
        edge_attr={"color": theme.third, "arrowsize": "0.55", "penwidth": "0.9"},
    )  # fmt: skip
    _fill(graph, info, theme, -1, 0)
    for edge in info.edges:
        told = {"tooltip": literal(f"{bytes_text(edge.bytes)} from {info.boxes[edge.source].label}")}
        if edge.back:  # recurrence: drawn, but not what the layout follows
            told |= {"style": "dashed", "constraint": "false"}
        graph.edge(f"b{edge.source}", f"b{edge.target}", **told)
    if info.swaps:
        draw_host(graph, info, theme)
    return graph


def _small(markup: str, colour: str) -> str:
    return f'<FONT POINT-SIZE="10" COLOR="{colour}">{markup}</FONT>'


def _fill(graph: Digraph, info: ModuleGraph, theme: Theme, parent: int, depth: int) -> None:
    from graphviz import escape as literal

    for number, box in enumerate(info.boxes):
        if box.parent != parent:
            continue
        if not box.opened:
            graph.node(f"b{number}", label=_label(box, theme, info.largest_bytes), tooltip=literal(box.description))
            continue
        with graph.subgraph(name=f"cluster{number}") as inside:
            inside.attr(
                label=f"<{_name(box, theme)}{_BREAK}{bytes_text(box.total_bytes)}{_BREAK}>", fontsize="10", margin="7",
                style="filled", color=theme.line, tooltip=literal(box.description),
                fillcolor=mixed(theme.paper, theme.third, 0.06 + 0.05 * depth),
            )  # fmt: skip
            _fill(inside, info, theme, number, depth + 1)


def _label(box: Box, theme: Theme, largest: int) -> str:
    widths = [(round(_WIDTH * box.bytes.get(group, 0) / max(largest, 1)), theme.kinds[group]) for group in STACK]
    # The bar is as wide as the box, its empty part included: Graphviz would stretch anything narrower.
    cells = [f'<TD WIDTH="{width}" HEIGHT="5" BGCOLOR="{fill}"></TD>' for width, fill in widths if width]
    cells.append(f'<TD WIDTH="{max(_WIDTH - sum(width for width, _ in widths), 1)}" HEIGHT="5"></TD>')
    bar = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0"><TR>{"".join(cells)}</TR></TABLE>'
    return (
        '<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0">'
        f'<TR><TD ALIGN="LEFT">{_name(box, theme)}</TD><TD ALIGN="RIGHT">{bytes_text(box.total_bytes)}</TD></TR>'
        f'<TR><TD COLSPAN="2" HEIGHT="7">{bar}</TD></TR></TABLE>>'
    )


def _name(box: Box, theme: Theme) -> str:
    label = shorten(box.label, _LETTERS)
    kind = shorten(box.kind, max(_LETTERS - len(label), 8))
    name = f"<B>{escape(label)}</B>" if box.paths else f"<I>{escape(label)}</I>"
    times = f' <FONT COLOR="{theme.second}">{TIMES}{box.count}</FONT>' if box.count > 1 else ""
    return name + times + (f'  <FONT COLOR="{theme.third}">{escape(kind)}</FONT>' if kind else "")
