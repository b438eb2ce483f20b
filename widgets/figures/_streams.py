"""The three streams: compute by phase with its stalls, copies out and copies in by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from planner.graph import Phase
from planner.units import exact_bytes_label, format_seconds, several
from widgets.figures._join_short_spans import Spans, joined
from widgets.figures.frame import SQUARE, add_key, framed, plotly, tag, time_axis, value_axis
from widgets.figures.theme import Theme, escape
from widgets.info import STACK, Copy, Floats, Streams

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


class _LaneRow(NamedTuple):
    """A stream's range on the vertical axis, in pixels, and its labels."""

    low: int
    high: int
    name: str
    link: str


_COMPUTE, _OUT, _IN = (
    _LaneRow(96, 136, "compute", ""),
    _LaneRow(46, 76, "swap out", "D2H"),
    _LaneRow(4, 34, "swap in", "H2D"),
)
_HEIGHT, _FOOT = 150, 34
#: Pixels of a wide notebook; spans shorter than a few pixels are joined or widened.
_WIDE = 1200
_HATCH = {"shape": "/", "size": 5, "solidity": 0.4}


def draw(info: Streams, theme: Theme) -> Figure:
    """Draw the lanes."""
    title = "Streams, measured" if info.measured else "Streams, predicted"
    figure = framed(theme, title, info.name, info.summary, _HEIGHT + _FOOT)
    scale, x_axis = time_axis(theme, "seconds", info.seconds)
    figure.update_layout(
        xaxis=x_axis,
        yaxis=value_axis(theme, range=[0, _HEIGHT], showgrid=False, showticklabels=False, fixedrange=True),
        barmode="overlay",
    )
    for lane in (_COMPUTE, _OUT, _IN):
        figure.add_shape(
            type="rect", xref="x domain", x0=0, x1=1, y0=lane.low, y1=lane.high, fillcolor=theme.sunken,
            line={"width": 0}, layer="below",
        )  # fmt: skip
        text = lane.name + (f'<br><span style="color:{theme.third}">{lane.link}</span>' if lane.link else "")
        middle = (lane.low + lane.high) / 2
        figure.add_annotation(
            tag(text, theme.second, xref="paper", x=0, xanchor="right", xshift=-6, y=middle, align="right")
        )
    pixel = info.seconds / _WIDE
    entries = _draw_compute(figure, info, theme, scale, pixel)
    entries |= _draw_copies(figure, info.out, theme, scale, pixel, _OUT)
    entries |= _draw_copies(figure, info.into, theme, scale, pixel, _IN)
    entries |= _draw_stalls(figure, info, theme, scale, pixel)
    add_key(figure, theme, [(text, colour, SQUARE) for text, colour in entries.items()])
    return figure


def _draw_compute(figure: Figure, info: Streams, theme: Theme, scale: float, pixel: float) -> dict[str, str]:
    entries = {}
    for phase in Phase:
        ours = [slot for slot, its in enumerate(info.phases) if its is phase]
        if ours:
            spans = joined(info.compute[ours], pixel)
            texts = [
                f"<b>{escape(info.op_names[ours[first]])}</b><br>{phase.value}" if count == 1 else
                f"<b>{several(count, f'{phase.value} op')}</b><br>from {escape(info.op_names[ours[first]])}"
                f"<br>to {escape(info.op_names[ours[first + count - 1]])}"
                for first, count in zip(spans.first.tolist(), spans.members.tolist(), strict=True)
            ]  # fmt: skip
            _bars(figure, theme, spans, texts, phase.value, theme.phases[phase], _COMPUTE, scale, pixel)
            entries[phase.value] = theme.phases[phase]
    return entries


def _draw_copies(
    figure: Figure, copies: Sequence[Copy], theme: Theme, scale: float, pixel: float, lane: _LaneRow
) -> dict[str, str]:
    entries = {}
    for group in STACK:
        ours = [copy for copy in copies if copy.group is group]
        if ours:
            spans = joined(np.array([(copy.start, copy.stop) for copy in ours]), pixel)
            texts = [
                _copied(ours[first : first + count])
                for first, count in zip(spans.first.tolist(), spans.members.tolist(), strict=True)
            ]
            _bars(figure, theme, spans, texts, f"{lane.name} {group.value}", theme.kinds[group], lane, scale, pixel)
            entries[group.value] = theme.kinds[group]
    return entries


def _copied(copies: Sequence[Copy]) -> str:
    size = sum(copy.bytes for copy in copies)
    head = escape(copies[0].name) if len(copies) == 1 else f"{len(copies)} copies from {escape(copies[0].name)}"
    rate = size / max(sum(copy.stop - copy.start for copy in copies), 1e-12) / 1e9
    return f"<b>{head}</b><br>{copies[0].group.value}, {exact_bytes_label(size)}, {rate:.1f} GB/s"


def _draw_stalls(figure: Figure, info: Streams, theme: Theme, scale: float, pixel: float) -> dict[str, str]:
    """Hatch the stalls, and mark them above the lane, where even the shortest is visible."""
    if not info.stalls:
        return {}
    spans = joined(np.array([(stall.start, stall.stop) for stall in info.stalls]), pixel)
    texts = []
    for first, count in zip(spans.first.tolist(), spans.members.tolist(), strict=True):
        ours = info.stalls[first : first + count]
        longest = max(ours, key=lambda stall: stall.stop - stall.start)
        op = f"{escape(longest.before)} waits" if longest.before else "the end of the step waits"
        head = f"{op} for {escape(longest.cause)}"
        texts.append(f"<b>{head}</b>" if count == 1 else f"<b>{count} stalls</b>, in the longest {head}")
    _bars(figure, theme, spans, texts, "stalls", theme.limit, _COMPUTE, scale, pixel, hatched=True)
    wide = np.maximum(spans.stop - spans.start, 2 * pixel)
    figure.add_trace(
        plotly().Bar(
            x=(spans.start + spans.stop) / 2 * scale, width=wide * scale, base=_COMPUTE.high + 2,
            y=np.full(len(wide), 4),
            marker={"color": theme.limit, "line": {"width": 0}}, name="stalls", hovertext=texts, hoverinfo="text",
        )
    )  # fmt: skip
    return {"stall": theme.limit}


def _bars(
    figure: Figure, theme: Theme, spans: Spans, texts: Sequence[str], name: str, colour: str, lane: _LaneRow,
    scale: float, pixel: float, hatched: bool = False,
) -> None:  # fmt: skip
    length: Floats = spans.stop - spans.start
    marker = {"color": colour, "line": {"color": theme.paper, "width": np.where(length > 4 * pixel, 0.6, 0.0)}}
    if hatched:
        marker["pattern"] = {**_HATCH, "fgcolor": colour, "bgcolor": theme.paper}
    figure.add_trace(
        plotly().Bar(
            x=(spans.start + spans.stop) / 2 * scale, width=length * scale, base=lane.low,
            y=np.full(len(length), lane.high - lane.low), name=name, marker=marker, hoverinfo="text",
            hovertext=[
                f"{text}<br>{format_seconds(stop - start, 4)}, {format_seconds(start, 4)} to {format_seconds(stop, 4)}"
                for text, start, stop in zip(texts, spans.start.tolist(), spans.stop.tolist(), strict=True)
            ],
        )
    )  # fmt: skip
