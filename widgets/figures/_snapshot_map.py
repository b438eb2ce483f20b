"""Memory snapshot: every block that was in use as a box of address and time, over the memory that was reserved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.units import byte_unit, bytes_label, exact_bytes_label, format_seconds, several
from widgets.figures._boxes import draw_boxes
from widgets.figures._rectangle_merging import Rectangles, merged
from widgets.figures.frame import SQUARE, add_key, framed, time_axis, unit_label, value_axis
from widgets.figures.theme import Theme, escape
from widgets.info import HELD, Group, Held, SnapshotMap

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_HEIGHT, _FOOT = 400, 34
#: Pixels of the plot in a narrow notebook.
_NARROW = 480
#: Most rectangles of one colour that a browser draws fast.
_MOST_BOXES = 5000
_COLOURS = {Held.THROUGHOUT: Group.PARAMETER, Held.BY_LINE: Group.ACTIVATION, Held.UNKNOWN: Group.WORKSPACE}


def draw(info: SnapshotMap, theme: Theme) -> Figure:
    """Draw what is reserved, and over it the blocks, one trace per colour."""
    figure = framed(theme, "Addresses over time", info.name, info.summary, _HEIGHT + _FOOT)
    event_number = {"title": {"text": "event number", "font": {"size": 11, "color": theme.third}, "standoff": 6}}
    scale, x_axis = time_axis(theme, info.axis, info.end, **(event_number if info.axis == "slots" else {}))
    top = 1.04 * max(info.span_bytes, 1)
    unit = byte_unit(top)
    figure.update_layout(
        xaxis=x_axis | {"showgrid": False},
        yaxis=value_axis(theme, range=[0, top / unit.size], nticks=9, minallowed=0, maxallowed=top / unit.size),
        barmode="overlay",
    )
    pixel = (info.end / _NARROW, top / _HEIGHT)
    start, stop, offset, size = info.reserved.T
    behind = Rectangles(start, stop, offset, offset + size, np.arange(len(start)))
    draw_boxes(
        figure, merged(behind, pixel, _MOST_BOXES), "reserved", theme.grid, theme.line, (), pixel, scale, unit.size
    )
    entries = [("reserved, not in use", theme.line, SQUARE)]
    for number, held in enumerate(HELD):
        ours = np.flatnonzero(info.held == number)
        if len(ours):
            low = info.offset[ours].astype(np.float64)
            boxes = Rectangles(info.start[ours], info.stop[ours], low, low + info.bytes[ours], ours)
            boxes, colour = merged(boxes, pixel, _MOST_BOXES), theme.kinds[_COLOURS[held]]
            hovers = [_hover(info, box) for box in boxes.source.tolist()]
            draw_boxes(figure, boxes, held.value, colour, theme.paper, hovers, pixel, scale, unit.size)
            entries.append((held.value, colour, SQUARE))
    figure.add_annotation(unit_label(theme, unit.name))
    add_key(figure, theme, entries)
    _mark_peak(figure, info, theme, scale)
    return figure


def _mark_peak(figure: Figure, info: SnapshotMap, theme: Theme, scale: float) -> None:
    at, right = info.peak_at * scale, info.peak_at > 0.6 * info.end
    figure.add_shape(
        type="line", xref="x", x0=at, x1=at, yref="y domain", y0=0, y1=1, line={"color": theme.limit, "width": 1.5}
    )
    figure.add_annotation(
        text=f"peak {bytes_label(info.peak_bytes)} reserved", showarrow=False, bgcolor=theme.limit, borderpad=3,
        font={"size": 11, "color": theme.on_limit}, xref="x", x=at, xanchor="right" if right else "left",
        yref="y domain", y=1, yanchor="top",
    )  # fmt: skip


def _hover(info: SnapshotMap, box: int) -> str:
    if box < 0:
        return "blocks too small to be drawn apart"
    size, offset = int(info.bytes[box]), int(info.offset[box])
    begin, end = (
        format_seconds(at, 5) if info.axis == "seconds" else f"event {at:,.0f}"
        for at in (float(info.start[box]), float(info.stop[box]))
    )
    return "<br>".join(
        (
            f"<b>{escape(info.lines[box] or 'no line is known')}</b>",
            f"{exact_bytes_label(size)} ({several(size, 'byte')})",
            f"address {exact_bytes_label(offset)} to {exact_bytes_label(offset + size)}",
            f"{begin} to {end}",
        )
    )
