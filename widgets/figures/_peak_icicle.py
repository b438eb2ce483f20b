"""The peak as nested boxes, each as wide as what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.units import bytes_label, format_percent
from widgets.figures.frame import SQUARE, add_key, framed, plotly
from widgets.figures.theme import Theme, escape
from widgets.info import STACK, PeakIcicle

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_ROW, _FOOT = 46, 12


def draw(info: PeakIcicle, theme: Theme) -> Figure:
    """Draw the boxes, the whole step on top; a click on one zooms to it."""
    depths: list[int] = []
    for box in info.boxes:
        depths.append(depths[box.parent] + 1 if box.parent >= 0 else 1)
    figure = framed(theme, f"Peak by {info.by}", info.name, info.summary, _ROW * max(depths) + _FOOT)
    figure.update_layout(margin={"l": 12, "r": 12, "b": _FOOT}, uniformtext={"mode": "hide", "minsize": 9})
    figure.layout.annotations[0].xshift = 0
    if not info.peak_bytes:
        return figure
    figure.add_trace(
        plotly().Icicle(
            ids=[str(number) for number in range(len(info.boxes))],
            parents=[str(box.parent) if box.parent >= 0 else "" for box in info.boxes],
            labels=[escape(box.label) for box in info.boxes],
            text=[bytes_label(box.bytes) for box in info.boxes],
            values=[box.bytes for box in info.boxes], branchvalues="total", sort=False,
            tiling={"orientation": "v", "pad": 1}, textinfo="label+text", pathbar={"visible": False},
            leaf={"opacity": 1},
            marker={
                "colors": [theme.sunken if box.group is None else theme.kinds[box.group] for box in info.boxes],
                "line": {"width": 1, "color": theme.line},
            },
            textfont={
                "size": 11,
                "color": [theme.ink if box.group is None else theme.on_kinds[box.group] for box in info.boxes],
            },
            hovertext=[
                f"<b>{escape(box.name)}</b><br>{bytes_label(box.bytes)}, "
                f"{format_percent(box.bytes / info.peak_bytes)} of the peak"
                for box in info.boxes
            ],
            hoverinfo="text",
        )
    )  # fmt: skip
    there = {box.group for box in info.boxes}
    add_key(figure, theme, [(group.value, theme.kinds[group], SQUARE) for group in STACK if group in there])
    return figure
