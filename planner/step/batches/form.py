"""The form of a batch: everything that a captured step depends on, which excludes the numbers in its tensors.

It is a copy, so that it still describes a batch that has been modified since.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any, NamedTuple

import torch

from planner import torch_private as private
from planner.step.batches.differences import differences
from planner.step.batches.plain_value_keys import opaque, value_key, value_text
from planner.step.batches.tree import Tree


class TensorFacts(NamedTuple):
    """The properties of a tensor, without its numbers."""

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: torch.dtype
    device: torch.device
    layout: torch.layout
    requires_grad: bool
    lazily: tuple[bool, bool]  # conjugated, negated


class Form:
    """A description of a batch without the numbers in its tensors.

    Args:
        batch: any object, or a `Tree` of one.

    Raises:
        StowageError: it cannot be taken apart.
    """

    def __init__(self, batch: Any) -> None:
        tree = batch if type(batch) is Tree else Tree(batch)
        self.structure = tuple(tree.structure)
        self.tensors = {name: _facts(node.value) for name, node in tree.tensors.items()}
        self.sharing = _sharing({name: node.value for name, node in tree.tensors.items()})
        self.plain = {name: value_key(node.value, name) for name, node in tree.plain.items()}
        self.texts = {name: value_text(node.value) for name, node in tree.plain.items()}

    @property
    def opaque(self) -> list[str]:
        """The names of plain values that are compared by identity alone, so that changes in them are not detected."""
        return [name for name, key in self.plain.items() if opaque(key)]

    def key(self, without: Collection[str] = ()) -> Hashable:
        """A key that is equal for batches that can share a graph.

        Args:
            without: names of plain values that the step does not use.
        """
        plain = tuple((name, key) for name, key in self.plain.items() if name not in without)
        return self.structure, tuple(self.tensors.items()), self.sharing, plain

    def change(self, other: Form, without: Collection[str] = ()) -> str:
        """The first difference of another batch, in words (`"batch/beta is now 0.3"`); empty if both can share a graph.

        Args:
            other: the form of the other batch.
            without: names of plain values that the step does not use.
        """
        return next(differences(self, other, without), "") if self.key(without) != other.key(without) else ""


def batch_key(batch: Any, without: Collection[str] = ()) -> Hashable:
    """A key that is equal for batches that can share a graph: structure, tensor properties, sharing and plain values.

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


def _facts(tensor: torch.Tensor) -> TensorFacts:
    strided = tensor.layout is torch.strided and not tensor.is_nested
    lazily = (tensor.is_conj(), tensor.is_neg()) if strided else (False, False)
    return TensorFacts(
        tuple(tensor.shape) if not tensor.is_nested else (),
        tensor.stride() if strided else None,
        tensor.dtype,
        tensor.device,
        tensor.layout,
        tensor.requires_grad,
        lazily,
    )


def _sharing(tensors: dict[str, torch.Tensor]) -> tuple[tuple[str, str, int], ...]:
    """Pairs of tensors that share memory, and the distance of their starts in bytes."""
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
    """The memory of a tensor: its owner, first byte and end."""
    if tensor.layout is not torch.strided or tensor.is_nested or not tensor.numel():
        return None
    extent = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    if tensor.is_meta or isinstance(tensor, private.FakeTensor):
        owner = private.storage_identity(tensor.untyped_storage())
        start = int(tensor.storage_offset()) * tensor.itemsize
    else:
        owner, start = 0, int(tensor.data_ptr())
    return owner, start, start + int(extent) * tensor.itemsize
