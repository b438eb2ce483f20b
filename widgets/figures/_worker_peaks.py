"""Memory of each worker, as horizontal bars beside what is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.units import bytes_label
from widgets.figures._labelled_bars import LabelledBar, draw_bars
from widgets.figures.theme import Theme, escape
from widgets.info import Group, WorkerPeaks, WorkerRow

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

#: Most numbers of workers in a hover label.
_MOST = 16


def draw(info: WorkerPeaks, theme: Theme) -> Figure:
    """Draw a bar per worker, with what is there when a step starts inside of it."""
    bars = [
        LabelledBar(
            row.label, row.peak_bytes, bytes_label(row.peak_bytes),
            f"<b>{escape(row.label)}</b>{_numbers(row)}<br>{bytes_label(row.peak_bytes)} at the peak<br>"
            f"{bytes_label(row.persistent_bytes)} when a step starts",
            row.persistent_bytes,
        )
        for row in info.rows
    ]  # fmt: skip
    return draw_bars(
        theme, "Memory per worker", info.name, info.summary, bars, theme.kinds[Group.ACTIVATION],
        part=("when a step starts", theme.kinds[Group.PARAMETER]), limit=info.limit_bytes,
    )  # fmt: skip


def _numbers(row: WorkerRow) -> str:
    """The numbers of several workers, as far as they fit."""
    if len(row.workers) == 1:
        return ""
    return f": {', '.join(map(str, row.workers[:_MOST]))}{', …' if len(row.workers) > _MOST else ''}"
