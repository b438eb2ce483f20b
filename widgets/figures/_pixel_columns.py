"""Reduce curves of thousands of moments to the pixel columns of a screen."""

from __future__ import annotations

import numpy as np

from widgets.info import Floats, Ints

_COLUMNS = 800


def columns(starts: Floats, amounts: Ints | Floats, end: float) -> Ints:
    """Positions of the moments to draw: the highest and the last of each column; the last extends over empty columns.

    Args:
        starts: `[moments]`, start of each, ascending.
        amounts: `[moments]`, height of each.
        end: the end of the axis, in the unit of `starts`.
    """
    if len(amounts) <= 2 * _COLUMNS or end <= 0:
        return np.arange(len(amounts))
    column = np.floor(starts / end * _COLUMNS).astype(np.int64)
    by_height = np.lexsort((amounts, column))
    last_of_column = np.flatnonzero(np.diff(column, append=column[-1] + 1))
    return np.unique(np.concatenate([by_height[last_of_column], last_of_column]))
