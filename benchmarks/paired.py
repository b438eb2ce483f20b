"""Ratios of turns that lie beside each other: what a slow minute of the machine does to one, it does to the other."""

from __future__ import annotations

import math
import statistics


def middle(these: list[float], those: list[float]) -> list[float]:
    """The median of ratios, in the interval that holds it 19 times of 20: lower end, median, upper end."""
    ratios = sorted(this / that for this, that in zip(these, those, strict=True))
    aside = math.sqrt(len(ratios)) * 0.98  # 1.96 standard deviations of how many of n fall below the median
    low, high = math.floor(len(ratios) / 2 - aside), math.ceil(len(ratios) / 2 + aside)
    return [ratios[max(low, 0)], statistics.median(ratios), ratios[min(high, len(ratios) - 1)]]


def interval(ends: object) -> str:
    """The median with its interval, as text."""
    assert isinstance(ends, list)
    low, median, high = ends
    return f"{median:.4f} ({low:.4f}-{high:.4f})"
