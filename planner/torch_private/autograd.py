"""The running autograd node, and the sequence numbers that link it to the forward pass."""

from __future__ import annotations

import torch


def forward_sequence() -> int:
    """The sequence number of the autograd node created last on this thread."""
    return int(torch.autograd._get_sequence_nr()) - 1  # type: ignore[attr-defined]


def backward_sequence() -> int | None:
    """The sequence number of the running autograd node; None outside a backward pass."""
    node = torch._C._current_autograd_node()
    return None if node is None else int(node._sequence_nr())


def backward_node() -> str:
    """Autograd's name of the running derivative, such as `MulBackward0`; empty outside a backward pass."""
    node = torch._C._current_autograd_node()
    return "" if node is None else str(node.name())


def saved_tensors_hooks() -> tuple[object, ...]:
    """This thread's hooks that PyTorch calls to pack and unpack each tensor saved for a backward pass."""
    return torch._C._autograd._top_saved_tensors_default_hooks(True) or ()
