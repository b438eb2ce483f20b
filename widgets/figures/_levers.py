"""Peak across and speed up: a mark for each way to make a step, with the memory of the machine as a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from planner.units import Unit, byte_unit, bytes_label, format_seconds
from widgets.figures.frame import add_key, framed, plotly, tag, unit_label, value_axis
from widgets.figures.theme import Theme, escape
from widgets.info import Group, LeverPoint, LeverPoints

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_HEIGHT, _MARK = 330, 10
#: How far beyond the highest peak the memory of the machine is still drawn in its place.
_NEAR = 1.5
#: Room right of and above the marks, relative to the furthest.
_ROOM, _TOP = 1.12, 1.3
#: The size of a narrow plot above its axis, of a letter and a line of a name, and the gap beside a mark, in pixels.
_WIDE, _TALL, _LETTER, _LINE, _GAP = 480, _HEIGHT - 40, 6.3, 15, 9
#: Where a name may stand beside its mark, the first that is free: how it is anchored, across and up.
_PLACES = (("left", "middle"), ("right", "middle"), ("left", "bottom"), ("right", "bottom"), ("left", "top"),
           ("right", "top"))  # fmt: skip
_SYMBOLS = {"as given": "star", "lever": "circle", "pair": "diamond", "plan": "square"}
_MARKS = {"as given": "\N{BLACK STAR}", "lever": "\N{BLACK CIRCLE}", "pair": "\N{BLACK DIAMOND}",
          "plan": "\N{BLACK SQUARE}"}  # fmt: skip


def draw(info: LeverPoints, theme: Theme) -> Figure:
    """Draw the marks, and the names of those that no other beats in both."""
    figure = framed(theme, "Levers", info.title, info.summary, _HEIGHT)
    highest = max(point.peak_bytes for point in info.points)
    near = info.budget_bytes <= _NEAR * highest
    longest = max(highest, info.budget_bytes) if near else highest
    unit, end = byte_unit(longest), _ROOM * longest
    top = _TOP * max(point.samples_per_second for point in info.points)
    figure.update_layout(
        xaxis=value_axis(theme, range=[0, end / unit.size], ticksuffix=f" {unit.name}", nticks=7, fixedrange=True),
        yaxis=value_axis(theme, range=[0, top], nticks=6, fixedrange=True, tickformat="~s"),
    )
    colours = _colours(theme)
    for kind in reversed(_SYMBOLS):  # the step as given on top
        points = [point for point in info.points if point.kind == kind]
        if points:
            _draw_marks(figure, info, points, unit, colours[kind], theme)
    _draw_names(figure, info, unit, end, top, theme)
    _draw_memory(figure, info, unit, end if near else None, theme)
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
    """Name the step as given and the best, where a name covers no marks or other names, and if possible no line."""
    marks = [(_WIDE * point.peak_bytes / end, _TALL * point.samples_per_second / top) for point in info.points]
    taken = [(x - _MARK / 2, y - _MARK / 2, x + _MARK / 2, y + _MARK / 2) for x, y in marks]
    limit = _WIDE * info.budget_bytes / end
    for point, (x, y) in sorted(zip(info.points, marks, strict=True), key=lambda both: both[0].kind != "as given"):
        if point.kind != "as given" and not point.best:
            continue
        lines = [escape(line) for line in point.name.replace(" and ", " and\n").split("\n")]
        wide, tall = _LETTER * max(map(len, lines)), _LINE * len(lines)
        free = []
        for across, up in _PLACES:
            left = x + _GAP if across == "left" else x - _GAP - wide
            low = {"middle": y - tall / 2, "bottom": y + _GAP / 2, "top": y - _GAP / 2 - tall}[up]
            box = left, low, left + wide, low + tall
            if left >= 0 and box[2] <= _WIDE and low >= 0 and not any(_overlap(box, other) for other in taken):
                free.append((left < limit < box[2], across, up, box))
        if not free:
            continue
        crosses, across, up, box = min(free, key=lambda place: place[0])
        taken.append(box)
        shift = {"middle": 0, "bottom": _GAP // 2, "top": -(_GAP // 2)}[up]
        patch: dict[str, Any] = {"bgcolor": theme.paper, "borderpad": 1} if crosses else {}
        figure.add_annotation(
            tag(
                "<br>".join(lines), theme.ink, x=point.peak_bytes / unit.size, y=point.samples_per_second,
                xanchor=across, xshift=_GAP if across == "left" else -_GAP, yanchor=up, yshift=shift, align=across,
                **patch,
            )
        )  # fmt: skip


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _draw_memory(figure: Figure, info: LeverPoints, unit: Unit, end: float | None, theme: Theme) -> None:
    """A line at the memory for the step, with its tag; only the tag where the axis has no end that far."""
    text = f"{escape(info.machine)}: {bytes_label(info.budget_bytes)} for the step"
    place = {"xref": "paper", "x": 1, "xanchor": "right"}
    if end is not None:
        side = "left" if 2 * info.budget_bytes < end else "right"
        place = {"x": info.budget_bytes / unit.size, "xanchor": side}
        figure.add_shape(
            type="line", x0=place["x"], x1=place["x"], yref="y domain", y0=0, y1=1,
            line={"color": theme.limit, "width": 1.5},
        )  # fmt: skip
    else:
        text = f"{text}, far to the right"
    figure.add_annotation(
        tag(text, theme.on_limit, theme.limit, yref="y domain", y=1, yanchor="top", **place)
    )  # fmt: skip


def _about(point: LeverPoint, info: LeverPoints) -> str:
    over = point.peak_bytes - info.budget_bytes
    fits = "fits" if point.fits else f"does not fit: {bytes_label(over)} more than there is for the step"
    return (
        f"<b>{escape(point.name)}</b><br>{bytes_label(point.peak_bytes)}, {fits}<br>"
        f"{format_seconds(point.step_seconds)} per step, {point.samples_per_second:,.0f} {info.unit} per second<br>"
        f"numbers: {escape(str(point.numbers))}"
    )
