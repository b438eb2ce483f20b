"""Peak across and speed up: a mark for each way to make a step, with the memory of the machine as a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.units import Unit, byte_unit, bytes_label, format_seconds
from widgets.figures.frame import add_key, framed, plotly, tag, unit_label, value_axis
from widgets.figures.theme import Theme, escape, shorten
from widgets.info import Group, LeverPoint, LeverPoints

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_HEIGHT, _MARK, _NAME = 330, 10, 30
#: How far beyond the highest peak the memory of the machine is still drawn in its place.
_NEAR = 1.5
#: Room right of and above the marks for their names; the least distance of two names, as shares of the axes.
_ROOM, _APART_X, _APART_Y = 1.12, 0.36, 0.055
_SYMBOLS = {"as given": "star", "lever": "circle", "pair": "diamond", "plan": "square"}
_MARKS = {"as given": "\N{BLACK STAR}", "lever": "\N{BLACK CIRCLE}", "pair": "\N{BLACK DIAMOND}",
          "plan": "\N{BLACK SQUARE}"}  # fmt: skip


def draw(info: LeverPoints, theme: Theme) -> Figure:
    """Draw the marks, and the names of those that no other beats in both."""
    figure = framed(theme, "Levers", f"{info.name}, {info.machine}", info.summary, _HEIGHT)
    highest = max(point.peak_bytes for point in info.points)
    near = info.budget_bytes <= _NEAR * highest
    longest = max(highest, info.budget_bytes) if near else highest
    unit, end = byte_unit(longest), _ROOM * longest
    top = 1.15 * max(point.samples_per_second for point in info.points)
    figure.update_layout(
        xaxis=value_axis(theme, range=[0, end / unit.size], ticksuffix=f" {unit.name}", nticks=7, fixedrange=True),
        yaxis=value_axis(theme, range=[0, top], nticks=6, fixedrange=True, tickformat="~s"),
    )
    colours = _colours(theme)
    for kind in _SYMBOLS:
        points = [point for point in info.points if point.kind == kind]
        if points:
            _draw_marks(figure, info, points, unit, colours[kind], theme)
    _draw_names(figure, info, unit, end, top, theme)
    _draw_memory(figure, info, unit, near, theme)
    figure.add_annotation(unit_label(theme, f"{info.unit}/s"))
    kinds = dict.fromkeys(point.kind for point in info.points)
    entries = [(kind, colours[kind], _MARKS[kind]) for kind in _SYMBOLS if kind in kinds]
    hollow = [("hollow: does not fit", theme.second, "\N{WHITE CIRCLE}")]
    add_key(figure, theme, entries + ([] if all(point.fits for point in info.points) else hollow))
    return figure


def _colours(theme: Theme) -> dict[str, str]:
    return {
        "as given": theme.ink, "lever": theme.measured, "pair": theme.kinds[Group.ACTIVATION],
        "plan": theme.kinds[Group.GRADIENT],
    }  # fmt: skip


def _draw_marks(
    figure: Figure, info: LeverPoints, points: list[LeverPoint], unit: Unit, colour: str, theme: Theme
) -> None:
    symbols = [_SYMBOLS[point.kind] + ("" if point.fits else "-open") for point in points]
    figure.add_trace(
        plotly().Scatter(
            x=[point.peak_bytes / unit.size for point in points], y=[point.samples_per_second for point in points],
            mode="markers", name=points[0].kind, showlegend=False, cliponaxis=False,
            marker={
                "symbol": symbols, "size": _MARK + 4 * (points[0].kind == "as given"), "color": colour,
                "line": {"color": [theme.paper if point.fits else colour for point in points], "width": 1.2},
            },
            customdata=[_about(point, info) for point in points], hovertemplate="%{customdata}<extra></extra>",
        )
    )  # fmt: skip


def _draw_names(figure: Figure, info: LeverPoints, unit: Unit, end: float, top: float, theme: Theme) -> None:
    """Name the step as given and the best, as far as there is room."""
    named: list[tuple[float, float]] = []
    for point in sorted(info.points, key=lambda point: (point.kind != "as given", not point.best, point.peak_bytes)):
        place = point.peak_bytes / end, point.samples_per_second / top
        free = all(abs(place[0] - x) > _APART_X or abs(place[1] - y) > _APART_Y for x, y in named)
        if (point.kind == "as given" or point.best) and free:
            named.append(place)
            left = place[0] > 0.5
            figure.add_annotation(
                tag(
                    escape(shorten(point.name, _NAME)), theme.ink, x=point.peak_bytes / unit.size,
                    y=point.samples_per_second, xanchor="right" if left else "left", xshift=-9 if left else 9,
                    yanchor="middle",
                )
            )  # fmt: skip


def _draw_memory(figure: Figure, info: LeverPoints, unit: Unit, near: bool, theme: Theme) -> None:
    text = f"{escape(info.machine)}: {bytes_label(info.budget_bytes)} for the step"
    place = {"xref": "paper", "x": 1} if not near else {"x": info.budget_bytes / unit.size}
    if near:
        figure.add_shape(
            type="line", x0=place["x"], x1=place["x"], yref="y domain", y0=0, y1=1,
            line={"color": theme.limit, "width": 1.5},
        )  # fmt: skip
    else:
        text = f"{text}, far to the right"
    figure.add_annotation(
        tag(text, theme.on_limit, theme.limit, yref="y domain", y=0, yanchor="bottom", yshift=2, xanchor="right",
            **place)
    )  # fmt: skip


def _about(point: LeverPoint, info: LeverPoints) -> str:
    fits = "fits" if point.fits else "does not fit"
    return (
        f"<b>{escape(point.name)}</b><br>{bytes_label(point.peak_bytes)}, {fits}<br>"
        f"{format_seconds(point.step_seconds)} per step, {point.samples_per_second:,.0f} {info.unit} per second<br>"
        f"numbers: {escape(str(point.numbers))}"
    )
