"""Thousands of rectangles as one small image: every pixel blends the colours by the share that each covers."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from widgets.info import Floats

#: Shares of a pixel are rounded to multiples of 1 / `_PARTS`, so the image has few colours and is small.
_PARTS = 5
_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def coverage(boxes: Floats, width: int, height: int) -> Floats:
    """`[height, width]`, the share of each pixel that the rectangles cover; the rectangles must not overlap.

    Args:
        boxes: `[boxes, 4]`, left, right, top and bottom in pixels, inside the image.
        width, height: size of the image in pixels.
    """
    # An edge at 3.25 changes the sum from pixel 3 on by 0.75, and from pixel 4 on by the rest.
    change = np.zeros((height + 2, width + 2))
    for x, across in ((boxes[:, 0], 1), (boxes[:, 1], -1)):
        for y, down in ((boxes[:, 2], 1), (boxes[:, 3], -1)):
            column, row = np.floor(x).astype(int), np.floor(y).astype(int)
            right, below = x - column, y - row
            for dx, in_x in ((0, 1 - right), (1, right)):
                for dy, in_y in ((0, 1 - below), (1, below)):
                    np.add.at(change, (row + dy, column + dx), across * down * in_x * in_y)
    return np.clip(np.cumsum(np.cumsum(change, axis=0), axis=1)[:height, :width], 0, 1)


def blended(shares: Sequence[tuple[Floats, str]], paper: str) -> NDArray[np.uint8]:
    """`[height, width, 3]`, the colours blended in proportion to what they cover.

    Args:
        shares: pairs of the share of every pixel, `[height, width]`, and the colour as `#rrggbb`.
        paper: the background colour.
    """
    height, width = shares[0][0].shape
    image, left = np.zeros((height, width, 3)), np.ones((height, width))
    for share, colour in shares:
        rounded = np.minimum(np.round(share * _PARTS) / _PARTS, left)
        image += rounded[..., None] * _channels(colour)
        left -= rounded
    return (image + left[..., None] * _channels(paper) + 0.5).astype(np.uint8)


def png(image: NDArray[np.uint8], clear: str) -> str:
    """Encode an image as a PNG data URI, with a palette where it has at most 256 colours.

    Format: https://www.w3.org/TR/png/.

    Args:
        image: `[height, width, 3]`, red, green and blue.
        clear: the colour that is made transparent.
    """
    height, width, _ = image.shape
    packed = image.astype(np.uint32) @ np.array([65536, 256, 1], np.uint32)
    palette, index = np.unique(packed, return_inverse=True)
    indexed = len(palette) <= 256
    rows = index.reshape(height, width).astype(np.uint8) if indexed else image.reshape(height, -1)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1)  # filter type 0: none
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3 if indexed else 2, 0, 0, 0))]
    if indexed:
        chunks.append((b"PLTE", b"".join(int(colour).to_bytes(3, "big") for colour in palette)))
        through = int(clear[1:], 16)
        chunks.append((b"tRNS", bytes(0 if colour == through else 255 for colour in palette)))
    else:
        chunks.append((b"tRNS", bytes(byte for at in (1, 3, 5) for byte in (0, int(clear[at : at + 2], 16)))))
    chunks += [(b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    body = b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
    return "data:image/png;base64," + base64.b64encode(_SIGNATURE + body).decode()


def _channels(colour: str) -> Floats:
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)], np.float64)
