"""Bytes that workers exchange at each level, as horizontal bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.units import bytes_label, format_percent
from widgets.figures._labelled_bars import LabelledBar, draw_bars
from widgets.figures.theme import Theme
from widgets.info import LevelBytes

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def draw(info: LevelBytes, theme: Theme) -> Figure:
    """Draw a bar per level, the outermost first."""
    bars = [
        LabelledBar(
            f"level {level + 1}", size, bytes_label(size),
            f"<b>level {level + 1}</b>, {parts} ways<br>{bytes_label(size)}, "
            f"{format_percent(size / info.total if info.total else 0.0)} of {bytes_label(info.total)}",
        )
        for level, (parts, size) in enumerate(zip(info.mesh, info.bytes, strict=True))
    ]  # fmt: skip
    return draw_bars(theme, "Bytes per level", info.name, info.summary, bars, theme.measured)
