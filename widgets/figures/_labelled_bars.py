"""Horizontal bars of bytes with a name on the left and an amount on the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.units import byte_unit, bytes_label
from widgets.figures.frame import SQUARE, add_key, framed, plotly, tag, value_axis
from widgets.figures.theme import Theme, escape

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_ROW, _FOOT, _THICK, _LETTER = 24, 34, 0.62, 6.4
#: Length of the axis relative to the longest bar, so that its amount fits.
_ROOM = 1.28


@dataclass(frozen=True, slots=True)
class LabelledBar:
    """One bar.

    Args:
        label: its name.
        bytes: its length.
        text: the amount.
        hover: hover text, as markup.
        part: how many of the bytes are drawn in another colour, at the left.
    """

    label: str
    bytes: float
    text: str
    hover: str
    part: float = 0.0


def draw_bars(
    theme: Theme, title: str, name: str, summary: str, bars: Sequence[LabelledBar], colour: str,
    part: tuple[str, str] | None = None, limit: int | None = None,
) -> Figure:  # fmt: skip
    """Draw a plot of bars.

    Args:
        theme: its palette.
        title, name, summary: as in `framed`.
        bars: from top to bottom.
        colour: of the bars.
        part: the name and the colour of the left part of the bars.
        limit: bytes of a line to draw.
    """
    figure = framed(theme, title, name, summary, _ROW * max(len(bars), 1) + _FOOT)
    longest = max([bar.bytes for bar in bars], default=0.0)
    shown = limit is not None and limit <= 2.5 * longest
    end = max(_ROOM * longest, 1.1 * (limit or 0) if shown else 0.0, 1.0)
    unit, rows = byte_unit(end), [*range(len(bars))]
    left = 20 + round(_LETTER * max((len(bar.label) for bar in bars), default=0))
    figure.layout.annotations[0].xshift = 10 - left
    figure.update_layout(
        margin={"l": left}, barmode="overlay",
        xaxis=value_axis(theme, range=[0, end / unit.size], ticksuffix=f" {unit.name}", nticks=6, fixedrange=True),
        yaxis=value_axis(
            theme, range=[len(bars) - 0.5, -0.5], tickvals=rows, ticktext=[escape(bar.label) for bar in bars],
            showgrid=False, fixedrange=True, tickfont={"size": 12, "color": theme.ink},
        ),
    )  # fmt: skip
    for each, fill in ([bar.bytes for bar in bars], colour), ([bar.part for bar in bars], part and part[1]):
        if fill is not None:
            figure.add_trace(
                plotly().Bar(
                    orientation="h", y=rows, x=[size / unit.size for size in each], width=_THICK,
                    marker={"color": fill, "line": {"width": 0}}, hovertext=[bar.hover for bar in bars],
                    hoverinfo="text",
                )
            )  # fmt: skip
    for row, bar in enumerate(bars):
        figure.add_annotation(
            tag(f"<b>{bar.text}</b>", theme.ink, x=bar.bytes / unit.size, y=row, xanchor="left", xshift=4)
        )
    if part is not None:
        add_key(figure, theme, [(part[0], part[1], SQUARE), ("at the peak", colour, SQUARE)])
    if limit is not None:
        _draw_limit(figure, theme, limit, limit / unit.size if shown else None)
    return figure


def _draw_limit(figure: Figure, theme: Theme, limit: int, place: float | None) -> None:
    """A line at the limit with its tag; only the tag if it is far beyond the bars."""
    text, where = f"limit {bytes_label(limit)}", {"xref": "x", "x": place, "xanchor": "right"}
    if place is None:
        text, where = f"{text}, far beyond", {"xref": "paper", "x": 1, "xanchor": "right"}
    else:
        figure.add_shape(
            type="line", xref="x", x0=place, x1=place, yref="y domain", y0=0, y1=1,
            line={"color": theme.limit, "width": 1.5},
        )  # fmt: skip
    figure.add_annotation(
        tag(text, theme.on_limit, theme.limit, yref="y domain", y=1, yanchor="bottom", yshift=2, **where)
    )
