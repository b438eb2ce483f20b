"""The best plan over the time of a search, and below it the baselines, both as shares of ideal speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.units import format_seconds, several
from widgets.figures.frame import framed, plotly, tag, value_axis
from widgets.figures.theme import Theme, escape
from widgets.info import SearchHistory

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_CURVE, _BAR, _BETWEEN, _FOOT = 196, 24, 74, 34
_LEFT = 92
#: Room on the left axis below the first plan and above the bound, in percent.
_UNDER, _OVER = 4.0, 2.5
#: Least percentage of a bar that can hold its label.
_ROOM = 30


def draw(info: SearchHistory, theme: Theme) -> Figure:
    """Draw the curve, the bound as a line, and the bars."""
    title = f"Search, {info.status}"
    bars = _BAR * (len(info.baselines) + 1)
    height = _CURVE + _BETWEEN + bars
    ceiling, floor = bars / height, (bars + _BETWEEN) / height
    figure = framed(theme, title, info.name, info.summary, height + _FOOT)
    wider = _LEFT - figure.layout.margin.l  # room for the names of baselines
    figure.layout.margin.l = _LEFT
    figure.layout.annotations[0].xshift -= wider
    bound = 100 * info.share(info.bound_seconds)
    shares = [100 * info.share(one.step_seconds) for one in info.found]
    low = max(0.0, min([*shares, bound]) - _UNDER)
    figure.update_layout(
        xaxis=value_axis(
            theme,
            range=[0, max(info.seconds, 0.1)],
            ticksuffix=" s",
            nticks=6,
            anchor="y",
            minallowed=0,
            title={"text": "time of the search", "font": {"size": 11, "color": theme.third}, "standoff": 6},
        ),
        yaxis=value_axis(theme, range=[low, bound + _OVER], ticksuffix=" %", nticks=6, anchor="x", domain=[floor, 1]),
        xaxis2=value_axis(theme, range=[0, 100], dtick=25, ticksuffix=" %", anchor="y2", fixedrange=True),
        yaxis2=value_axis(
            theme, anchor="x2", domain=[0, ceiling], showgrid=False, fixedrange=True, autorange="reversed"
        ),
        bargap=0.3,
    )
    _draw_curve(figure, info, theme, shares)
    _draw_bars(figure, info, theme)
    for top in (1, ceiling):
        figure.add_annotation(
            tag("% of ideal speed", theme.third, xref="paper", x=0, xanchor="left", xshift=-60, yref="paper", y=top,
                yanchor="bottom", yshift=4)
        )  # fmt: skip
    line = {"color": theme.limit, "width": 1.5, "dash": "6px,3px"}
    figure.add_shape(type="line", xref="x domain", x0=0, x1=1, yref="y", y0=bound, y1=bound, line=line)
    figure.add_shape(type="line", xref="x2", x0=bound, x1=bound, yref="y2 domain", y0=0, y1=1, line=line)
    figure.add_annotation(
        tag(
            f"lower bound on time, {bound:.1f} %", theme.limit, xref="x domain", x=0.99, xanchor="right", y=bound,
            yanchor="bottom",
        )
    )  # fmt: skip
    return figure


def _draw_curve(figure: Figure, info: SearchHistory, theme: Theme, shares: list[float]) -> None:
    """Draw the curve, which is an empty trace while there is no plan."""
    texts = [
        f"<b>{share:.2f} %</b> of ideal speed<br>{format_seconds(one.step_seconds, 4)} a step, by {escape(one.method)}"
        f"<br>after {format_seconds(one.seconds, 2)}, {several(one.evaluations, 'plan')}"
        for one, share in zip(info.found, shares, strict=True)
    ]
    figure.add_trace(
        plotly().Scatter(
            x=[*(one.seconds for one in info.found), info.seconds], y=[*shares, *shares[-1:]],
            mode="lines+markers", line={"color": theme.measured, "width": 1.8, "shape": "hv"},
            marker={"size": [5] * len(shares) + [0], "color": theme.measured},
            hovertext=[*texts, *texts[-1:]], hoverinfo="text", showlegend=False, name="best so far",
        )
    )  # fmt: skip


def _draw_bars(figure: Figure, info: SearchHistory, theme: Theme) -> None:
    """Draw a bar for each baseline and one for the search, with a remark where there is no plan."""
    seconds = {name: value for name, value in info.baselines.items() if value is not None}
    if info.found:
        seconds["search"] = info.found[-1].step_seconds
    names = [*info.baselines, "search"]
    values = [100 * info.share(seconds[name]) if name in seconds else 0.0 for name in names]
    high = [value > _ROOM for value in values]
    figure.add_trace(
        plotly().Bar(
            orientation="h", x=values, y=names, xaxis="x2", yaxis="y2", showlegend=False,
            marker={"color": [theme.third] * len(info.baselines) + [theme.measured], "line": {"width": 0}},
            text=[f"{v:.1f} %" if name in seconds else "no plan" for name, v in zip(names, values, strict=True)],
            textposition=["inside" if inside else "outside" for inside in high], textangle=0, insidetextanchor="end",
            textfont={"color": [theme.paper if inside else theme.second for inside in high], "size": 11},
            hovertext=[
                f"<b>{name}</b><br>" + (f"{format_seconds(seconds[name], 4)} a step" if name in seconds else "no plan")
                for name in names
            ],
            hoverinfo="text",
        )
    )  # fmt: skip
