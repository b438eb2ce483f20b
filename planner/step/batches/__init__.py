"""Batches: objects of any type, whose tensors can be listed, named, and replaced."""

from __future__ import annotations

from typing import Any

import torch

from planner.step.batches.form import Form, TensorFacts, batch_key, tensors_of
from planner.step.batches.micro_batches import cut
from planner.step.batches.rebuilding import rebuilt
from planner.step.batches.tree import Tree

__all__ = [
    "Form",
    "TensorFacts",
    "Tree",
    "batch_key",
    "cut",
    "rebuilt",
    "tensor_leaves",
    "tensors_of",
]  # fmt: skip


def tensor_leaves(batch: Any) -> list[torch.Tensor]:
    """The tensors of a batch, in order."""
    return list(tensors_of(batch).values())
