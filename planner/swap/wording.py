"""Amounts of time in words, and shares."""

from __future__ import annotations

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def format_seconds(seconds: float) -> str:
    """An amount of time for people to read, with three significant digits."""
    size = abs(seconds)
    for unit, name in _UNITS:
        if size >= 0.9995 * unit:
            value = seconds / unit
            digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
            return f"{value:.{digits}f} {name}"
    return "0 s" if size < 5e-10 else f"{seconds:.2g} s"


def percent_of_ideal(ideal: float, seconds: float) -> float:
    """How fast a step is beside one with infinite memory, at most 100: other orders of the ops add up otherwise."""
    return min(100.0, 100 * ideal / seconds) if seconds else 100.0


def several(number: int, noun: str) -> str:
    """`1 op`, `2 ops`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
