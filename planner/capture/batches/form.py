"""What a batch is apart from the numbers in its tensors: all that a captured step follows from.

It is a copy, so that it says what a batch was after it has been filled anew.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any, NamedTuple

import torch

from planner.capture import torch_private as private
from planner.capture.batches.differences import differences
from planner.capture.batches.tree import Tree
from planner.capture.batches.values import opaque, value_key, words


class Facts(NamedTuple):
    """What a tensor is apart from its numbers."""

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: torch.dtype
    device: torch.device
    layout: torch.layout
    requires_grad: bool
    lazily: tuple[bool, bool]  # conjugated, negated


class Form:
    """A batch apart from the numbers in its tensors.

    Args:
        batch: any object, or one that was taken apart.

    Raises:
        StowageError: it cannot be taken apart.
    """

    def __init__(self, batch: Any) -> None:
        tree = batch if type(batch) is Tree else Tree(batch)
        self.structure = tuple(tree.structure)
        self.tensors = {name: _facts(node.value) for name, node in tree.tensors.items()}
        self.sharing = _sharing({name: node.value for name, node in tree.tensors.items()})
        self.plain = {name: value_key(node.value, name) for name, node in tree.plain.items()}
        self.words = {name: words(node.value) for name, node in tree.plain.items()}

    @property
    def opaque(self) -> list[str]:
        """The names of plain values that only their identity is known of, so that nobody sees when they change."""
        return [name for name, key in self.plain.items() if opaque(key)]

    def key(self, without: Collection[str] = ()) -> Hashable:
        """Equal for batches that one graph serves.

        Args:
            without: names of plain values that the step does not use.
        """
        plain = tuple((name, key) for name, key in self.plain.items() if name not in without)
        return self.structure, tuple(self.tensors.items()), self.sharing, plain

    def change(self, other: Form, without: Collection[str] = ()) -> str:
        """What another batch has otherwise, in words (`"batch/beta is now 0.3"`); empty where one graph serves both.

        Args:
            other: of the other batch.
            without: names of plain values that the step does not use.
        """
        return next(differences(self, other, without), "") if self.key(without) != other.key(without) else ""


def batch_key(batch: Any, without: Collection[str] = ()) -> Hashable:
    """Equal for batches that one graph serves: structure, what the tensors are, what they share, and plain values.

    Args:
        batch: any object.
        without: names of plain values that the step does not use.

    Raises:
        StowageError: it cannot be taken apart.
    """
    return Form(batch).key(without)


def tensors_of(batch: Any) -> dict[str, torch.Tensor]:
    """The tensors of a batch by name, in order.

    Raises:
        StowageError: it cannot be taken apart.
    """
    return {name: node.value for name, node in Tree(batch).tensors.items()}


def _facts(tensor: torch.Tensor) -> Facts:
    plain = tensor.layout is torch.strided and not tensor.is_nested
    lazily = (tensor.is_conj(), tensor.is_neg()) if plain else (False, False)
    return Facts(
        tuple(tensor.shape) if not tensor.is_nested else (),
        tensor.stride() if plain else None,
        tensor.dtype,
        tensor.device,
        tensor.layout,
        tensor.requires_grad,
        lazily,
    )


def _sharing(tensors: dict[str, torch.Tensor]) -> tuple[tuple[str, str, int], ...]:
    """Pairs of tensors that have memory in common, and how far apart they begin in bytes."""
    spans = {name: span for name, tensor in tensors.items() if (span := _span(tensor)) is not None}
    ordered = sorted(spans, key=spans.__getitem__)
    found, open_spans = [], list[str]()
    for name in ordered:
        owner, start, _ = spans[name]
        open_spans = [other for other in open_spans if spans[other][0] == owner and spans[other][2] > start]
        found += [(other, name, start - spans[other][1]) for other in open_spans]
        open_spans.append(name)
    return tuple(sorted((a, b, apart) if a < b else (b, a, -apart) for a, b, apart in found))


def _span(tensor: torch.Tensor) -> tuple[int, int, int] | None:
    """The memory that a tensor lies in: whose, from which byte to which."""
    if tensor.layout is not torch.strided or tensor.is_nested or not tensor.numel():
        return None
    reach = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    if tensor.is_meta or isinstance(tensor, private.FakeTensor):
        owner = private.storage_identity(tensor.untyped_storage())
        start = int(tensor.storage_offset()) * tensor.itemsize
    else:
        owner, start = 0, int(tensor.data_ptr())
    return owner, start, start + int(reach) * tensor.itemsize
