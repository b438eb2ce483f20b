"""Batches: pytrees whose leaves are tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from planner.capture.torch_private import pytree
from planner.errors import StowageError


def tensor_leaves(tree: Any) -> list[torch.Tensor]:
    """The tensors of a pytree, in order."""
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def leaf_names(batch: Any) -> list[str]:
    """A name for each tensor of a batch, from its place: `batch/input_ids`."""
    leaves, _ = pytree.tree_flatten_with_path(batch)
    return ["/".join(["batch", *map(_key, path)]) for path, leaf in leaves if isinstance(leaf, torch.Tensor)]


def cut(batch: Any, count: int) -> list[Any]:
    """A batch in equal parts, along dimension 0 of every tensor that has one.

    Raises:
        StowageError: a tensor's first dimension does not divide.
    """
    if count == 1:
        return [batch]
    for leaf in tensor_leaves(batch):
        if leaf.dim() and leaf.shape[0] % count:
            raise StowageError(
                f"a batch of {leaf.shape[0]} cannot be cut into {count} micro-batches: let micro_batches divide it"
            )
    leaves, structure = pytree.tree_flatten(batch)
    return [pytree.tree_unflatten(list(_parts(leaves, number, count)), structure) for number in range(count)]


def _parts(leaves: list[Any], number: int, count: int) -> Iterator[Any]:
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor) and leaf.dim():
            size = leaf.shape[0] // count
            yield leaf[number * size : (number + 1) * size]
        else:
            yield leaf


def _key(part: Any) -> str:
    for attribute in ("key", "idx", "name"):
        if hasattr(part, attribute):
            return str(getattr(part, attribute))
    return str(part)
