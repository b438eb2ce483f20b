"""The holders of the peak as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from widgets.figures._bar_rows import draw_rows, rows_height
from widgets.figures._holders_table import holders_table
from widgets.figures.frame import framed, value_axis
from widgets.figures.theme import Theme
from widgets.info import PeakHolders

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

#: Pixels above the rows that other plots have for a key.
_NO_KEY = 36


def draw(info: PeakHolders, theme: Theme) -> Figure:
    """Draw a row for each of the largest holders."""
    table = holders_table(info, theme)
    height = max(rows_height(table) - _NO_KEY, 1)
    figure = framed(theme, f"Holders by {info.by}", info.name, info.summary, height)
    unused = value_axis(theme, visible=False, domain=[0, 1])
    figure.update_layout(xaxis=unused, yaxis=unused)
    if table.rows:
        draw_rows(figure, theme, table, 2, 1 + _NO_KEY / height, 1 / height)
    return figure
