"""What fits: memory above and speed below, over the sizes of a step that were tried."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.units import byte_unit, bytes_label, format_percent
from widgets.figures.frame import DASHES, LINE, add_budget, add_key, framed, plotly, tag, unit_label, value_axis
from widgets.figures.theme import Theme, escape
from widgets.info import FitAnswer, FitCurves

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_MEMORY, _BETWEEN, _ROW, _SPEED = 160, 30, 19, 120
#: Share of the axis that is left empty at either end.
_MARGIN = 0.03
#: The width of a narrow plot, of a letter of a wide font, and of the gaps around words, in pixels.
_WIDE, _LETTER, _GAPS = 480, 6.1, 20
#: The tag of the budget, in pixels.
_TAG = 105, 20
#: Stands for a space at which no line ends.
_KEPT = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True)
class _AnswerRow:
    """An answer and its words, which are in its bar or behind it, in as many lines as there is room for."""

    answer: FitAnswer
    first: int
    lines: list[str]
    behind: bool


def draw(info: FitCurves, theme: Theme) -> Figure:
    """Draw bytes above, a bar for each answer, and speeds below, on the same axis."""
    low, high = int(info.values[0]), int(info.values[-1])
    room = _MARGIN * max(high - low, 1)
    answers = _rows(info, low - room, high + room)
    last = answers[-1].first + len(answers[-1].lines)
    rows = _ROW * last
    height = _MEMORY + _BETWEEN + rows + _BETWEEN + _SPEED
    figure = framed(theme, "What fits", info.title, info.summary, height)
    most = int(max(info.unswapped_bytes.max(), info.budget_bytes))
    top = 1.15 * most
    size, fastest = byte_unit(most), float(info.ideal_rate.max())
    figure.update_layout(
        xaxis=value_axis(
            theme, range=[low - room, high + room], anchor="y2", fixedrange=True, nticks=6, tickformat=",d",
            title={"text": escape(info.over), "font": {"size": 11, "color": theme.third}, "standoff": 6},
        ),
        yaxis=value_axis(
            theme, domain=[1 - _MEMORY / height, 1], range=[0, top / size.size], nticks=5, fixedrange=True
        ),
        yaxis2=value_axis(
            theme, domain=[0, _SPEED / height], range=[0, 1.15 * fastest], nticks=4, fixedrange=True, anchor="x"
        ),
        yaxis3=value_axis(
            theme, domain=[(_SPEED + _BETWEEN) / height, (_SPEED + _BETWEEN + rows) / height],
            range=[last, 0], fixedrange=True, anchor="x", showgrid=False, showticklabels=False,
        ),
    )  # fmt: skip
    planned = info.peak_bytes >= 0
    about = _about(info)
    _add_line(figure, info.values, info.unswapped_bytes / size.size, theme.third, about)
    _add_line(figure, info.values[planned], info.peak_bytes[planned] / size.size, theme.measured, about[planned])
    _add_line(figure, info.values, info.ideal_rate, theme.ink, about, yaxis="y2", dash="5px,3px")
    _add_line(figure, info.values[planned], info.rate[planned], theme.measured, about[planned], yaxis="y2")
    add_budget(figure, theme, info.budget_bytes, size, True, *_tag_place(info, low - room, high + room, top))
    _add_answers(figure, answers, theme, low - room)
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


def _tag_place(info: FitCurves, low: float, high: float, top: float) -> tuple[bool, bool]:
    """Whether the tag of the budget is at the left, and below its line: where it covers the least of the curves."""
    planned = info.peak_bytes >= 0
    curves = [(info.values, info.unswapped_bytes), (info.values[planned], info.peak_bytes[planned])]
    x = np.linspace(low, high, _WIDE)
    heights = [np.interp(x, *curve, left=np.nan, right=np.nan) for curve in curves if len(curve[0])]
    wide, tall = (high - low) * _TAG[0] / _WIDE, top * _TAG[1] / _MEMORY

    def covered(place: tuple[bool, bool]) -> int:
        left, below = place
        beside = x < low + wide if left else x > high - wide
        first = info.budget_bytes - (tall if below else 0)
        return sum(int(np.sum(beside & (y >= first) & (y <= first + tall))) for y in heights)

    return min(product((False, True), (False, True)), key=covered)


def _rows(info: FitCurves, start: float, end: float) -> list[_AnswerRow]:
    """The words of each answer where they do not cross the end of its bar, in lines that are as long as that allows."""
    rows, first = [], 0
    for answer in info.answers:
        phrases = _phrases(answer)
        takes = (_LETTER * len(" ".join(phrases)) + _GAPS) / _WIDE
        inside = 1.0 if answer.value is None else (answer.value - start) / (end - start)
        behind = inside < takes and (takes <= 1 - inside or inside < 0.5)
        letters = int((_WIDE * (1 - inside if behind else inside) - _GAPS) / _LETTER)
        rows.append(_AnswerRow(answer, first, _lines(phrases, letters), behind))
        first += len(rows[-1].lines)
    return rows


def _phrases(answer: FitAnswer) -> list[str]:
    """The words of an answer, in parts between which a line may end."""
    words = f"{_value(answer)} {answer.words}"
    if not answer.remarks:
        return [words]
    if answer.value is None:
        return [f"{words}: {', '.join(answer.remarks)}"]
    return [words, *f"({', '.join(answer.remarks)})".replace(", ", ",\n").split("\n")]


def _lines(phrases: list[str], letters: int) -> list[str]:
    """As few lines as that many letters allow; a phrase that is longer is broken between words."""
    kept = (each.replace(" ", _KEPT) if len(each) <= letters else each for each in phrases)
    return [line.replace(_KEPT, " ") for line in textwrap.wrap(" ".join(kept), letters)]


def _value(answer: FitAnswer) -> str:
    return "none" if answer.value is None else f"{answer.value:,}"


def _add_answers(figure: Figure, rows: list[_AnswerRow], theme: Theme, start: float) -> None:
    """A bar up to the largest value of each criterion, with its words."""
    for row in rows:
        value, top, bottom = row.answer.value, row.first + 0.08, row.first + len(row.lines) - 0.08
        if value is not None:
            figure.add_shape(
                type="rect", xref="x", x0=start, x1=value, yref="y3", y0=top, y1=bottom,
                fillcolor=theme.grid, line={"width": 0}, layer="below",
            )  # fmt: skip
            figure.add_shape(
                type="line", xref="x", x0=value, x1=value, yref="y3", y0=top, y1=bottom,
                line={"color": theme.measured, "width": 2},
            )  # fmt: skip
        bold = _value(row.answer)
        words = "<br>".join(map(escape, row.lines)).replace(bold, f"<b>{bold}</b>", 1)
        place = {"xref": "x", "x": value} if row.behind else {"xref": "x domain", "x": 0}
        figure.add_annotation(
            tag(
                words, theme.ink, name="answer", xanchor="left", xshift=4, align="left", yref="y3",
                y=(top + bottom) / 2, **place,
            )
        )  # fmt: skip


def _why_none(value: int, info: FitCurves) -> str:
    if value == info.stopped_by_host:
        return "a plan within the budget takes more host memory than there is"
    return "no plan within the budget"


def _about(info: FitCurves) -> Any:
    texts = []
    for value, unswapped, peak, ideal, rate in zip(
        info.values, info.unswapped_bytes, info.peak_bytes, info.ideal_rate, info.rate, strict=True
    ):
        plan = (
            _why_none(value, info)
            if peak < 0
            else f"{bytes_label(int(peak))} with a plan, <b>{rate:,.4g}</b> {info.unit} per second, "
            f"{format_percent(rate / ideal)} of ideal"
        )
        texts.append(f"{escape(info.over)}={value}<br>{bytes_label(int(unswapped))} unswapped<br>{plan}")
    return np.array(texts, dtype=object)
