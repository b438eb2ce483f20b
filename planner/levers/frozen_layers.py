"""Layers that are not trained: embeddings, or the first half of a model."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from planner.errors import StowageError
from planner.levers.checkpointed_blocks import repeated_blocks


def freeze_embeddings(model: nn.Module) -> None:
    """Freeze every `nn.Embedding` of a model, in place.

    Raises:
        StowageError: it has none that is trained.
    """
    _freeze(
        [part.weight for part in model.modules() if isinstance(part, nn.Embedding)], "the model has no nn.Embedding"
    )


def freeze_first_half(model: nn.Module) -> None:
    """Freeze the first half of a model's repeated blocks and every parameter registered before them, in place.

    Without repeated blocks, the first half of its modules that have parameters of their own.

    Raises:
        StowageError: nothing that is trained is in that half.
    """
    blocks = repeated_blocks(model)
    blocks = blocks or [part for part in model.modules() if any(True for _ in part.parameters(recurse=False))]
    whole = len(repeated_blocks(model)) > 1
    kept = {id(one) for block in blocks[len(blocks) // 2 :] for one in block.parameters(recurse=whole)}
    first: list[nn.Parameter] = []
    for parameter in model.parameters():
        if id(parameter) in kept:
            break
        first.append(parameter)
    _freeze(first, "the model has no layers before its second half")


def _freeze(parameters: Iterable[torch.Tensor], none: str) -> None:
    trained = [one for one in parameters if one.requires_grad]
    if not trained:
        raise StowageError(f"{none} that is trained")
    for parameter in trained:
        parameter.requires_grad_(False)
