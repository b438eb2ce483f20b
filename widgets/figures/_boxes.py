"""Boxes of address and time as bars of one colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from widgets.figures._rectangle_merging import Rectangles
from widgets.figures.frame import plotly

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def draw_boxes(
    figure: Figure, boxes: Rectangles, name: str, colour: str, edge: str, hovers: Sequence[str],
    pixel: tuple[float, float], scale: float, unit: float,
) -> None:  # fmt: skip
    """Draw rectangles as one trace.

    Args:
        figure: where.
        boxes: in seconds or slots, and bytes.
        name: of the trace.
        colour: of the boxes.
        edge: of the hairline between boxes that are large enough for one.
        hovers: text of each box, empty for none.
        pixel: width and height of a pixel in the units of the boxes.
        scale, unit: factor and divisor for positions on the axes.
    """
    wide, tall = (boxes.right - boxes.left) / pixel[0], (boxes.high - boxes.low) / pixel[1]
    figure.add_trace(
        plotly().Bar(
            x=(boxes.left + boxes.right) / 2 * scale,
            width=(boxes.right - boxes.left) * scale,
            base=boxes.low / unit,
            y=(boxes.high - boxes.low) / unit,
            name=name,
            marker={"color": colour, "line": {"color": edge, "width": np.where((wide > 4) & (tall > 4), 0.6, 0.0)}},
            **({"hovertext": hovers, "hoverinfo": "text"} if hovers else {"hoverinfo": "skip"}),
        )
    )
