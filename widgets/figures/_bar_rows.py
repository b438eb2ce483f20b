"""Rows of a name, a bar and an amount: the small tables under a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from widgets.figures.frame import plotly, tag, value_axis
from widgets.figures.theme import Theme

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_ROW, _TALL_ROW, _HEAD = 21, 31, 60
#: Start and end of the bars as shares of the plot's width; names and amounts fit beside them in a narrow cell.
_BARS = (0.42, 0.76)


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Args:
        label: its name, as markup.
        value: length of its bar; 0 for no bar.
        text: the amount, as markup.
        colour: colour of the bar.
        hover: hover text, as markup.
        hatched: whether the bar is hatched.
    """

    label: str
    value: float
    text: str
    colour: str
    hover: str = ""
    hatched: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows below a title.

    Args:
        title: title, as markup.
        rows: from top to bottom.
        longest: value of a bar that takes the full width.
    """

    title: str
    rows: Sequence[Row]
    longest: float


def rows_height(table: Table) -> int:
    """Height in pixels of a table with its title and margins."""
    return _HEAD + _row_height(table) * len(table.rows) if table.rows else 0


def _row_height(table: Table) -> int:
    return _TALL_ROW if any("<br>" in row.label for row in table.rows) else _ROW


def draw_rows(figure: Figure, theme: Theme, table: Table, number: int, ceiling: float, per_pixel: float) -> None:
    """Add a table.

    Args:
        figure: the figure to add it to.
        theme: its palette.
        table: the table.
        number: number of the pair of axes of the table.
        ceiling: top of the table, as a share of the plot's height.
        per_pixel: one pixel as a share of the plot's height.
    """
    rows, x, y = table.rows, f"x{number}", f"y{number}"
    roof = ceiling - _HEAD * per_pixel
    floor = roof - _row_height(table) * len(rows) * per_pixel
    figure.add_trace(
        plotly().Bar(
            x=[row.value for row in rows], y=list(range(len(rows))), orientation="h",
            width=8 / _row_height(table), xaxis=x, yaxis=y,
            marker={
                "color": [row.colour for row in rows], "line": {"width": 0},
                "pattern": {
                    "shape": ["/" if row.hatched else "" for row in rows], "size": 5, "solidity": 0.4,
                    "fgcolor": [row.colour for row in rows], "bgcolor": theme.paper,
                },
            },
            hovertext=[row.hover for row in rows], hoverinfo="text", showlegend=False,
        )
    )  # fmt: skip
    fixed = {"showgrid": False, "showticklabels": False, "fixedrange": True}
    figure.update_layout({
        f"xaxis{number}": value_axis(theme, domain=_BARS, anchor=y, range=[0, table.longest or 1.0], **fixed),
        f"yaxis{number}": value_axis(
            theme, domain=[max(floor, 0), roof], anchor=x, range=[len(rows) - 0.5, -0.5], **fixed
        ),
    })  # fmt: skip
    margin = 10 - figure.layout.margin.l
    left: dict[str, Any] = {"xref": "paper", "x": 0, "xanchor": "left", "xshift": margin, "align": "left"}
    right: dict[str, Any] = {"xref": "paper", "x": 1, "xanchor": "right"}
    head = tag(table.title, theme.ink, **left, yref="paper", y=roof, yanchor="bottom", yshift=2)
    labels = [head | {"font": {"size": 12, "color": theme.ink}}]
    for place, row in enumerate(rows):
        labels.append(tag(row.label, theme.ink, **left, yref=y, y=place))
        labels.append(tag(row.text, theme.ink if row.value else theme.third, **right, yref=y, y=place))
    for label in labels:
        figure.add_annotation(label)
