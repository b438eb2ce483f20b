"""The quality of a plan in one figure."""

from __future__ import annotations


def percent_of_ideal(ideal: float, seconds: float) -> float:
    """Speed of a step relative to infinite memory, in percent; at most 100, as sums in other orders round otherwise."""
    return min(100.0, 100 * ideal / seconds) if seconds else 100.0
