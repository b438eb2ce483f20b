"""Speed over budgets, one line for each method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.units import bytes_label, format_percent, format_seconds
from widgets.figures._pareto import budget_axis
from widgets.figures.frame import DASHES, LINE, add_key, framed, plotly, value_axis
from widgets.figures.theme import Theme, escape
from widgets.info import CompareMethods, Group, MethodSpeeds

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_HEIGHT = 270
#: Room above the ideal speed for its markers, in percent.
_END = 104


def draw(info: CompareMethods, theme: Theme) -> Figure:
    """Draw a staircase for each method, as a plan fits every larger budget; a line begins at its least budget."""
    figure = framed(theme, "Speed by method", f"{info.name}, {info.machine}", info.summary, _HEIGHT)
    budgets = info.budgets
    figure.update_layout(
        xaxis=budget_axis(budgets, theme, anchor="y"),
        yaxis=value_axis(
            theme, range=[0, _END], tickvals=[0, 25, 50, 75, 100], fixedrange=True,
            ticktext=["0 %", "25 %", "50 %", "75 %", "100 %"],
        ),
    )  # fmt: skip
    colours = [theme.measured, *(theme.kinds[each] for each in (Group.GRADIENT, Group.ACTIVATION)), theme.third]
    entries = []
    for place, method in enumerate(info.methods):
        colour, dashed = colours[place % len(colours)], place >= len(colours)
        entries.append((escape(method.method), colour, DASHES if dashed else LINE))
        figure.add_trace(
            plotly().Scatter(
                x=np.append(method.budget_bytes, budgets[-1]),
                y=100 * np.append(method.share_of_ideal, method.share_of_ideal[-1]),
                mode="lines+markers", cliponaxis=False, showlegend=False, name=method.method,
                line={"shape": "hv", "color": colour, "width": 1.8, "dash": "5px,3px" if dashed else "solid"},
                marker={"color": colour, "size": [7] * len(method.budget_bytes) + [0]},
                customdata=[*_about(method), ""], hovertemplate="%{customdata}<extra></extra>",
            )
        )  # fmt: skip
    add_key(figure, theme, entries)
    return figure


def _about(method: MethodSpeeds) -> list[str]:
    return [
        f"<b>{escape(method.method)}</b> within {bytes_label(budget)}<br>{format_percent(share)} of ideal speed<br>"
        f"{bytes_label(moved)} copied, ops run again for {format_seconds(again)}"
        for budget, share, moved, again in zip(
            method.budget_bytes.tolist(), method.share_of_ideal.tolist(), method.bytes_moved.tolist(),
            method.recompute_seconds.tolist(), strict=True,
        )
    ]  # fmt: skip
