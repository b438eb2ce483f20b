"""Address map: every residency of a plan as a box of address and time, with the fragmentation and the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from planner.units import byte_unit, exact_bytes_label, format_seconds, several
from widgets.figures._boxes import draw_boxes
from widgets.figures._rectangle_merging import Rectangles, merged
from widgets.figures.frame import (
    HATCHED,
    SQUARE,
    STRIPED,
    STRIPES,
    add_budget,
    add_key,
    framed,
    plotly,
    time_axis,
    unit_label,
    value_axis,
)
from widgets.figures.theme import Theme, escape
from widgets.info import STACK, AddressMap, Floats, Ints

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_HEIGHT, _FOOT = 400, 34
#: Pixels of the plot in a narrow notebook, of a letter and of a line, to decide whether a name fits its box.
_NARROW, _LETTER, _LINE = 480, 6.0, 14
#: Most rectangles of one colour that a browser draws fast.
_MOST_BOXES = 5000
#: Most copies that are hatched and boxes that are striped, the largest first.
_MOST_PATTERNS = 1000


def draw(info: AddressMap, theme: Theme) -> Figure:
    """Draw the boxes, one trace per colour."""
    figure = framed(theme, "Addresses over time", info.name, info.summary, _HEIGHT + _FOOT)
    scale, x_axis = time_axis(theme, info.axis, info.end)
    shown = info.budget_bytes <= 2.5 * max(info.peak_bytes, 1)
    top = 1.1 * max(info.peak_bytes, info.budget_bytes if shown else 0, 1)
    unit = byte_unit(top)
    figure.update_layout(
        xaxis=x_axis | {"showgrid": False},
        yaxis=value_axis(theme, range=[0, top / unit.size], nticks=9, minallowed=0, maxallowed=top / unit.size),
        barmode="overlay",
    )
    pixel = (max(info.end, 1e-12) / _NARROW, top / _HEIGHT)
    for number, group in enumerate(STACK):
        ours = np.flatnonzero(info.group == number)
        if len(ours):
            high = (info.offset + info.bytes)[ours].astype(np.float64)
            boxes = Rectangles(info.start[ours], info.stop[ours], info.offset[ours].astype(np.float64), high, ours)
            boxes = merged(boxes, pixel, _MOST_BOXES)
            hovers = [_hover(info, box) for box in boxes.source.tolist()]
            draw_boxes(figure, boxes, group.value, theme.kinds[group], theme.paper, hovers, pixel, scale, unit.size)
    entries = [(group.value, theme.kinds[group], SQUARE) for at, group in enumerate(STACK) if at in info.group]
    if _draw_copies(figure, info, theme, pixel, scale, unit.size):
        entries.append(("on the link", theme.second, HATCHED))
    if _draw_recomputed(figure, info, theme, pixel, scale, unit.size):
        entries.append(("recomputed", theme.second, STRIPED))
    figure.add_annotation(unit_label(theme, unit.name))
    add_key(figure, theme, entries)
    _draw_names(figure, info, theme, pixel, scale, unit.size)
    add_budget(figure, theme, info.budget_bytes, unit, shown)
    return figure


def _draw_names(
    figure: Figure, info: AddressMap, theme: Theme, pixel: tuple[float, float], scale: float, unit: float
) -> None:
    """Write names into the boxes that have room for them beside the hatched parts."""
    left = np.fmax(info.start, info.copy_in[:, 1])
    right = np.fmin(info.stop, info.copy_out[:, 0])
    wide, tall = (right - left) / pixel[0], info.bytes / pixel[1]
    room = np.flatnonzero((tall >= _LINE) & (wide >= 3 * _LETTER)).tolist()
    named = [(box, text) for box in room if (text := _fitting(info.names[box], wide[box]))]
    boxes = [box for box, _ in named]
    # bar texts, because plotly hides them where they do not fit, however narrow the plot becomes
    figure.add_trace(
        plotly().Bar(
            x=(left + right)[boxes] / 2 * scale, width=(right - left)[boxes] * scale, base=info.offset[boxes] / unit,
            y=info.bytes[boxes] / unit, name="names", hoverinfo="skip", text=[text for _, text in named],
            textposition="inside", insidetextanchor="middle", textangle=0,
            textfont={"size": 10, "color": [theme.on_kinds[STACK[info.group[box]]] for box in boxes]},
            marker={"color": "rgba(0,0,0,0)", "line": {"width": 0}},
        )
    )  # fmt: skip
    figure.update_layout(uniformtext={"mode": "hide", "minsize": 10})


def _fitting(name: str, wide: float) -> str:
    """The longest ending of a name that fits `wide` pixels; prefers the module to the op, which is less specific."""
    module, _, op = name.rpartition("/")
    modules = _endings(module) if module else []
    endings = [*(f"{end}/{op}" for end in modules), *(modules or _endings(op))]
    return escape(next((text for text in endings if (len(text) + 1) * _LETTER <= wide), ""))


def _endings(path: str) -> list[str]:
    """The endings of a path worth showing: `encoder.layers.0`, `layers.0`, but not a number alone."""
    parts = path.split(".")
    starts = [start for start, part in enumerate(parts) if not start or not part.isdigit()]
    return [".".join(parts[start:]) for start in starts]


def _hover(info: AddressMap, box: int) -> str:
    if box < 0:
        return "storages too small to be drawn apart"
    amount = _moment if info.axis == "seconds" else "op {:,.0f}".format
    size, offset = int(info.bytes[box]), int(info.offset[box])
    lines = [
        f"<b>{escape(info.names[box])}</b>",
        f"{info.kinds[box].replace('_', ' ')}, {exact_bytes_label(size)} ({several(size, 'byte')})",
        f"address {exact_bytes_label(offset)} to {exact_bytes_label(offset + size)}",
        f"{amount(info.start[box])} to {amount(info.stop[box])}",
    ]
    if info.recomputed[box]:
        lines.append("recomputed: its op is run again")
    for verb, (start, stop) in (("copied in", info.copy_in[box]), ("copied out", info.copy_out[box])):
        if not np.isnan(start):
            lines.append(f"{verb} {_moment(start)} to {_moment(stop)}")
    return "<br>".join(lines)


def _moment(seconds: float) -> str:
    return format_seconds(seconds, 5)


def _draw_recomputed(
    figure: Figure, info: AddressMap, theme: Theme, pixel: tuple[float, float], scale: float, unit: float
) -> bool:
    """Stripe the boxes of what is recomputed; returns whether any is large enough to be seen."""
    wide, tall = (info.stop - info.start) / pixel[0], info.bytes / pixel[1]
    seen = np.flatnonzero(info.recomputed & (wide > 2) & (tall > 2))
    seen = seen[np.argsort(-(wide * tall)[seen], kind="stable")][:_MOST_PATTERNS]
    if not len(seen):
        return False
    spans = np.stack([info.start[seen], info.stop[seen]], axis=1)
    _draw_patterns(figure, info, theme, seen, spans, "recomputed", STRIPES, scale, unit)
    return True


def _draw_copies(
    figure: Figure, info: AddressMap, theme: Theme, pixel: tuple[float, float], scale: float, unit: float
) -> bool:
    """Hatch the parts of boxes during which they are copied; returns whether any is large enough to be seen."""
    spans: Floats = np.concatenate([info.copy_in, info.copy_out])
    box = np.tile(np.arange(len(info.storage)), 2)
    length = np.nan_to_num(spans[:, 1] - spans[:, 0])
    seen = np.flatnonzero((length > 2 * pixel[0]) & (info.bytes[box] > 2 * pixel[1]))
    seen = seen[np.argsort(-length[seen] * info.bytes[box][seen], kind="stable")][:_MOST_PATTERNS]
    if not len(seen):
        return False
    pattern = {"shape": "/", "size": 5, "solidity": 0.28}
    _draw_patterns(figure, info, theme, box[seen], spans[seen], "on the link", pattern, scale, unit)
    return True


def _draw_patterns(
    figure: Figure, info: AddressMap, theme: Theme, boxes: Ints, spans: Floats, name: str, pattern: dict[str, Any],
    scale: float, unit: float,
) -> None:  # fmt: skip
    """Draw a pattern on parts of boxes."""
    figure.add_trace(
        plotly().Bar(
            x=spans.mean(axis=1) * scale, width=(spans[:, 1] - spans[:, 0]) * scale, base=info.offset[boxes] / unit,
            y=info.bytes[boxes] / unit, name=name, hoverinfo="skip",
            marker={
                "color": "rgba(0,0,0,0)", "line": {"width": 0},
                "pattern": {**pattern, "fgcolor": theme.paper, "bgcolor": "rgba(0,0,0,0)"},
            },
        )
    )  # fmt: skip
