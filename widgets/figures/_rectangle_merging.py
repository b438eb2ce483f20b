"""Merge rectangles smaller than a pixel with their neighbours, so that a browser can draw thousands of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from widgets.info import Floats, Ints


class Rectangles(NamedTuple):
    """Rectangles as parallel arrays: `[left, right)` by `[low, high)`, and the box of each, -1 for several merged."""

    left: Floats
    right: Floats
    low: Floats
    high: Floats
    source: Ints

    def only(self, chosen: NDArray[np.bool_]) -> Rectangles:
        """The chosen rectangles."""
        return Rectangles(
            self.left[chosen], self.right[chosen], self.low[chosen], self.high[chosen], self.source[chosen]
        )

    def joined(self, more: Rectangles) -> Rectangles:
        """These rectangles and `more`."""
        both = zip(self[:4], more[:4], strict=True)
        left, right, low, high = (np.concatenate(pair) for pair in both)
        return Rectangles(left, right, low, high, np.concatenate([self.source, more.source]))


def merged(boxes: Rectangles, pixel: tuple[float, float], most: int) -> Rectangles:
    """Cover the same area, to within a pixel, with at most `most` rectangles.

    Args:
        boxes: any number of rectangles.
        pixel: width and height of a pixel in the units of the boxes; doubled until the rectangles are few enough.
        most: limit above which rectangles are merged.
    """
    width, height = pixel
    result = boxes
    while len(result.left) > most:
        small = (boxes.right - boxes.left < width) | (boxes.high - boxes.low < height)
        result = boxes.only(~small).joined(_on_grid(boxes.only(small), width, height))
        width, height = 2 * width, 2 * height
    return result


def _on_grid(boxes: Rectangles, width: float, height: float) -> Rectangles:
    """The cells of a grid that the boxes touch, as rectangles."""
    first, last = (np.floor(boxes.left / width), np.ceil(boxes.right / width))
    bottom, top = (np.floor(boxes.low / height), np.ceil(boxes.high / height))
    spans = np.stack([first, np.maximum(last, first + 1), bottom, np.maximum(top, bottom + 1)], axis=1).astype(int)
    touched = np.zeros((spans[:, 3].max(initial=0) + 1, spans[:, 1].max(initial=0) + 1), np.bool_)
    for x0, x1, y0, y1 in spans:
        touched[y0:y1, x0:x1] = True
    rectangles = []
    growing: dict[tuple[int, int], int] = {}
    for row, cells in enumerate(touched):  # the last row is empty and closes all open rectangles
        edges = np.flatnonzero(np.diff(cells, prepend=False, append=False))
        runs = {(int(x0), int(x1)) for x0, x1 in edges.reshape(-1, 2)}
        for run in [run for run in growing if run not in runs]:
            rectangles.append((*run, growing.pop(run), row))
        for run in runs:
            growing.setdefault(run, row)
    columns = np.array(rectangles, np.float64).reshape(-1, 4).T
    return Rectangles(
        columns[0] * width, columns[1] * width, columns[2] * height, columns[3] * height,
        np.full(columns.shape[1], -1, np.int64),
    )  # fmt: skip
