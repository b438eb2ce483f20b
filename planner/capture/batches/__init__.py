"""Batches: any object whose tensors are found, named, and replaced by others."""

from __future__ import annotations

from typing import Any

import torch

from planner.capture.batches.cutting import cut
from planner.capture.batches.form import Facts, Form, batch_key, tensors_of
from planner.capture.batches.rebuilding import rebuilt
from planner.capture.batches.tree import Tree

__all__ = [
    "Facts", "Form", "Tree", "batch_key", "cut", "leaf_names", "rebuilt", "tensor_leaves", "tensors_of",
]  # fmt: skip


def tensor_leaves(batch: Any) -> list[torch.Tensor]:
    """The tensors of a batch, in order."""
    return list(tensors_of(batch).values())


def leaf_names(batch: Any) -> list[str]:
    """A name for each tensor of a batch, from its place: `batch/input_ids`."""
    return list(tensors_of(batch))
