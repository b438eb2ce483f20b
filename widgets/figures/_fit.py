"""What fits: memory above and speed below, over the sizes of a step that were tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner.units import byte_unit, bytes_label, format_percent
from widgets.figures.frame import DASHES, LINE, add_budget, add_key, framed, plotly, tag, unit_label, value_axis
from widgets.figures.theme import Theme, escape
from widgets.info import FitCurves

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_MEMORY, _BETWEEN, _ROW, _SPEED = 160, 30, 19, 120
#: Share of the axis that is left empty at either end.
_MARGIN = 0.03
#: Share of an axis of 500 pixels that the words of an answer take.
_WORDS = 0.4


def draw(info: FitCurves, theme: Theme) -> Figure:
    """Draw bytes above, a bar for each answer, and speeds below, on the same axis."""
    rows = _ROW * len(info.answers)
    height = _MEMORY + _BETWEEN + rows + _BETWEEN + _SPEED
    figure = framed(theme, "What fits", f"{info.over} on {info.machine}", info.summary, height)
    most = int(max(info.unswapped_bytes.max(), info.budget_bytes))
    size, fastest = byte_unit(most), float(info.ideal_rate.max())
    low, high = int(info.values[0]), int(info.values[-1])
    room = _MARGIN * max(high - low, 1)
    figure.update_layout(
        xaxis=value_axis(
            theme, range=[low - room, high + room], anchor="y2", fixedrange=True, nticks=6, tickformat=",d",
            title={"text": escape(info.over), "font": {"size": 11, "color": theme.third}, "standoff": 6},
        ),
        yaxis=value_axis(
            theme, domain=[1 - _MEMORY / height, 1], range=[0, 1.15 * most / size.size], nticks=5, fixedrange=True
        ),
        yaxis2=value_axis(
            theme, domain=[0, _SPEED / height], range=[0, 1.15 * fastest], nticks=4, fixedrange=True, anchor="x"
        ),
        yaxis3=value_axis(
            theme, domain=[(_SPEED + _BETWEEN) / height, (_SPEED + _BETWEEN + rows) / height],
            range=[len(info.answers) - 0.5, -0.5], fixedrange=True, anchor="x", showgrid=False, showticklabels=False,
        ),
    )  # fmt: skip
    planned = info.peak_bytes >= 0
    about = _about(info)
    _add_line(figure, info.values, info.unswapped_bytes / size.size, theme.third, about)
    _add_line(figure, info.values[planned], info.peak_bytes[planned] / size.size, theme.measured, about[planned])
    _add_line(figure, info.values, info.ideal_rate, theme.ink, about, yaxis="y2", dash="5px,3px")
    _add_line(figure, info.values[planned], info.rate[planned], theme.measured, about[planned], yaxis="y2")
    add_budget(figure, theme, info.budget_bytes, size, on_axis=True)
    _add_answers(figure, info, theme, low - room)
    figure.add_annotation(unit_label(theme, size.name))
    figure.add_annotation(
        tag(
            f"{info.unit} per second", theme.second, xref="paper", x=0, xanchor="left", yref="paper",
            y=_SPEED / height, yanchor="bottom", yshift=2,
        )
    )  # fmt: skip
    entries = [("with a plan", theme.measured, LINE), ("unswapped", theme.third, LINE), ("ideal", theme.ink, DASHES)]
    add_key(figure, theme, entries)
    return figure


def _add_line(
    figure: Figure, x: Any, y: Any, colour: str, about: Any, *, yaxis: str = "y", dash: str = "solid"
) -> None:
    figure.add_trace(
        plotly().Scatter(
            x=x, y=y, yaxis=yaxis, mode="lines+markers" if dash == "solid" else "lines", showlegend=False,
            cliponaxis=False, line={"color": colour, "width": 1.8 if dash == "solid" else 1.2, "dash": dash},
            marker={"color": colour, "size": 7}, customdata=about, hovertemplate="%{customdata}<extra></extra>",
        )
    )  # fmt: skip


def _add_answers(figure: Figure, info: FitCurves, theme: Theme, start: float) -> None:
    """A bar up to the largest value of each criterion, with its words in it, or behind it where it is short."""
    room = _WORDS * (int(info.values[-1]) - start)
    for row, answer in enumerate(info.answers):
        if answer.value is not None:
            figure.add_shape(
                type="rect", xref="x", x0=start, x1=answer.value, yref="y3", y0=row - 0.42, y1=row + 0.42,
                fillcolor=theme.grid, line={"width": 0}, layer="below",
            )  # fmt: skip
            figure.add_shape(
                type="line", xref="x", x0=answer.value, x1=answer.value, yref="y3", y0=row - 0.42, y1=row + 0.42,
                line={"color": theme.measured, "width": 2},
            )  # fmt: skip
        words = f"<b>{'none' if answer.value is None else f'{answer.value:,}'}</b> {answer.words}"
        short = answer.value is not None and answer.value - start < room
        place = {"xref": "x", "x": answer.value} if short else {"xref": "x domain", "x": 0}
        figure.add_annotation(tag(words, theme.ink, name="answer", xanchor="left", xshift=4, yref="y3", y=row, **place))


def _about(info: FitCurves) -> Any:
    texts = []
    for value, unswapped, peak, ideal, rate in zip(
        info.values, info.unswapped_bytes, info.peak_bytes, info.ideal_rate, info.rate, strict=True
    ):
        plan = (
            "no plan within the budget"
            if peak < 0
            else f"{bytes_label(int(peak))} with a plan, <b>{rate:,.4g}</b> {info.unit} per second, "
            f"{format_percent(rate / ideal)} of ideal"
        )
        texts.append(f"{escape(info.over)}={value:,}<br>{bytes_label(int(unswapped))} unswapped<br>{plan}")
    return np.array(texts, dtype=object)
