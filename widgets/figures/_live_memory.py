"""Measured memory of a run so far, step by step, and the prediction of its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.units import byte_unit
from widgets.figures.frame import (
    DASHES,
    LINE,
    add_budget,
    add_key,
    framed,
    plotly,
    time_axis,
    unit_label,
    value_axis,
)
from widgets.figures.theme import Theme
from widgets.info import Floats, LiveMemory

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_HEIGHT = 260
#: Most steps with a prediction drawn, and the share of the axis that the name of a step takes in a wide plot.
_MOST_PREDICTED, _NAME = 64, 0.03
#: Share of the vertical axis that step names need, including plotly's margin around them.
_FOOT = 0.1


def draw(info: LiveMemory, theme: Theme) -> Figure:
    """Draw measured memory as a line and the prediction dashed over it."""
    figure = framed(theme, f"Memory of a run, {info.state}", info.name, info.summary, _HEIGHT)
    starts = info.measured.step_start
    last = float(starts[-1]) if len(starts) else 0.0
    foreseen, budget = info.predicted, info.budget_bytes or 0
    going = len(starts) > len(info.step_seconds) or not len(starts)
    length = foreseen.seconds if foreseen and going else info.step_seconds[-1] if info.step_seconds else 1.0
    end = max(last + length, float(info.measured.seconds.max(initial=0.0)))
    highest = max(info.peak_bytes, foreseen.peak_bytes if foreseen else 0, 1)
    on_axis = budget <= 2.5 * highest
    top = 1.15 * max(highest, budget if on_axis else 0)
    unit = byte_unit(top)
    scale, x_axis = time_axis(theme, "seconds", end)
    figure.update_layout(
        xaxis=x_axis | {"hoverformat": ".4g", "nticks": 4},
        yaxis=value_axis(theme, range=[0, top / unit.size], nticks=6, fixedrange=True),
        hovermode="x unified",
    )
    series = (
        ("measured", info.measured.seconds, info.measured.bytes, {"color": theme.measured, "width": 1.8}),
        ("predicted", *_predicted(info), {"color": theme.ink, "width": 1, "dash": "4px,3px"}),
    )
    for name, seconds, sizes, line in series:
        figure.add_trace(
            plotly().Scatter(
                x=np.asarray(seconds) * scale, y=np.asarray(sizes) / unit.size, name=name, mode="lines",
                line={"shape": "hv", **line}, showlegend=False, hovertemplate=f"%{{y:.4f}} {unit.name}",
            )
        )  # fmt: skip
    if budget:
        add_budget(figure, theme, budget, unit, on_axis)
    figure.add_annotation(unit_label(theme, unit.name))
    entries = [("predicted, drawn as long as the step was", theme.ink, DASHES), ("measured", theme.measured, LINE)]
    add_key(figure, theme, entries)
    named = _named(starts, end)
    # bar texts, not annotations, because plotly hides those that do not fit, however narrow the plot becomes
    figure.add_trace(
        plotly().Bar(
            orientation="h", base=[start * scale for _, start, _ in named], x=[room * scale for _, _, room in named],
            y=[_FOOT / 2 * top / unit.size] * len(named), width=_FOOT * top / unit.size, name="steps", showlegend=False,
            text=[f"step {number}" for number, _, _ in named], textposition="inside", insidetextanchor="start",
            textangle=0, textfont={"size": 11, "color": theme.third}, hoverinfo="skip",
            marker={"color": "rgba(0,0,0,0)", "line": {"width": 0}},
        )
    )  # fmt: skip
    figure.update_layout(barmode="overlay", uniformtext={"mode": "hide", "minsize": 11})
    return figure


def _named(starts: Floats, end: float) -> list[tuple[int, float, float]]:
    """Number, start and available room of each step whose name is shown.

    The first step comes first, then always the step furthest from those already chosen; so in a narrow plot, the later
    ones in this order are hidden first.
    """
    named: list[tuple[int, float, float]] = []
    if not len(starts):
        return named
    room = end - starts
    while room[step := int(room.argmax())] >= _NAME * end:
        named.append((step + 1, float(starts[step]), float(room[step])))
        room = np.minimum(room, np.abs(starts - starts[step]))
    return named


def _predicted(info: LiveMemory) -> tuple[Floats, Floats]:
    """The prediction for each of the last steps, scaled to the step's length, with a break between two steps."""
    foreseen = info.predicted
    if foreseen is None:
        return np.zeros(0), np.zeros(0)
    starts = info.measured.step_start if len(info.measured.step_start) else np.zeros(1)
    lengths = [*info.step_seconds, foreseen.seconds][: len(starts)]
    moments = np.append(foreseen.sample_seconds, foreseen.seconds) / (foreseen.seconds or 1.0)
    shown = list(zip(starts, lengths, strict=True))[-_MOST_PREDICTED:]
    sizes = np.append(foreseen.sample_bytes.astype(np.float64), np.nan)
    return np.concatenate([start + length * moments for start, length in shown]), np.tile(sizes, len(shown))
