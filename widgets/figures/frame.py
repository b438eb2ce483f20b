"""The common frame of all plots: title, one-sentence summary, fonts, margins and marks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from planner.errors import StowageError
from planner.units import Unit, bytes_label, second_unit
from widgets.figures.theme import FONT, Theme, escape, shorten, wrapped
from widgets.info import Axis

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_TITLE_HEIGHT, _LINE_HEIGHT, _LEGEND_HEIGHT = 34, 16, 30
#: Left margin of all plots, so that their time axes are aligned.
_LEFT = 64
#: Marks used in a key.
SQUARE, HATCHED, STRIPED, LINE, DASHES = "\u25a0", "\u25a8", "\u25a4", "\u2501\u2501", "\u2501&nbsp;\u2501"
#: The stripes of ops that run again and of what they recompute; they show in the narrowest bar.
STRIPES = {"shape": "-", "size": 6, "solidity": 0.25}
#: Precedes the number of identical modules folded into one.
TIMES = "\N{MULTIPLICATION SIGN}"
#: Characters that fit a plot 570 pixels wide: of a line of the summary or key, and of a title with its name.
_LINE_LENGTH, _TITLE_LENGTH = 82, 58
#: Buttons removed from plotly's tool bar so that it does not overlap the title; dragging zooms.
_NO_BUTTONS = ("zoom", "pan", "select", "lasso", "zoomIn", "zoomOut", "autoScale")


def plotly() -> Any:
    """The plotting library, imported when the first plot is drawn.

    Raises:
        StowageError: it is not installed.
    """
    try:
        import plotly.graph_objects as go
    except ImportError as error:
        raise StowageError("plots need the package plotly, which is missing: run `pip install plotly`") from error
    return go


def framed(theme: Theme, title: str, name: str, summary: str, height: int) -> Figure:
    """An empty plot.

    Args:
        theme: its palette.
        title: kind of plot.
        name: what it shows, such as a model's name; shortened in the plot, complete in `layout.meta["title"]`.
        summary: the plot in one sentence, shown under the title and kept as `layout.meta["summary"]`.
        height: height of the plot with its time axis but without title and legend, in pixels.
    """
    lines = wrapped(summary, _LINE_LENGTH)
    top = _TITLE_HEIGHT + _LINE_HEIGHT * len(lines) + _LEGEND_HEIGHT

    def titled(name: str) -> str:
        about = f'  <span style="color:{theme.third};font-weight:400">{escape(name)}</span>' if name else ""
        return f"<b>{title}</b>{about}"

    plotly()  # raises the error that says what is missing
    from widgets.figures.notebook_figure import PageFigure

    figure: Figure = PageFigure()
    figure.update_layout(
        template="none",
        paper_bgcolor=theme.paper,
        plot_bgcolor=theme.paper,
        font={"family": FONT, "size": 11, "color": theme.ink},
        title={
            "text": titled(shorten(name, _TITLE_LENGTH - len(title))),
            "font": {"size": 14, "color": theme.ink},
            "x": 0, "xref": "container", "xanchor": "left",
            "y": 1, "yref": "container", "yanchor": "top", "pad": {"l": 12, "t": 10},
        },
        height=height + top,
        margin={"l": _LEFT, "r": 24, "t": top, "b": 40},
        hoverlabel={
            "bgcolor": theme.paper, "bordercolor": theme.line, "align": "left",
            "font": {"family": FONT, "size": 11, "color": theme.ink},
        },
        annotations=[
            {
                "name": "summary", "text": "<br>".join(map(escape, lines)), "font": {"size": 12, "color": theme.second},
                "align": "left", "showarrow": False, "xref": "paper", "x": 0, "xanchor": "left", "xshift": 10 - _LEFT,
                "yref": "paper", "y": 1, "yanchor": "top", "yshift": top - _TITLE_HEIGHT + 5,
            }
        ],
        showlegend=False,
        hovermode="closest",
        modebar={"remove": _NO_BUTTONS, "bgcolor": "rgba(0,0,0,0)", "color": "#8a919b", "activecolor": "#8a919b"},
        meta={"summary": summary, "title": titled(name)},
    )  # fmt: skip
    return figure


def value_axis(theme: Theme, **more: Any) -> dict[str, Any]:
    """An axis of amounts, with hairlines."""
    return {
        "zeroline": False, "showline": False, "ticks": "outside", "ticklen": 4, "tickcolor": "rgba(0,0,0,0)",
        "showgrid": True, "gridcolor": theme.grid,
        "gridwidth": 1, "tickfont": {"size": 11, "color": theme.third}, **more,
    }  # fmt: skip


def time_axis(theme: Theme, axis: Axis, end: float, **more: Any) -> tuple[float, dict[str, Any]]:
    """The factor for positions, and an axis from the start to the end of a step."""
    unit = Unit("", 1.0) if axis == "slots" else second_unit(end)
    end = max(end, 1e-12) / unit.size
    title = {"text": "op number", "font": {"size": 11, "color": theme.third}, "standoff": 6}
    return 1 / unit.size, value_axis(
        theme, range=[0, end], ticksuffix=f" {unit.name}" if unit.name else "", nticks=6, minallowed=0,
        maxallowed=end, title=title if axis == "slots" else None,
    ) | more  # fmt: skip


def unit_label(theme: Theme, text: str, y: float = 1.0) -> dict[str, Any]:
    """The unit of a vertical axis, at its top end."""
    return {
        "text": text, "xref": "paper", "x": 0, "xanchor": "right", "xshift": -4, "yref": "paper", "y": y,
        "yanchor": "bottom", "yshift": 4, "showarrow": False, "font": {"size": 11, "color": theme.third},
    }  # fmt: skip


def tag(text: str, ink: str, fill: str | None = None, **place: Any) -> dict[str, Any]:
    """A label on the plot, on a patch of `fill` if given."""
    patch = {} if fill is None else {"bgcolor": fill, "borderpad": 3}
    return {"text": text, "showarrow": False, "font": {"size": 11, "color": ink}, **patch, **place}


def add_budget(
    figure: Figure, theme: Theme, budget: int, unit: Unit, on_axis: bool, left: bool = False, below: bool = False
) -> None:
    """Draw a budget in bytes as a line with its tag above or below; only the tag if it is far above all data."""
    text, height = f"budget {bytes_label(budget)}", {"yref": "y", "y": budget / unit.size}
    if on_axis:
        figure.add_shape(
            type="line", xref="x domain", x0=0, x1=1, yref="y", y0=budget / unit.size, y1=budget / unit.size,
            line={"color": theme.limit, "width": 1.5},
        )  # fmt: skip
    else:
        text, height = f"{text}, far above", {"yref": "paper", "y": 1, "yshift": -20}
    side = {"x": 0, "xanchor": "left"} if left else {"x": 1, "xanchor": "right"}
    anchor = {"yanchor": "top" if below else "bottom"}
    figure.add_annotation(tag(text, theme.on_limit, theme.limit, xref="x domain", **anchor, **side, **height))


def add_key(figure: Figure, theme: Theme, entries: Iterable[tuple[str, str, str]]) -> None:
    """Add a key above the plot, of (text, colour, mark) for data without direct labels, in as many lines as needed."""
    lines: list[list[str]] = [[]]
    room = _LINE_LENGTH
    for text, colour, mark in entries:
        room -= len(text) + 6
        if room < 0 and lines[-1]:
            lines.append([])
            room = _LINE_LENGTH - len(text) - 6
        lines[-1].append(f'<span style="color:{colour}">{mark}</span>&nbsp;{text.replace(" ", "&nbsp;")}')
    text = "<br>".join("&nbsp;&nbsp; ".join(line) for line in lines)
    figure.add_annotation(
        tag(text, theme.second, name="key", xref="paper", x=0, xanchor="left", yref="paper", y=1, yanchor="bottom",
            yshift=3, align="left")
    )  # fmt: skip
    more = _LINE_HEIGHT * (len(lines) - 1)
    figure.layout.height += more
    figure.layout.margin.t += more
    figure.layout.annotations[0].yshift += more
