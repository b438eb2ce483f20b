"""Memory of two plans over time, and below it when the tensors that they treat differently are on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.plan import TensorDifference
from planner.units import Unit, byte_unit, bytes_label, format_seconds, several
from widgets.figures._pixel_columns import columns
from widgets.figures.frame import LINE, add_budget, add_key, framed, plotly, tag, time_axis, unit_label, value_axis
from widgets.figures.theme import Theme, escape, mixed, shorten
from widgets.info import GROUP_OF, ComparePlans, Curve, Floats

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_HEIGHT, _FOOT, _HEAD, _ROW = 230, 34, 52, 36
_MOST_ROWS, _LETTERS = 8, 24
_NAMES = ("first plan", "second plan")
#: Where the bars of both plans are in a row, and how thick, as shares of its height.
_BARS, _THICK = (0.14, 0.34), 0.17


def draw(info: ComparePlans, theme: Theme) -> Figure:
    """Draw the curves above, a row per tensor below."""
    shown = info.tensors if len(info.tensors) <= _MOST_ROWS else info.tensors[: _MOST_ROWS - 1]
    rest = info.tensors[len(shown) :]
    below = _HEAD + _ROW * len(shown) + (_ROW // 2 if rest else 0) if shown else 0
    floor = below / (_HEIGHT + below)
    figure = framed(theme, "Two plans", info.name, info.summary, _HEIGHT + below + _FOOT)
    scale, x_axis = time_axis(theme, "seconds", max(info.first.end, info.second.end))
    highest = max(int(curve.bytes.max(initial=1)) for curve in (info.first, info.second))
    budget = info.budget_bytes
    on_axis = budget is not None and budget <= 2.5 * highest
    top = 1.15 * max(highest, budget if budget is not None and on_axis else 0)
    unit = byte_unit(top)
    figure.update_layout(
        xaxis={**x_axis, "anchor": "y", "hoverformat": ".4g"},
        yaxis=value_axis(theme, domain=[floor, 1], range=[0, top / unit.size], nticks=6, fixedrange=True),
        barmode="overlay",
    )
    colours = theme.third, theme.measured
    curves = (info.first, info.second)
    _draw_difference(figure, curves, mixed(theme.paper, theme.measured, 0.14), scale, unit)
    for curve, name, colour in zip(curves, _NAMES, colours, strict=True):
        moments, amounts = _points(curve, curve.end, scale, unit)
        figure.add_trace(
            plotly().Scatter(
                x=moments, y=amounts, name=name, mode="lines", showlegend=False,
                line={"shape": "hv", "color": colour, "width": 1.6},
                hovertemplate=f"{name}: %{{y:.4f}} {unit.name}<extra></extra>",
            )
        )  # fmt: skip
    figure.add_annotation(unit_label(theme, unit.name))
    add_key(figure, theme, [(name, colour, LINE) for name, colour in zip(_NAMES, colours, strict=True)])
    if budget is not None:
        add_budget(figure, theme, budget, unit, on_axis)
    if shown:
        _draw_rows(figure, shown, rest, colours, theme, (floor, below), scale)
    return figure


def _points(curve: Curve, end: float, scale: float, unit: Unit) -> tuple[Floats, Floats]:
    """A curve until `end`, which is not after its own."""
    amounts = curve.bytes / unit.size
    kept = columns(curve.seconds, amounts, curve.end)
    kept = kept[curve.seconds[kept] <= end]
    return np.append(curve.seconds[kept], end) * scale, np.append(amounts[kept], amounts[kept][-1:])


def _draw_difference(figure: Figure, curves: Sequence[Curve], colour: str, scale: float, unit: Unit) -> None:
    """Fill what is between the curves until the shorter step ends."""
    end = min(curve.end for curve in curves)
    for curve, fill in zip(curves, ("none", "tonexty"), strict=True):
        moments, amounts = _points(curve, end, scale, unit)
        figure.add_trace(
            plotly().Scatter(
                x=moments, y=amounts, mode="lines", line={"shape": "hv", "width": 0}, fill=fill, fillcolor=colour,
                hoverinfo="skip", showlegend=False,
            )
        )  # fmt: skip


def _draw_rows(
    figure: Figure, shown: tuple[TensorDifference, ...], rest: tuple[TensorDifference, ...], colours: tuple[str, str],
    theme: Theme, room: tuple[float, int], scale: float,
) -> None:  # fmt: skip
    """Bars on the axis of time: when each tensor is on the device, by the first plan and by the second."""
    floor, below = room
    roof = floor * (1 - _HEAD / below)
    rows = len(shown) + (0.5 if rest else 0)
    figure.update_layout(
        xaxis2={**figure.layout.xaxis.to_plotly_json(), "anchor": "y2", "matches": "x", "showticklabels": False},
        yaxis2=value_axis(
            theme, domain=[0, roof], anchor="x2", range=[rows, 0], showgrid=False, showticklabels=False,
            fixedrange=True,
        ),
    )  # fmt: skip
    for plan, (colour, place) in enumerate(zip(colours, _BARS, strict=True)):
        spans = [
            (row, one, span)
            for row, one in enumerate(shown)
            for span in (one.second_spans if plan else one.first_spans)
        ]
        figure.add_trace(
            plotly().Bar(
                orientation="h", xaxis="x2", yaxis="y2", showlegend=False, name=_NAMES[plan],
                base=[span[0] * scale for _, _, span in spans],
                x=[(span[1] - span[0]) * scale for _, _, span in spans],
                y=[row + 0.5 + place for row, _, _ in spans], width=_THICK,
                marker={"color": colour, "line": {"width": 0}},
                hovertext=[_hover(one, plan, span) for _, one, span in spans], hoverinfo="text",
            )
        )  # fmt: skip
    left: dict[str, Any] = {"xref": "paper", "x": 0, "xanchor": "left", "align": "left"}
    title = tag("<b>Treated differently</b>&nbsp; when each is on the device", theme.ink, **left, yref="paper", y=roof,
                yanchor="bottom", yshift=2, xshift=10 - figure.layout.margin.l)  # fmt: skip
    title["font"]["size"] = 12
    figure.add_annotation(title)
    for row, one in enumerate(shown):
        square = f'<span style="color:{theme.kinds[GROUP_OF[one.kind]]}">\N{BLACK SQUARE}</span>'
        faint = f'<span style="color:{theme.third}">{bytes_label(one.bytes)}</span>'
        both = zip((one.first, one.second), colours, strict=True)
        ways = " / ".join(f'<span style="color:{colour}">{treatment}</span>' for treatment, colour in both)
        text = f"{square} {escape(shorten(one.name, _LETTERS))} {faint} {ways}"
        figure.add_annotation(tag(text, theme.ink, **left, yref="y2", y=row + 0.3, yanchor="middle"))
    if rest:
        text = f"{several(len(rest), 'smaller tensor')}, {bytes_label(sum(one.bytes for one in rest))}"
        figure.add_annotation(tag(text, theme.third, **left, yref="y2", y=len(shown) + 0.25, yanchor="middle"))


def _hover(one: TensorDifference, plan: int, span: tuple[float, float]) -> str:
    treatment = f"{_NAMES[plan]}: {one.second if plan else one.first}"
    line = f"<br>{escape(one.line)}" if one.line else ""
    when = f"on the device from {format_seconds(span[0])} to {format_seconds(span[1])}"
    return f"<b>{escape(one.name)}</b>, {bytes_label(one.bytes)}{line}<br>{treatment}<br>{when}"
