"""The tensors that a module holds, and their temporary substitution."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from operator import is_
from typing import Any

import torch
from torch import nn

from planner.graph import Kind
from planner.guards import DictItems, Items, Reach, Slots, undisturbed
from planner.torch_private import storage_identity, tables


@dataclass(frozen=True, slots=True)
class ModuleTensor:
    """A tensor that a step's code holds.

    It is a parameter, a buffer, a plain attribute of a module, which is treated as a buffer, or, outside of the
    modules' own tables, a tensor that the code reaches through a container, a closure or a global.
    """

    name: str
    path: str
    kind: Kind
    tensor: torch.Tensor
    reached: bool = False

    @property
    def key(self) -> str:
        """Its key in `Step.state()`."""
        return f"{'code' if self.reached else 'model'}/{self.name}"


@undisturbed()
def module_tensors(model: nn.Module) -> list[ModuleTensor]:
    """Every tensor that a model holds, each once, under the first name it is found by."""
    found: dict[int, ModuleTensor] = {}
    for path, module in model.named_modules():
        for kind, table in zip((Kind.PARAMETER, Kind.BUFFER, Kind.BUFFER), tables(module), strict=True):
            for name, tensor in table.items():
                if isinstance(tensor, torch.Tensor) and id(tensor) not in found:
                    found[id(tensor)] = ModuleTensor(f"{path}.{name}" if path else name, path, kind, tensor)
    return list(found.values())


def reached_tensors(
    reach: Reach, found: Iterable[ModuleTensor], parameters: Iterable[torch.Tensor]
) -> list[ModuleTensor]:
    """The tensors that a step's code reaches, except those that its model's modules hold, each once.

    Args:
        reach: of the step.
        found: the module tensors of the model.
        parameters: the tensors that the optimizer updates.
    """
    known = {id(entry.tensor) for entry in found}
    updated = {id(parameter) for parameter in parameters}
    others = []
    for path, tensor in reach.tensors.items():
        if id(tensor) not in known:
            known.add(id(tensor))
            kind = Kind.PARAMETER if id(tensor) in updated else Kind.BUFFER
            others.append(ModuleTensor(path, "", kind, tensor, reached=True))
    return others


def overlaps(tensors: Iterable[ModuleTensor]) -> Iterator[tuple[ModuleTensor, ModuleTensor]]:
    """Every module tensor that shares bytes with an earlier one, and that earlier one."""
    spans_by_storage: dict[int, list[tuple[int, int, ModuleTensor]]] = {}
    for entry in tensors:
        tensor = entry.tensor
        if tensor.layout is not torch.strided or not tensor.numel():
            continue
        start = int(tensor.storage_offset()) * tensor.element_size()
        extent = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        stop = start + int(extent) * tensor.element_size()
        others = spans_by_storage.setdefault(storage_identity(tensor.untyped_storage()), [])
        for other_start, other_stop, other in others:
            if start < other_stop and other_start < stop:
                yield entry, other
                break
        others.append((start, stop, entry))


def repeats(tensor: torch.Tensor) -> bool:
    """Whether elements of a tensor may share an address: False if each stride exceeds the extent of smaller strides."""
    if tensor.layout is not torch.strided or not tensor.numel():
        return False
    extent = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride <= extent:
            return True
        extent += (size - 1) * stride
    return False


def substitute(reach: Reach, others: Mapping[int, torch.Tensor]) -> None:
    """Replace the tensors that modules and their containers hold, by the `id` of each.

    Tensors reached through globals and closures are not replaced, since other code may use them meanwhile.
    """
    for container in reach.containers:
        if isinstance(container, DictItems | Items | Slots) and not container.path.startswith("global "):
            before = container.contents()
            after = tuple(_other(value, others) for value in before)
            if any(a is not b for a, b in zip(after, before, strict=True)):
                container.put(after)


def _other(value: Any, others: Mapping[int, torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return others.get(id(value), value)
    if isinstance(value, weakref.ref) and id(value()) in others:
        return weakref.ref(others[id(value())])
    if isinstance(value, tuple):
        items = [_other(item, others) for item in value]
        if any(a is not b for a, b in zip(items, value, strict=True)):
            return tuple.__new__(type(value), items)
    return value


@contextmanager
def restored(reach: Reach) -> Iterator[None]:
    """On exit, restore the contents of every container and every gradient."""
    saved = [(container, container.contents()) for container in reach.containers]
    gradients = [(tensor, tensor.grad) for tensor in reach.tensors.values() if tensor.is_leaf]
    try:
        yield
    finally:
        for container, before in saved:
            now = container.contents()
            if len(now) != len(before) or not all(map(is_, now, before)):
                container.put(before)
        for tensor, gradient in gradients:
            if tensor.grad is not gradient:
                tensor.grad = gradient
