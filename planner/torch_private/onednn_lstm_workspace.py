"""Size of the workspace that oneDNN's LSTM, which runs `nn.LSTM` on a CPU, keeps for its backward pass.

The kernel returns the workspace as one opaque block of bytes, and only a real call reveals its size. The size is
therefore computed from the layout of oneDNN 3 (`rnn_utils`): seven sections, each on pages of its own.
"""

from __future__ import annotations

import torch

_PAGE = 4096
_LINE = 64  # the bytes of a row are rounded up to a multiple of this
_ALIASING = 256  # the elements of a row are never a multiple of this


def workspace_bytes(slots: int, rows: int, inputs: int, hidden: int, dtype: torch.dtype) -> int:
    """Bytes that one direction of one layer keeps from its forward to its backward pass.

    Args:
        slots: length of the sequences.
        rows: number of sequences.
        inputs, hidden: width of the layer's input and of its state.
        dtype: dtype of both.
    """
    size, widest = dtype.itemsize, max(inputs, hidden)
    cells, states = slots * rows, 2 * (slots + 1) * rows
    gradients = states * _row(widest, 4) * 4  # these are accumulated in single precision
    sections = (
        cells * _row(4 * hidden, size) * size,  # gates
        cells * _row(hidden, size) * size,  # input of a projection
        states * _row(widest, size) * size,  # states
        states * hidden * size,  # cell states
        gradients,  # of the layer's input
        gradients,  # of the states
        states * hidden * 4,  # of the cell states
    )
    return sum(-(-section // _PAGE) * _PAGE for section in sections)


def measured_workspace_bytes(slots: int, rows: int, inputs: int, hidden: int, dtype: torch.dtype) -> int:
    """The same, measured in a real call."""

    def zeros(*shape: int) -> torch.Tensor:
        return torch.zeros(shape, dtype=dtype)

    weights = zeros(4 * hidden, inputs), zeros(4 * hidden, hidden), zeros(4 * hidden), zeros(4 * hidden)
    state = zeros(rows, hidden), zeros(rows, hidden)
    results = torch.ops.aten.mkldnn_rnn_layer(
        zeros(slots, rows, inputs), *weights, *state, False, [], 2, hidden, 1, True, False, False, True
    )
    return int(results[3].numel())


def _row(width: int, size: int) -> int:
    lane = _LINE // size
    width = -(-width // lane) * lane
    return width + lane if width % _ALIASING == 0 else width
