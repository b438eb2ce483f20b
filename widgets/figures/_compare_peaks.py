"""The peaks of several steps as horizontal bars, stacked by kind, with their amounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.units import Unit, byte_unit, bytes_label
from widgets.figures.frame import SQUARE, add_key, framed, plotly, tag, value_axis
from widgets.figures.theme import Theme, escape, shorten
from widgets.info import ComparePeaks, Group, Peak

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_ROW, _FOOT, _THICK = 34, 34, 0.68
#: Pixels of a letter of a name, and most letters of a name that are shown.
_LETTER, _NAME = 6.4, 26
#: Length of the axis relative to the longest bar, so that its number fits.
_ROOM = 1.25
#: The key lists groups with at least this share of the longest bar; thinner parts are invisible.
_SEEN = 1 / 300


def draw(info: ComparePeaks, theme: Theme) -> Figure:
    """Draw a row per step."""
    names = [shorten(peak.name, _NAME) for peak in info.peaks]
    rows, longest = [*range(len(names))], max(info.highest.total, 1)
    unit = byte_unit(longest)
    figure = framed(theme, "Memory at the peak", "", info.summary, _ROW * len(rows) + _FOOT)
    left = 20 + round(_LETTER * max(map(len, names)))
    figure.layout.annotations[0].xshift = 10 - left
    figure.update_layout(
        barmode="stack",
        margin={"l": left},
        uniformtext={"mode": "hide", "minsize": 11},
        xaxis=value_axis(
            theme, range=[0, _ROOM * longest / unit.size], ticksuffix=f" {unit.name}", nticks=7,
            fixedrange=True,
        ),
        yaxis=value_axis(
            theme, range=[len(rows) - 0.5, -0.5], tickvals=rows, ticktext=[escape(name) for name in names],
            showgrid=False, fixedrange=True, tickfont={"size": 12, "color": theme.ink},
        ),
    )  # fmt: skip
    for group in info.groups:
        _draw_group(figure, info, group, unit, theme)
    for row, peak in enumerate(info.peaks):
        text = f"<b>{bytes_label(peak.total)}</b>{_change(peak, info.peaks[0], theme)}"
        figure.add_annotation(
            tag(text, theme.ink, x=peak.total / unit.size, y=row, xanchor="left", xshift=4, yanchor="middle")
        )
    seen = [group for group in info.groups if max(peak.bytes.get(group, 0) for peak in info.peaks) >= _SEEN * longest]
    add_key(figure, theme, [(group.value, theme.kinds[group], SQUARE) for group in seen])
    return figure


def _draw_group(figure: Figure, info: ComparePeaks, group: Group, unit: Unit, theme: Theme) -> None:
    sizes = [peak.bytes.get(group, 0) for peak in info.peaks]
    hovers = [
        f"<b>{escape(peak.name)}</b><br>{group.value}: {bytes_label(size)} of {bytes_label(peak.total)}"
        for peak, size in zip(info.peaks, sizes, strict=True)
    ]
    figure.add_trace(
        plotly().Bar(
            orientation="h", y=[*range(len(sizes))], x=[size / unit.size for size in sizes], width=_THICK,
            name=group.value, text=[_number(size / unit.size) for size in sizes],
            textposition="inside", insidetextanchor="middle", textangle=0,
            textfont={"color": theme.on_kinds[group], "size": 11},
            marker={"color": theme.kinds[group], "line": {"color": theme.paper, "width": 1}},
            hovertext=hovers, hoverinfo="text",
        )
    )  # fmt: skip


def _number(size: float) -> str:
    """Three digits, or all digits before the point, in the unit of the axis."""
    return f"{size:.{0 if size >= 100 else 1 if size >= 10 else 2}f}" if size else ""


def _change(peak: Peak, first: Peak, theme: Theme) -> str:
    """The change relative to the first step, if a percentage shows any."""
    change = round(100 * (peak.total / first.total - 1)) if first.total else 0
    sign = "+" if change > 0 else "\N{MINUS SIGN}"
    return f'  <span style="color:{theme.second}">{sign}{abs(change)} %</span>' if change else ""
