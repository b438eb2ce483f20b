"""Who holds the peak, as rows of a name, a bar and an amount."""

from __future__ import annotations

from typing import TYPE_CHECKING

from widgets.figures.frame import plotly, tag, value_axis
from widgets.figures.theme import Theme, escape
from widgets.info.groups import Group
from widgets.info.holders import Holder
from widgets.info.memory_by_kind import MemoryByKind
from widgets.info.units import bytes_text, count_text, seconds_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_ROW, _HEAD, _MOST_ROWS = 21, 70, 8
_NAME_LETTERS = 40
#: Where the bars begin and end, as parts of the plot's width.
_BARS = (0.40, 0.87)


def holders_height(holders: tuple[Holder, ...]) -> int:
    """Height in pixels that the rows take, with their title."""
    return _HEAD + _ROW * min(len(holders), _MOST_ROWS) if holders else 0


def draw_holders(figure: Figure, info: MemoryByKind, theme: Theme, ceiling: float, height: int) -> None:
    """Add the rows below `ceiling`, a part of the plot's height that is `height` pixels."""
    holders = info.holders
    rows = holders if len(holders) <= _MOST_ROWS else holders[: _MOST_ROWS - 1]
    rest = holders[len(rows) :]
    lines = len(rows) + bool(rest)
    roof = ceiling * _ROW * lines / height
    figure.add_trace(
        plotly().Bar(
            x=[row.bytes for row in rows], y=list(range(len(rows))), orientation="h", width=0.38, xaxis="x2", yaxis="y2",
            marker={"color": [theme.kinds[row.group] for row in rows], "line": {"width": 0}}, showlegend=False,
            hovertext=[_hover(row) for row in rows], hoverinfo="text",
        )
    )  # fmt: skip
    figure.update_layout(
        xaxis2=value_axis(
            theme, domain=_BARS, anchor="y2", range=[0, max(row.bytes for row in rows)], showgrid=False,
            showticklabels=False, fixedrange=True,
        ),
        yaxis2=value_axis(
            theme, domain=[0, roof], anchor="x2", range=[lines - 0.5, -0.5], showgrid=False, showticklabels=False,
            fixedrange=True,
        ),
    )  # fmt: skip
    when = f"at {seconds_text(info.peak_at)}" if info.axis == "seconds" else f"in slot {info.peak_at:.0f}"
    note = f'  <span style="color:{theme.third}">{bytes_text(info.peak_bytes)} {when}</span>'
    margin = figure.layout.margin.l - 12
    left = {"xref": "paper", "x": 0, "xanchor": "left", "xshift": -margin, "align": "left"}
    right = {"xref": "paper", "x": 1, "xanchor": "right"}
    labels = [
        tag(f"<b>Who holds the peak</b>{note}", theme.ink, **left, yref="paper", y=roof, yanchor="bottom", yshift=2)
        | {"font": {"size": 12, "color": theme.ink}}
    ]
    for place, row in enumerate(rows):
        square = f'<span style="color:{theme.kinds[row.group]}">\N{BLACK SQUARE}</span> '
        what = f'<span style="color:{theme.second}">{row.group.value}, {row.storages}</span>'
        labels.append(tag(f"{square} {escape(_name(row))} {what}", theme.ink, **left, yref="y2", y=place))
        labels.append(tag(bytes_text(row.bytes), theme.ink, **right, yref="y2", y=place))
    if rest:
        where = {"yref": "y2", "y": len(rows)}
        labels.append(tag(count_text(len(rest), "smaller group"), theme.third, **left, **where))
        labels.append(tag(bytes_text(sum(row.bytes for row in rest)), theme.third, **right, **where))
    for label in labels:
        figure.add_annotation(label)


def _name(row: Holder) -> str:
    if not row.module:
        return "batch" if row.group is Group.INPUT else "outside the modules"
    if len(row.module) <= _NAME_LETTERS:
        return row.module
    return row.module[: _NAME_LETTERS // 2] + "…" + row.module[-_NAME_LETTERS // 2 :]


def _hover(row: Holder) -> str:
    what = f"{count_text(row.storages, 'storage')}, {row.group.value}"
    return f"<b>{escape(row.module or _name(row))}</b><br>{what}<br>{count_text(row.bytes, 'byte')}"
