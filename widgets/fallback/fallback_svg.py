"""A plan as a static SVG without script: addresses over time with the three streams below.

Addresses are an image whose pixels blend the colours of the boxes they cover, so a plan of any size takes some tens
of kilobytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.graph import Phase
from planner.units import byte_unit, bytes_label, second_unit
from widgets.fallback.raster import blended, coverage, png
from widgets.figures import FONT, LIGHT, Theme
from widgets.info import STACK, Floats
from widgets.messages import Message, unpack

WIDTH = 860
_LEFT, _RIGHT, _TOP = 62, 12, 30
_MAP, _GAP, _LANE, _LANE_GAP, _FOOT = 250, 54, 20, 8, 4
_LANES = ("compute", "swap out", "swap in")
HEIGHT = _TOP + _MAP + _GAP + len(_LANES) * (_LANE + _LANE_GAP) + _FOOT
#: Image pixels of the address map per pixel of the drawing; most boxes with a hairline outline; width of a letter.
_SHARP, _PARTED, _LETTER = 2, 400, 5.8
_PHASES = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)


@dataclass
class _Canvas:
    """The shapes drawn so far, and the scales in pixels per second and per byte."""

    theme: Theme
    per_second: float
    per_byte: float
    shapes: list[str] = field(default_factory=list)

    def x(self, seconds: Any) -> Any:
        return _LEFT + seconds * self.per_second

    def y(self, address: Any) -> Any:
        return _TOP + _MAP - address * self.per_byte

    def add(self, *shapes: str) -> None:
        self.shapes += shapes

    def text(self, x: float, y: float, text: str, fill: str, anchor: str = "start", weight: int = 400) -> None:
        heavy = f' font-weight="{weight}"' if weight != 400 else ""
        shown = escape("".join(letter for letter in text if letter.isprintable()))  # XML has no control characters
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}" text-anchor="{anchor}"{heavy}>{shown}</text>')

    def rectangles(self, boxes: Iterable[tuple[float, float, float, float]], fill: str, more: str = "") -> None:
        """Rectangles of one colour as one path; each is left, top, width and height."""
        path = "".join(
            f"M{_short(x)} {_short(y)}h{_short(w)}v{_short(h)}h-{_short(w)}z" for x, y, w, h in boxes if w > 0 and h > 0
        )
        if path:
            self.add(f'<path fill="{fill}" d="{path}"{more}/>')


def draw(graph: Message, plan: Message, theme: Theme = LIGHT) -> str:
    """Draw a plan as SVG.

    Args:
        graph, plan: the messages of those kinds.
        theme: the palette.
    """
    columns, scene, content = unpack(plan), unpack(graph), plan.content
    budget, peak = content["budget_bytes"], content["peak_bytes"]
    shown = budget <= 2.5 * max(peak, 1)
    top = 1.06 * max(peak, budget if shown else 0, 1)
    canvas = _Canvas(theme, (WIDTH - _LEFT - _RIGHT) / max(content["step_seconds"], 1e-12), _MAP / top)
    canvas.add(f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{theme.paper}"/>')
    _axes(canvas, top, content["step_seconds"])
    _addresses(canvas, columns, scene, graph.content["storage_names"])
    _limit(canvas, budget, shown)
    _streams(canvas, columns, scene)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="{escape(FONT)}" font-size="11">{"".join(canvas.shapes)}</svg>'
    )


def _axes(canvas: _Canvas, top: float, seconds: float) -> None:
    theme, unit, second = canvas.theme, byte_unit(top), second_unit(seconds)
    canvas.text(_LEFT - 8, _TOP - 12, unit.name, theme.third, "end")
    for tick in _ticks(top / unit.size):
        y = canvas.y(tick * unit.size)
        canvas.add(f'<path d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}" stroke="{theme.grid}"/>')
        canvas.text(_LEFT - 8, y + 4, f"{tick:g}", theme.second, "end")
    for tick in _ticks(seconds / second.size):
        x = canvas.x(tick * second.size)
        anchor = "start" if not tick else "end" if x > WIDTH - _RIGHT - 24 else "middle"
        canvas.text(x, _TOP + _MAP + 15, f"{tick:g} {second.name}", theme.second, anchor)


def _addresses(canvas: _Canvas, plan: Mapping[str, Any], scene: Mapping[str, Any], names: list[str]) -> None:
    storage = plan["residency_storage"]
    low, size = plan["residency_offset"], scene["storage_bytes"][storage]
    spans = [canvas.x(plan[name].astype(np.float64)) for name in ("residency_start", "residency_stop")]
    boxes = np.stack([*spans, canvas.y(low + size), canvas.y(low)], axis=1)
    kind = np.where(size > 0, scene["storage_kind"][storage], -1)
    _image(canvas, boxes, kind)
    wide, tall = boxes[:, 1] - boxes[:, 0], boxes[:, 3] - boxes[:, 2]
    parted = np.flatnonzero((kind >= 0) & (wide > 5) & (tall > 5))
    parted = parted[np.argsort(-(wide * tall)[parted], kind="stable")][:_PARTED]
    lines = zip(*(column.tolist() for column in (boxes[:, 0], boxes[:, 2], wide, tall)), strict=True)
    every = list(lines)
    canvas.rectangles([every[box] for box in parted], "none", f' stroke="{canvas.theme.paper}" stroke-width=".7"')
    present = [(group.value, canvas.theme.kinds[group]) for number, group in enumerate(STACK) if (kind == number).any()]
    _key(canvas, _TOP - 12.5, "Addresses over time", present)
    _names(canvas, boxes[parted], kind[parted], [names[each] for each in storage[parted]])


def _image(canvas: _Canvas, boxes: Floats, kind: NDArray[np.int32]) -> None:
    """Draw the coverage of the boxes as one image, with `_SHARP` image pixels per pixel of the drawing."""
    width, height = _SHARP * (WIDTH - _LEFT - _RIGHT), _SHARP * _MAP
    pixels = _SHARP * (boxes - [_LEFT, _LEFT, _TOP, _TOP])
    pixels = np.clip(pixels, 0, [width, width, height, height])
    shares = [
        (coverage(pixels[kind == number], width, height), canvas.theme.kinds[group])
        for number, group in enumerate(STACK)
    ]
    canvas.add(
        f'<image x="{_LEFT}" y="{_TOP}" width="{WIDTH - _LEFT - _RIGHT}" height="{_MAP}" '
        f'href="{png(blended(shares, canvas.theme.paper), canvas.theme.paper)}"/>'
    )


def _key(canvas: _Canvas, y: float, title: str, entries: Sequence[tuple[str, str]]) -> None:
    """A title at the left and the colour key at the right."""
    x = float(WIDTH - _RIGHT)
    for label, fill in reversed(entries):
        x -= _LETTER * len(label) + 26
        canvas.add(f'<rect x="{x:.0f}" y="{y - 8.5:.1f}" width="9" height="9" rx="1" fill="{fill}"/>')
        canvas.text(x + 13, y, label, canvas.theme.second)
    canvas.text(_LEFT, y, title, canvas.theme.ink, weight=600)


def _names(canvas: _Canvas, boxes: Floats, kinds: NDArray[np.int32], names: list[str]) -> None:
    """Write names into the boxes that have room for them, largest boxes first."""
    for (left, right, top, bottom), kind, name in zip(boxes.tolist(), kinds, names, strict=True):
        text = name.rpartition("/")[0] or name
        if bottom - top >= 13 and len(text) * _LETTER <= right - left - 8:
            fill = canvas.theme.on_kinds[STACK[kind]]
            canvas.text((left + right) / 2, (top + bottom) / 2 + 4, text, fill, "middle")


def _limit(canvas: _Canvas, budget: int, shown: bool) -> None:
    theme, text = canvas.theme, f"budget {bytes_label(budget)}"
    if not shown:
        canvas.text(WIDTH - _RIGHT, _TOP + 12, f"{text}, far above", theme.limit, "end")
        return
    y, width = canvas.y(budget), 6.3 * len(text) + 8
    canvas.add(
        f'<path d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}" stroke="{theme.limit}" stroke-width="1.5"/>',
        f'<rect x="{WIDTH - _RIGHT - width:.1f}" y="{y - 8:.1f}" width="{width:.1f}" height="16" rx="2" '
        f'fill="{theme.limit}"/>',
    )
    canvas.text(WIDTH - _RIGHT - width / 2, y + 4, text, theme.on_limit, "middle")


def _streams(canvas: _Canvas, plan: Mapping[str, Any], scene: Mapping[str, Any]) -> None:
    theme, kinds, phase = canvas.theme, scene["storage_kind"], scene["op_phase"][plan["order"]]
    tops = [_TOP + _MAP + _GAP + lane * (_LANE + _LANE_GAP) for lane in range(len(_LANES))]
    key = [(each.value, theme.phases[each]) for at, each in enumerate(_PHASES) if (phase == at).any()]
    waiting = [("waiting", theme.limit)] if len(plan["stall_op"]) else []
    title = "Streams, striped where ops run again" if len(plan["repeat_slot"]) else "Streams"
    _key(canvas, tops[0] - 11, title, [*key, *waiting])
    for top, name in zip(tops, _LANES, strict=True):
        canvas.text(_LEFT - 8, top + 14, name, theme.second, "end")
        canvas.rectangles([(_LEFT, top, WIDTH - _LEFT - _RIGHT, _LANE)], theme.sunken)
    lanes = [
        *((tops[0], theme.phases[each], phase == at, "op") for at, each in enumerate(_PHASES)),
        *((tops[1], theme.kinds[each], kinds[plan["out_storage"]] == at, "out") for at, each in enumerate(STACK)),
        *((tops[2], theme.kinds[each], kinds[plan["in_storage"]] == at, "in") for at, each in enumerate(STACK)),
    ]
    for top, colour, ours, name in lanes:
        runs = _runs(canvas, plan[f"{name}_start"][ours], plan[f"{name}_stop"][ours])
        canvas.rectangles([(left, top, right - left, _LANE) for left, right in runs], colour)
    repeats = plan["repeat_slot"]
    again = _runs(canvas, plan["op_start"][repeats], plan["op_stop"][repeats])
    stripes = range(tops[0] + 2, tops[0] + _LANE, 3)
    canvas.rectangles([(left, y, right - left, 1) for left, right in again for y in stripes], theme.paper)
    stalls = _runs(canvas, plan["stall_start"], plan["stall_stop"])
    canvas.rectangles([(left, tops[0] - 3, right - left, 4) for left, right in stalls], theme.limit)


def _runs(canvas: _Canvas, start: Floats, stop: Floats) -> Floats:
    """Merge spans into runs of the half pixels that they cover."""
    first = np.floor(2 * canvas.x(start.astype(np.float64))).astype(int)
    last = np.maximum(np.ceil(2 * canvas.x(stop.astype(np.float64)) - 0.5).astype(int), first + 1)
    change = np.zeros(2 * WIDTH + 4, np.int64)
    np.add.at(change, np.minimum(first, 2 * WIDTH), 1)
    np.add.at(change, np.minimum(last, 2 * WIDTH + 2), -1)
    covered = np.cumsum(change) > 0
    return np.flatnonzero(np.diff(covered, prepend=False, append=False)).reshape(-1, 2) / 2


def _short(value: float) -> str:
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def _ticks(end: float) -> list[float]:
    """Round numbers from 0 to the end of an axis, about six."""
    if end <= 0:
        return [0.0]
    rough = end / 6
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= rough)
    return [float(f"{step * k:.6g}") for k in range(int(end / step) + 1)]
