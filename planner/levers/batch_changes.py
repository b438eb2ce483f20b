"""Batches with fewer or more rows, and of another precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from planner.errors import StowageError
from planner.step import TensorFacts, Tree, rebuilt, tensors_of


def rows_of(tensors: Mapping[str, TensorFacts]) -> int:
    """How many rows the tensors of a batch have along dimension 0.

    Args:
        tensors: by name.

    Raises:
        StowageError: they do not agree, or none has a dimension.
    """
    lengths = {name: facts.shape[0] for name, facts in tensors.items() if facts.shape}
    if not lengths:
        raise StowageError("the batch has no tensor with rows along dimension 0")
    first, rows = next(iter(lengths.items()))
    for name, length in lengths.items():
        if length != rows:
            raise StowageError(f"{first} has {rows} rows along dimension 0 and {name} has {length}")
    return rows


def halved(batch: Any) -> Any:
    """The first half of the rows."""
    return _mapped(batch, lambda tensor: tensor[: len(tensor) // 2].clone())


def doubled(batch: Any) -> Any:
    """Every row twice."""
    return _mapped(batch, lambda tensor: torch.cat([tensor, tensor]))


def in_bfloat16(batch: Any) -> Any:
    """The same batch with its floating-point tensors in bfloat16."""
    tensors = {name: one.to(torch.bfloat16) for name, one in tensors_of(batch).items() if one.is_floating_point()}
    return rebuilt(batch, tensors)


def _mapped(batch: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    tensors = {name: one for name, one in tensors_of(batch).items() if one.dim()}
    rows = len(next(iter(tensors.values())))
    for name, node in Tree(batch).plain.items():
        if not isinstance(node.value, str | bytes) and getattr(node.value, "__len__", int)() == rows:
            raise StowageError(f"{name} has an entry for each row and is no tensor; make it one")
    return rebuilt(batch, {name: change(one) for name, one in tensors.items()})
