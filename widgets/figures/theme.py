"""The themes of all pictures, light and dark, and helpers for their texts and colours.

Colours encode the group of a storage, red a limit or lost time, and greys the phases. Any two of these colours remain
distinguishable under simulated colour blindness, and limits and stalls also differ in how they are drawn.
"""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any, Literal

from planner.errors import StowageError
from planner.graph import Phase
from widgets.info import Group

ThemeName = Literal["auto", "light", "dark"]
FONT = '-apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif'


@dataclass(frozen=True)
class Theme:
    """A palette.

    Args:
        paper, sunken: background of a plot, and of its empty parts.
        line, grid: hairlines between parts, and grid lines behind data.
        ink, second, third: text, in order of importance.
        limit: budgets and stalls; `on_limit` is for text on it.
        measured: measured data.
        kinds: per group; `on_kinds` is for text on each.
        phases: per phase of a step.
    """

    paper: str
    sunken: str
    line: str
    grid: str
    ink: str
    second: str
    third: str
    limit: str
    on_limit: str
    measured: str
    kinds: Mapping[Group, str]
    on_kinds: Mapping[Group, str]
    phases: Mapping[Phase, str]


LIGHT = Theme(
    paper="#ffffff", sunken="#f6f7f8", line="#c6cad1", grid="#edeef0",
    ink="#1d2126", second="#565d67", third="#6f7680",
    limit="#b3001b", on_limit="#ffffff", measured="#0f3d73",
    kinds={
        Group.PARAMETER: "#2b5fa6", Group.OPTIMIZER_STATE: "#8fbbe3", Group.GRADIENT: "#d4682f",
        Group.ACTIVATION: "#2f8f7a", Group.WORKSPACE: "#e6bf4b", Group.INPUT: "#57524d",
    },
    on_kinds={
        Group.PARAMETER: "#ffffff", Group.OPTIMIZER_STATE: "#10263d", Group.GRADIENT: "#ffffff",
        Group.ACTIVATION: "#ffffff", Group.WORKSPACE: "#33280a", Group.INPUT: "#ffffff",
    },
    phases={Phase.FORWARD: "#b7bcc4", Phase.BACKWARD: "#7f8fa8", Phase.OPTIMIZER: "#1f2a3a"},
)  # fmt: skip
DARK = Theme(
    paper="#212121", sunken="#1a1b1d", line="#4a4e54", grid="#2f3134",
    ink="#eceef1", second="#b1b7c0", third="#979ea8",
    limit="#f2486a", on_limit="#1a0409", measured="#8cc4ff",
    kinds={
        Group.PARAMETER: "#4a86d6", Group.OPTIMIZER_STATE: "#a9cdf0", Group.GRADIENT: "#ec8450",
        Group.ACTIVATION: "#3aa78f", Group.WORKSPACE: "#f0d06a", Group.INPUT: "#e6e1da",
    },
    on_kinds={
        Group.PARAMETER: "#ffffff", Group.OPTIMIZER_STATE: "#0d2238", Group.GRADIENT: "#2a1103",
        Group.ACTIVATION: "#04211b", Group.WORKSPACE: "#2e2403", Group.INPUT: "#15181c",
    },
    phases={Phase.FORWARD: "#4f5d73", Phase.BACKWARD: "#74849d", Phase.OPTIMIZER: "#a0acbf"},
)  # fmt: skip


def _colours(theme: Theme) -> dict[tuple[str, Any], str]:
    """Every colour by its field, and by its key if the field is a mapping."""
    values = {field.name: getattr(theme, field.name) for field in fields(theme)}
    return {
        (name, key): colour
        for name, value in values.items()
        for key, colour in ([(None, value)] if isinstance(value, str) else value.items())
    }


def _unused(colour: str, used: set[str]) -> str:
    """The nearest unused colour; a difference of one in a channel is invisible."""
    channels = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    near = (
        "#" + "".join(f"{c - step if c > 127 else c + step:02x}" for c, step in zip(channels, steps, strict=True))
        for steps in product(range(4), repeat=3)
    )
    return next(candidate for candidate in near if candidate not in used)


def _auto() -> tuple[Theme, dict[str, str]]:
    """The palette of a figure with the theme `auto`, and the dark counterpart of each of its colours."""
    light, dark = _colours(LIGHT), _colours(DARK)
    used = {*light.values(), *dark.values()}
    marks = {}
    for place, colour in light.items():
        marks[place] = _unused(colour, used)
        used.add(marks[place])
    names = {name: key is None for name, key in marks}
    values: dict[str, Any] = {
        name: marks[name, None] if single else {key: mark for (other, key), mark in marks.items() if other == name}
        for name, single in names.items()
    }
    return replace(LIGHT, **values), {mark: dark[place] for place, mark in marks.items()}


#: The `auto` palette, which looks light; and by each of its unique colours, the replacement on a dark page.
AUTO, DARK_OF = _auto()
_THEMES = {"auto": AUTO, "light": LIGHT, "dark": DARK}


def get_theme(name: str) -> Theme:
    """The palette of a theme name.

    Raises:
        StowageError: it is not `auto`, `light` or `dark`.
    """
    if name not in _THEMES:
        raise StowageError(f'unknown theme {name!r}; choose "auto", "light" or "dark"')
    return _THEMES[name]


def escape(text: str) -> str:
    """Escape a text so that a plot, hover label or graph shows it literally: no markup, formula or template."""
    return html.escape(text, quote=False).replace("$", "&#36;").replace("%", "&#37;")


def mixed(colour: str, other: str, share: float) -> str:
    """Mix a share of another colour into a colour, both as `#rrggbb`."""
    channels = [[int(each[at : at + 2], 16) for at in (1, 3, 5)] for each in (colour, other)]
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(*channels, strict=True))


def shorten(text: str, most: int) -> str:
    """Shorten a text to at most `most` characters by omitting its middle."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[len(text) - (most - most // 2 - 1) :]}"


def unbroken(text: str) -> str:
    """Text in which no line break separates a number from its unit."""
    return re.sub(r"(\d) (?=%|[KMGT]?i?B\b|[mµn]?s\b)", "\\1\N{NO-BREAK SPACE}", text)


def wrapped(text: str, most: int) -> list[str]:
    """Wrap a text into as few lines of at most `most` characters as possible, of similar length."""
    text = unbroken(text)
    lines = textwrap.wrap(text, most)
    while most > 1 and len(lines) > 1 and len(shorter := textwrap.wrap(text, most - 1)) == len(lines):
        lines, most = shorter, most - 1
    return lines
