"""The three streams: compute by phase with its stalls, copies out and copies in by group."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from planner.graph import Phase
from planner.units import exact_bytes_label, format_seconds, several
from widgets.figures._join_short_spans import Spans, joined
from widgets.figures.frame import SQUARE, STRIPED, STRIPES, add_key, framed, plotly, tag, time_axis, value_axis
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
    key = [(text, colour, SQUARE) for text, colour in entries.items()]
    add_key(figure, theme, [*key, ("run again", theme.second, STRIPED)] if info.again.any() else key)
    return figure


def _draw_compute(figure: Figure, info: Streams, theme: Theme, scale: float, pixel: float) -> dict[str, str]:
    entries = {}
    for phase, again in product(Phase, (False, True)):
        ours = [slot for slot, its in enumerate(info.phases) if its is phase and info.again[slot] == again]
        if ours:
            spans = joined(info.compute[ours], pixel)
            texts = [
                _ran([info.op_names[slot] for slot in ours[first : first + count]], phase, again)
                for first, count in zip(spans.first.tolist(), spans.members.tolist(), strict=True)
            ]
            pattern = STRIPES | {"fgcolor": theme.paper, "bgcolor": theme.phases[phase]} if again else None
            name = f"{phase.value}, run again" if again else phase.value
            _bars(figure, theme, spans, texts, name, theme.phases[phase], _COMPUTE, scale, pixel, pattern)
            entries[phase.value] = theme.phases[phase]
    return entries


def _ran(names: Sequence[str], phase: Phase, again: bool) -> str:
    what = f"{phase.value}, run again" if again else phase.value
    if len(names) == 1:
        return f"<b>{escape(names[0])}</b><br>{what}"
    head = several(len(names), f"{phase.value} op") + (", run again" if again else "")
    return f"<b>{head}</b><br>from {escape(names[0])}<br>to {escape(names[-1])}"


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
    pattern = _HATCH | {"fgcolor": theme.limit, "bgcolor": theme.paper}
    _bars(figure, theme, spans, texts, "stalls", theme.limit, _COMPUTE, scale, pixel, pattern)
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
    scale: float, pixel: float, pattern: dict[str, Any] | None = None,
) -> None:  # fmt: skip
    length: Floats = spans.stop - spans.start
    marker = {"color": colour, "line": {"color": theme.paper, "width": np.where(length > 4 * pixel, 0.6, 0.0)}}
    if pattern is not None:
        marker["pattern"] = pattern
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
