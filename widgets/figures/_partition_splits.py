"""Splits of a partition as a table: a row per group of equal tensors, a column per level."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.units import bytes_label, several
from widgets.figures.frame import SQUARE, TIMES, add_key, framed, plotly, tag, value_axis
from widgets.figures.theme import Theme, escape, mixed, shorten
from widgets.info import PartitionSplits, SplitRow

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_ROW, _HEAD, _FOOT = 22, 24, 8
#: Pixels of a letter, and most letters of a name; the left margin holds names and bytes.
_LETTER, _NAME = 6.2, 30
_AMOUNT = 70
#: Most levels whose cells have room for a word in a narrow notebook.
_WORDS = 6


def draw(info: PartitionSplits, theme: Theme) -> Figure:
    """Draw the table; the darker of two fills is what each worker has a copy of."""
    rows, levels = info.rows, len(info.mesh)
    height = _ROW * len(rows) + (_ROW if info.others[0] else 0) + _FOOT
    figure = framed(theme, "Splits", info.name, info.summary, height)
    names = [_name(row) for row in rows]
    left = 26 + round(_LETTER * max(map(len, names), default=8)) + _AMOUNT
    figure.layout.annotations[0].xshift = 10 - left
    bottom = len(rows) + (0.5 if info.others[0] else -0.5)
    figure.update_layout(
        margin={"l": left, "r": 12, "b": _FOOT},
        barmode="overlay", bargap=0,
        xaxis=value_axis(
            theme, range=[-0.5, max(levels, 1) - 0.5], side="top", tickvals=[*range(levels)],
            ticktext=[f"level {level + 1}, {parts} ways" if levels <= 3 else f"{level + 1}: {parts}"
                      for level, parts in enumerate(info.mesh)],
            showgrid=False, fixedrange=True, tickangle=0, ticklen=2,
        ),
        yaxis=value_axis(
            theme, range=[bottom, -0.5], showticklabels=False, showgrid=False, fixedrange=True
        ),
        uniformtext={"mode": "hide", "minsize": 10},
    )  # fmt: skip
    _draw_cells(figure, info, theme)
    for number, row in enumerate(rows):
        square = f'<span style="color:{theme.kinds[row.group]}">{SQUARE}</span> '
        figure.add_annotation(
            tag(f"{square}{escape(names[number])}", theme.ink, xref="paper", x=0, xanchor="left", xshift=10 - left,
                yref="y", y=number)
        )  # fmt: skip
        figure.add_annotation(
            tag(bytes_label(row.bytes), theme.second, xref="paper", x=0, xanchor="right", xshift=-8, yref="y", y=number)
        )
    if info.others[0]:
        text = f"{several(info.others[0], 'smaller tensor')}, {bytes_label(info.others[1])}"
        figure.add_annotation(
            tag(text, theme.third, xref="paper", x=0, xanchor="left", xshift=10 - left, yref="y", y=len(rows))
        )
    seen = dict.fromkeys(row.group for row in rows)
    add_key(figure, theme, [(group.value, theme.kinds[group], SQUARE) for group in seen])
    figure.update_annotations({"yshift": 3 + _HEAD, "xshift": 10 - left}, {"name": "key"})  # above the names of levels
    figure.layout.annotations[0].yshift += _HEAD
    figure.update_layout(height=figure.layout.height + _HEAD, margin={"t": figure.layout.margin.t + _HEAD})
    return figure


def _name(row: SplitRow) -> str:
    times = f" {TIMES}{len(row.tensors)}" if len(row.tensors) > 1 else ""
    return shorten(row.name, _NAME - len(times)) + times


def _draw_cells(figure: Figure, info: PartitionSplits, theme: Theme) -> None:
    cells = [(level, number, way) for number, row in enumerate(info.rows) for level, way in enumerate(row.ways)]
    if not cells:
        return
    fills = [_fill(info.rows[number], way, theme) for _, number, way in cells]
    short = len(info.mesh) > _WORDS
    figure.add_trace(
        plotly().Bar(
            x=[level for level, _, _ in cells], width=0.94, base=[number - 0.42 for _, number, _ in cells],
            y=[0.84] * len(cells), name="splits",
            text=[way.removeprefix("dim ") if short else way for _, _, way in cells],
            textposition="inside", insidetextanchor="middle", textangle=0,
            textfont={"size": 11, "color": [theme.third if way == "copies" else theme.ink for _, _, way in cells]},
            marker={"color": fills, "line": {"color": theme.line, "width": 1}},
            hovertext=[_hover(info, info.rows[number], level, way) for level, number, way in cells], hoverinfo="text",
        )
    )  # fmt: skip


def _fill(row: SplitRow, way: str, theme: Theme) -> str:
    """The colour of the tensor's kind, the stronger the later the dimension; paper for copies."""
    if not way.startswith("dim "):
        return theme.paper if way == "copies" else theme.sunken
    return mixed(theme.paper, theme.kinds[row.group], min(0.18 + 0.16 * int(way[4:]), 0.5))


def _hover(info: PartitionSplits, row: SplitRow, level: int, way: str) -> str:
    shape = f" {TIMES} ".join(map(str, row.shape)) or "one number"
    parts = info.mesh[level]
    words = {"copies": f"each of {parts} parts has a copy", "sums": f"{parts} partial sums"}
    return (
        f"<b>{escape(row.name)}</b><br>{several(len(row.tensors), 'tensor')} of {shape}, {bytes_label(row.bytes)}<br>"
        f"level {level + 1}: {words.get(way, f'dimension {way[4:]} is cut into {parts}')}"
    )
