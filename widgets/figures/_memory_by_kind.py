"""Bytes over time, stacked by kind, with the budget; below it the holders of the peak."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from planner.units import Unit, byte_unit, bytes_label
from widgets.figures._bar_rows import draw_rows, rows_height
from widgets.figures._holders_table import holders_table
from widgets.figures._pixel_columns import columns
from widgets.figures.frame import SQUARE, add_budget, add_key, framed, plotly, tag, time_axis, unit_label, value_axis
from widgets.figures.theme import Theme
from widgets.info import Floats, MemoryByKind

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_STACK_HEIGHT, _FOOT = 300, 34
#: Pixels of a plot in a narrow notebook, of a letter and of a line, to decide whether a label fits.
_NARROW, _LETTER, _LINE = 300, 6.3, 15
#: Width of the labels of peak and budget in such a plot, as a share of its width.
_LABEL = 0.4


def draw(info: MemoryByKind, theme: Theme) -> Figure:
    """Draw the stack and the holders of its peak."""
    table = holders_table(info, theme)
    below = rows_height(table)
    floor = below / (_STACK_HEIGHT + below)
    figure = framed(theme, "Memory by kind", info.name, info.summary, _STACK_HEIGHT + below + _FOOT)
    scale, x_axis = time_axis(theme, info.axis, info.end)
    top, limit = _top(info)
    unit = byte_unit(top)
    figure.update_layout(
        xaxis={**x_axis, "anchor": "y", "hoverformat": ".4g"},
        yaxis=value_axis(theme, domain=[floor, 1], range=[0, top / unit.size], nticks=7, fixedrange=True),
        hovermode="x unified",
    )
    _draw_stack(figure, info, theme, scale, unit, top)
    _draw_need(figure, info, theme, scale, unit)
    _draw_peak_and_limit(figure, info, theme, scale, unit, limit)
    if table.rows:
        draw_rows(figure, theme, table, 2, floor, floor / below)
    return figure


def _top(info: MemoryByKind) -> tuple[float, bool]:
    """Upper end of the vertical axis, in bytes, and whether the budget is on it."""
    highest = max(info.peak_bytes, info.unswapped_peak_bytes, 1)
    shown = info.budget_bytes is not None and info.budget_bytes <= 2.5 * highest
    return 1.12 * max(highest, info.budget_bytes or 0 if shown else 0), shown


def _draw_stack(figure: Figure, info: MemoryByKind, theme: Theme, scale: float, unit: Unit, top: float) -> None:
    shown = columns(info.edges[:-1], info.total, info.end)
    x = np.append(info.edges[shown], info.end) * scale
    floor = np.zeros(len(shown))
    unlabelled: list[tuple[str, str, str]] = []
    for group, amounts in info.bytes.items():
        y = amounts[shown] / unit.size
        at = _room(group.value, x, floor, floor + y, top / unit.size, (info.budget_bytes or 0) / unit.size)
        figure.add_trace(
            plotly().Scatter(
                x=x, y=np.append(y, y[-1:]), name=group.value, stackgroup="memory", mode="none",
                fillcolor=theme.kinds[group],
                line={"shape": "hv", "width": 0}, hovertemplate=f"%{{y:.4f}} {unit.name}",
            )
        )  # fmt: skip
        if at is None:
            unlabelled.append((group.value, theme.kinds[group], SQUARE))
        else:
            figure.add_annotation(tag(group.value, theme.on_kinds[group], x=at[0], y=at[1]))
        floor = floor + y
    total = info.total[shown] / unit.size
    figure.add_trace(
        plotly().Scatter(
            x=x, y=np.append(total, total[-1:]), name="total", mode="lines",
            line={"shape": "hv", "width": 0.8, "color": theme.ink}, hovertemplate=f"<b>%{{y:.4f}} {unit.name}</b>",
        )
    )  # fmt: skip
    figure.add_annotation(unit_label(theme, unit.name))
    add_key(figure, theme, unlabelled)


def _room(text: str, x: Floats, low: Floats, high: Floats, top: float, limit: float) -> tuple[float, float] | None:
    """Where a label has the most room in its band, or None if it does not fit; avoids the line of the limit."""
    samples = np.linspace(0, x[-1], _NARROW // 4, endpoint=False)
    at = np.clip(np.searchsorted(x, samples, side="right") - 1, 0, len(low) - 1)
    window = int((len(text) + 2) * _LETTER / 4)
    if not len(low) or window >= len(samples):
        return None
    floors = sliding_window_view(low[at], window).max(axis=1)
    roofs = sliding_window_view(high[at], window).min(axis=1)
    best = int((roofs - floors).argmax())
    line = _LINE / _STACK_HEIGHT * top
    if roofs[best] - floors[best] < line:
        return None
    height = float(floors[best] + roofs[best]) / 2
    if abs(height - limit) < line / 2:
        below, above = limit - 0.7 * line, limit + 0.7 * line
        height = below if below - line / 2 >= floors[best] else above if above + line / 2 <= roofs[best] else height
    return float(samples[best + window // 2]), height


def _draw_need(figure: Figure, info: MemoryByKind, theme: Theme, scale: float, unit: Unit) -> None:
    """Draw the memory of the step with nothing swapped or run again."""
    if not len(info.unswapped):
        return
    when, amounts = info.unswapped[:, 0] * scale, info.unswapped[:, 1] / unit.size
    shown = columns(info.unswapped[:, 0], amounts, info.end)
    figure.add_trace(
        plotly().Scatter(
            x=when[shown], y=amounts[shown], name="unswapped", mode="lines",
            line={"shape": "hv", "width": 1, "color": theme.third},
            hovertemplate=f"%{{y:.4f}} {unit.name}",
        )
    )  # fmt: skip
    peak = int(amounts.argmax())
    side = _side(when[peak] / (info.end * scale), 0.7)
    kept = "with all kept" if info.repeats else "unswapped"
    text = f"this order {kept}: {bytes_label(info.unswapped_peak_bytes)}"
    figure.add_annotation(tag(text, theme.second, x=when[peak], y=amounts[peak], yanchor="bottom", **side))


def _draw_peak_and_limit(
    figure: Figure, info: MemoryByKind, theme: Theme, scale: float, unit: Unit, on_axis: bool
) -> None:
    peak, place = info.peak_bytes / unit.size, info.peak_at / info.end if info.end else 0.0
    limit = (info.budget_bytes or 0) / unit.size if on_axis else 0.0
    # just under the limit there is no room for a label, so the label of the peak goes above the line
    crowded = 0 <= limit - peak < 0.08 * figure.layout.yaxis.range[1]
    text = f"\N{BLACK DOWN-POINTING SMALL TRIANGLE} peak {bytes_label(info.peak_bytes)}"
    mark = {
        "x": info.peak_at * scale,
        "y": limit if crowded else peak,
        "yanchor": "bottom",
        "yshift": 2,
        **_side(place, _LABEL, clear_of_tag=info.budget_bytes is not None),
    }
    if info.peak_bytes:
        figure.add_annotation(tag(text, theme.ink, theme.paper, **mark) | {"borderpad": 1})
    if info.budget_bytes is not None:
        # the tag goes to the half without the peak, where a narrow plot has room for it beside the label of the peak
        add_budget(figure, theme, info.budget_bytes, unit, on_axis, left=place > 0.5)


def _side(place: float, width: float, clear_of_tag: bool = False) -> dict[str, str]:
    """Anchor of a label beside a point that keeps it inside a narrow plot.

    Args:
        place: of the point, as a share of the plot's width.
        width: of the label, as a share of the plot's width.
        clear_of_tag: whether a tag as wide as the label is in the half of the plot without the point.
    """
    if clear_of_tag and width < place <= 0.5:
        return {"xanchor": "right"}
    if clear_of_tag and 0.5 < place < 1 - width:
        return {"xanchor": "left"}
    return {"xanchor": "left" if place < width / 2 else "right" if place > 1 - width / 2 else "center"}
