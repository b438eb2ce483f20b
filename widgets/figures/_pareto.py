"""Step time against memory: plans above the bound, and the bytes they copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner.units import byte_unit, bytes_label, format_percent, format_seconds, second_unit
from widgets.figures.frame import DASHES, LINE, add_key, framed, plotly, tag, unit_label, value_axis
from widgets.figures.theme import Theme, escape
from widgets.info import Floats, Group, Ints, Pareto

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_HEIGHT, _COPIES, _BETWEEN = 250, 80, 34
#: Smallest distance between two labels of budgets, as a share of an axis 250 pixels wide.
_APART = 0.2
_MARGIN = 0.03


def draw(info: Pareto, theme: Theme) -> Figure:
    """Draw seconds above, bytes copied below, over budgets on a logarithmic axis."""
    height = _HEIGHT + _BETWEEN + _COPIES
    figure = framed(theme, "Step time and memory", f"{info.name}, {info.machine}", info.summary, height)
    longest = max(float(info.step_seconds.max()), info.ideal_seconds)
    seconds, moved = second_unit(longest), info.bytes_in + info.bytes_out
    copied = byte_unit(float(moved.max(initial=1)))
    figure.update_layout(
        xaxis=budget_axis(info.budget_bytes, theme, anchor="y2"),
        yaxis=value_axis(
            theme, domain=[(_COPIES + _BETWEEN) / height, 1], range=[0, 1.12 * longest / seconds.size], nticks=6,
            fixedrange=True,
        ),
        yaxis2=value_axis(
            theme, domain=[0, _COPIES / height], range=[0, 1.2 * max(float(moved.max()), 1.0) / copied.size],
            nticks=3, fixedrange=True, anchor="x",
        ),
    )  # fmt: skip
    _draw_times(figure, info, theme, seconds.size)
    _draw_copies(figure, info, theme, copied.size)
    figure.add_annotation(unit_label(theme, seconds.name))
    figure.add_annotation(unit_label(theme, copied.name, _COPIES / height))
    figure.add_annotation(
        tag(
            "copied per step, in and out", theme.second, xref="paper", x=0, xanchor="left", yref="paper",
            y=_COPIES / height, yanchor="bottom", yshift=2,
        )
    )  # fmt: skip
    entries = [
        ("step", theme.measured, LINE), ("lower bound", theme.third, LINE), ("ideal", theme.ink, DASHES),
    ]  # fmt: skip
    add_key(figure, theme, entries)
    return figure


def budget_axis(budget_bytes: Ints, theme: Theme, anchor: str) -> dict[str, Any]:
    """A logarithmic axis labelled with the budgets themselves, as far as there is room.

    Args:
        budget_bytes: `[points]`, ascending.
        theme: its palette.
        anchor: the axis below which it is.
    """
    places = np.log10(budget_bytes.astype(np.float64))
    span = max(float(places[-1] - places[0]), 0.1)
    shown: list[int] = []
    for place in reversed(range(len(places))):  # the last and the first are always shown
        room = not shown or places[shown[-1]] - places[place] >= _APART * span
        if room and (place == 0 or places[place] - places[0] >= _APART * span):
            shown.append(place)
    return value_axis(
        theme, type="log", range=[places[0] - _MARGIN * span, places[-1] + _MARGIN * span], anchor=anchor,
        tickvals=[int(budget_bytes[place]) for place in shown],
        ticktext=[bytes_label(int(budget_bytes[place])) for place in shown], fixedrange=True, tickangle=0,
        title={"text": "budget, logarithmic", "font": {"size": 11, "color": theme.third}, "standoff": 6},
    )  # fmt: skip


def _draw_times(figure: Figure, info: Pareto, theme: Theme, second: float) -> None:
    """Draw times as steps: a plan is valid for every larger budget, and a bound holds for every smaller one."""
    steps, bounds, budgets = info.step_seconds / second, info.bound_seconds / second, info.budget_bytes
    flat = {"showlegend": False, "hoverinfo": "skip", "mode": "lines"}
    x, above = _stairs(budgets, steps, ahead=False)
    _, below = _stairs(budgets, bounds, ahead=True)
    scatter = plotly().Scatter
    figure.add_trace(
        scatter(
            x=np.append(x, x[::-1]), y=np.append(above, below[::-1]), fill="toself", fillcolor=theme.grid,
            line={"width": 0}, **flat,
        )
    )  # fmt: skip
    figure.add_trace(scatter(x=x, y=below, line={"color": theme.third, "width": 1.5}, **flat))
    figure.add_trace(scatter(x=x, y=above, line={"color": theme.measured, "width": 1.8}, **flat))
    ends = [int(budgets[0]), int(budgets[-1])]
    ideal = info.ideal_seconds / second
    figure.add_trace(scatter(x=ends, y=[ideal] * 2, line={"color": theme.ink, "width": 1.2, "dash": "5px,3px"}, **flat))
    figure.add_trace(
        scatter(
            x=budgets, y=steps, mode="markers", marker={"color": theme.measured, "size": 8}, cliponaxis=False,
            showlegend=False, name="step", customdata=_about(info), hovertemplate="%{customdata}<extra></extra>",
        )
    )  # fmt: skip


def _draw_copies(figure: Figure, info: Pareto, theme: Theme, byte: float) -> None:
    x, moved = _stairs(info.budget_bytes, (info.bytes_in + info.bytes_out) / byte, ahead=False)
    colour = theme.kinds[Group.ACTIVATION]
    figure.add_trace(
        plotly().Scatter(
            x=x, y=moved, yaxis="y2", mode="lines", line={"color": colour, "width": 1.5}, fill="tozeroy",
            fillcolor=f"rgba({','.join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))},0.25)",
            showlegend=False, hoverinfo="skip",
        )
    )  # fmt: skip
    figure.add_trace(
        plotly().Scatter(
            x=info.budget_bytes, y=(info.bytes_in + info.bytes_out) / byte, yaxis="y2", mode="markers",
            marker={"color": colour, "size": 6}, cliponaxis=False, showlegend=False, name="copied",
            customdata=_about(info), hovertemplate="%{customdata}<extra></extra>",
        )
    )  # fmt: skip


def _stairs(x: Any, y: Floats, ahead: bool) -> tuple[Any, Floats]:
    """Corners of a staircase whose height between two points is that of the left point, or of the right if `ahead`."""
    return np.repeat(x, 2)[1:], (np.repeat(y, 2)[:-1] if not ahead else np.append(np.repeat(y, 2)[2:], y[-1]))


def _about(info: Pareto) -> list[str]:
    return [
        f"budget {bytes_label(int(budget))}<br><b>{format_seconds(step)}</b> per step, "
        f"{format_percent(info.ideal_seconds / step if step else 1.0)} of ideal<br>"
        f"lower bound {format_seconds(bound)}<br>"
        f"{bytes_label(int(into))} in, {bytes_label(int(out))} out<br>{escape(method)}"
        for budget, step, bound, into, out, method in zip(
            info.budget_bytes, info.step_seconds, info.bound_seconds, info.bytes_in, info.bytes_out, info.methods,
            strict=True,
        )
    ]  # fmt: skip
