"""Speeds as horizontal bars, model by model, as shares of the ideal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.units import format_percent
from widgets.figures.frame import framed, plotly, tag, value_axis
from widgets.figures.theme import Theme, escape
from widgets.info import CompareSpeeds, Speed

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_ROW, _FOOT, _THICK, _LETTER = 24, 34, 0.62, 6.4
#: Length of the axis in percent, so that what is said beside the longest bar fits.
_END = 150
_TICKS = (0, 25, 50, 75, 100)
_DASH = "\N{EN DASH}"


def draw(info: CompareSpeeds, theme: Theme) -> Figure:
    """Draw a bar per way, below the name of its model."""
    rows: list[str | Speed] = []
    for name, speeds in info.models.items():
        rows += [name, *speeds]
    ideal = {id(speeds[0]) for speeds in info.models.values()}
    figure = framed(theme, "Share of the ideal speed", "", info.summary, _ROW * len(rows) + _FOOT)
    left = 20 + round(_LETTER * max(len(row if isinstance(row, str) else row.way) for row in rows))
    figure.layout.annotations[0].xshift = 10 - left
    labels = [f"<b>{escape(row)}</b>" if isinstance(row, str) else escape(row.way) for row in rows]
    figure.update_layout(
        margin={"l": left},
        xaxis=value_axis(
            theme, range=[0, _END], tickvals=_TICKS, ticktext=[f"{tick} %" for tick in _TICKS], fixedrange=True
        ),
        yaxis=value_axis(
            theme, range=[len(rows) - 0.5, -0.5], tickvals=[*range(len(rows))], ticktext=labels,
            showgrid=False, fixedrange=True, tickfont={"size": 12, "color": theme.ink},
        ),
    )  # fmt: skip
    shares = [0.0 if isinstance(row, str) else 100 * row.share for row in rows]
    figure.add_trace(
        plotly().Bar(
            orientation="h", y=[*range(len(rows))], x=shares, width=_THICK,
            marker={"color": [theme.line if id(row) in ideal else theme.measured for row in rows],
                    "line": {"width": 0}},
            hovertext=["" if isinstance(row, str) else _hover(row) for row in rows], hoverinfo="text",
        )
    )  # fmt: skip
    for place, row in enumerate(rows):
        if not isinstance(row, str):
            text = f'<b>{_amount(row)}</b>  <span style="color:{theme.second}">{escape(row.note)}</span>'
            figure.add_annotation(tag(text, theme.ink, x=shares[place], y=place, xanchor="left", xshift=4))
    return figure


def _amount(speed: Speed) -> str:
    return format_percent(speed.share) if speed.samples else _DASH


def _hover(speed: Speed) -> str:
    reached = f"{speed.samples:.3g} samples/s" if speed.samples else "does not fit"
    return f"<b>{escape(speed.way)}</b><br>{reached}<br>{escape(speed.note)}"
