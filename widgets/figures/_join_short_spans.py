"""Join spans of time that are too short to see, so that thousands can be drawn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from widgets.info import Floats, Ints


class Spans(NamedTuple):
    """Spans as parallel arrays; each joins `members` consecutive input spans, starting at position `first`."""

    start: Floats
    stop: Floats
    first: Ints
    members: Ints


def joined(spans: Floats, pixel: float) -> Spans:
    """Join short spans less than a pixel apart; leaves the others unchanged.

    Args:
        spans: `[spans, 2]`, start and stop, in order of time.
        pixel: length of a pixel; a span is short if it is less than two and a half pixels long.
    """
    rows: list[list[float]] = []
    growing = False
    for place, (start, stop) in enumerate(spans.tolist()):
        short = stop - start < 2.5 * pixel
        if growing and short and start - rows[-1][1] < pixel:
            rows[-1][1] = max(stop, rows[-1][1])
            rows[-1][3] += 1
        else:
            rows.append([start, stop, place, 1])
        growing = short
    columns = np.array(rows, np.float64).reshape(-1, 4).T
    return Spans(columns[0], columns[1], columns[2].astype(np.int64), columns[3].astype(np.int64))
