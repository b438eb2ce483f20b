"""Prediction beside measurement: memory over a step, step times, and how busy each stream was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner.units import Unit, byte_unit, format_seconds
from widgets.figures._bar_rows import Row, Table, draw_rows, rows_height
from widgets.figures._pixel_columns import columns
from widgets.figures.frame import DASHES, LINE, add_budget, add_key, framed, plotly, time_axis, unit_label, value_axis
from widgets.figures.theme import Theme
from widgets.info import Curve, PredictedAndMeasured

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_HEIGHT, _FOOT = 240, 34
#: Most steps that are drawn, and most that get a row of their own.
_MOST_STEPS, _MOST_ROWS = 5, 4


def draw(info: PredictedAndMeasured, theme: Theme) -> Figure:
    """Draw memory above, times below."""
    longest = max(info.predicted_seconds, *info.step_seconds, *info.eager_seconds, 0.0)
    times, streams = _times(info, theme, longest), _streams(info, theme, longest)
    below = rows_height(times) + rows_height(streams)
    floor = below / (_HEIGHT + below)
    figure = framed(theme, "Predicted and measured", info.name, info.summary, _HEIGHT + below + _FOOT)
    shown = info.measured[-_MOST_STEPS:]
    end = max(curve.end for curve in (info.predicted, *shown))
    scale, x_axis = time_axis(theme, "seconds", end)
    highest = max(int(curve.bytes.max(initial=1)) for curve in (info.predicted, *shown))
    on_axis = info.budget_bytes <= 2.5 * highest
    top = 1.15 * max(highest, info.budget_bytes if on_axis else 0)
    unit = byte_unit(top)
    figure.update_layout(
        xaxis={**x_axis, "anchor": "y", "hoverformat": ".4g"},
        yaxis=value_axis(theme, domain=[floor, 1], range=[0, top / unit.size], nticks=6, fixedrange=True),
        hovermode="x unified",
    )
    for step, curve in enumerate(shown, len(info.measured) - len(shown) + 1):
        last = step == len(info.measured)
        line = {"color": theme.measured, "width": 1.8 if last else 0.9}
        _draw_curve(figure, curve, f"measured, step {step}", line, 1.0 if last else 0.45, scale, unit)
    _draw_curve(
        figure, info.predicted, "predicted", {"color": theme.ink, "width": 1.2, "dash": "5px,3px"}, 1.0, scale, unit
    )
    entries = [("in use, predicted", theme.ink, DASHES)]
    if shown:
        entries.append(("measured" if len(shown) == 1 else "measured, the last step in bold", theme.measured, LINE))
    figure.add_annotation(unit_label(theme, unit.name))
    add_key(figure, theme, entries)
    add_budget(figure, theme, info.budget_bytes, unit, on_axis)
    draw_rows(figure, theme, times, 2, floor, floor / below)
    draw_rows(figure, theme, streams, 3, floor * rows_height(streams) / below, floor / below)
    return figure


def _draw_curve(
    figure: Figure, curve: Curve, name: str, line: dict[str, Any], opacity: float, scale: float, unit: Unit
) -> None:
    amounts = curve.bytes / unit.size
    shown = columns(curve.seconds, amounts, curve.end)
    figure.add_trace(
        plotly().Scatter(
            x=np.append(curve.seconds[shown], curve.end) * scale, y=np.append(amounts[shown], amounts[-1:]),
            name=name, mode="lines", line={"shape": "hv", **line}, opacity=opacity, showlegend=False,
            hovertemplate=f"%{{y:.4f}} {unit.name}",
        )
    )  # fmt: skip


def _times(info: PredictedAndMeasured, theme: Theme, longest: float) -> Table:
    rows = [_time("predicted", info.predicted_seconds, theme.third, hatched=True)]
    steps = info.step_seconds
    if len(steps) <= _MOST_ROWS:
        rows += [_time(f"step {number}", seconds, theme.measured) for number, seconds in enumerate(steps, 1)]
    else:
        named = ((f"median of {len(steps)}", info.median_seconds), ("fastest", min(steps)), ("slowest", max(steps)))
        rows += [_time(name, seconds, theme.measured) for name, seconds in named]
    if info.eager_seconds:
        rows.append(_time("eager, no budget", float(np.median(info.eager_seconds)), theme.second))
    return Table("<b>Step time</b>", rows, longest)


def _streams(info: PredictedAndMeasured, theme: Theme, longest: float) -> Table:
    rows = []
    named = (("compute", "compute"), ("swap out", "swap_out"), ("swap in", "swap_in"), ("idle", "idle"))
    for name, field in named:
        predicted = getattr(info.predicted_busy, field)
        measured = getattr(info.measured_busy, field) if info.measured_busy else 0.0
        if max(predicted, measured) > 0:
            rows.append(_time(f"{name}, predicted", predicted, theme.third, hatched=True))
            rows.append(_time(f"{name}, measured", measured, theme.measured))
    return Table("<b>Streams</b>", rows, longest)


def _time(label: str, seconds: float, colour: str, hatched: bool = False) -> Row:
    return Row(
        label, seconds, format_seconds(seconds), colour, f"{label}<br><b>{format_seconds(seconds, 5)}</b>", hatched
    )
