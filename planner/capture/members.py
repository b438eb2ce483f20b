"""The tensors that a module holds, and putting others in their place for a while."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from operator import is_
from typing import Any

import torch
from torch import nn

from planner.capture.guards import Reach
from planner.capture.guards.containers import DictItems, Items, Slots
from planner.capture.torch_private import storage_identity, tables
from planner.graph import Kind


@dataclass(frozen=True, slots=True)
class Member:
    """A tensor that a step's code holds on to.

    It is a parameter, a buffer, a plain attribute of a module, which is taken for a buffer, or, outside of the
    modules' own tables, one that the code reaches through a container, a closure or a global.
    """

    name: str
    path: str
    kind: Kind
    tensor: torch.Tensor
    reached: bool = False

    @property
    def key(self) -> str:
        """In `Step.state()`."""
        return f"{'code' if self.reached else 'model'}/{self.name}"


def members(model: nn.Module) -> list[Member]:
    """Every tensor that a model holds, each once, under the first name it is found by."""
    found: dict[int, Member] = {}
    for path, module in model.named_modules():
        for kind, table in zip((Kind.PARAMETER, Kind.BUFFER, Kind.BUFFER), tables(module), strict=True):
            for name, tensor in table.items():
                if isinstance(tensor, torch.Tensor) and id(tensor) not in found:
                    found[id(tensor)] = Member(f"{path}.{name}" if path else name, path, kind, tensor)
    return list(found.values())


def reached_members(reach: Reach, found: Iterable[Member], parameters: Iterable[torch.Tensor]) -> list[Member]:
    """The tensors that a step's code reaches besides those that its model's modules hold, each once.

    Args:
        reach: of the step.
        found: the members of the model.
        parameters: what the optimizer updates.
    """
    known = {id(member.tensor) for member in found}
    updated = {id(parameter) for parameter in parameters}
    others = []
    for path, tensor in reach.tensors.items():
        if id(tensor) not in known:
            known.add(id(tensor))
            kind = Kind.PARAMETER if id(tensor) in updated else Kind.BUFFER
            others.append(Member(path, "", kind, tensor, reached=True))
    return others


def overlaps(held: Iterable[Member]) -> Iterator[tuple[Member, Member]]:
    """Every member that has bytes in common with an earlier one, and that one."""
    places: dict[int, list[tuple[int, int, Member]]] = {}
    for member in held:
        tensor = member.tensor
        if tensor.layout is not torch.strided or not tensor.numel():
            continue
        start = int(tensor.storage_offset()) * tensor.element_size()
        reach = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        stop = start + int(reach) * tensor.element_size()
        others = places.setdefault(storage_identity(tensor.untyped_storage()), [])
        for begun, ended, other in others:
            if start < ended and begun < stop:
                yield member, other
                break
        others.append((start, stop, member))


def repeats(tensor: torch.Tensor) -> bool:
    """Whether several elements of a tensor lie in one place: not if each stride reaches past those below it."""
    if tensor.layout is not torch.strided or not tensor.numel():
        return False
    reach = 0
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1 and stride <= reach:
            return True
        reach += (size - 1) * stride
    return False


def substitute(reach: Reach, others: Mapping[int, torch.Tensor]) -> None:
    """Put other tensors in the place of those that modules and their containers hold, by the `id` of each.

    What hangs on globals and closures stays: others may use that meanwhile.
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
    """Afterwards every container holds again what it held before, and every gradient is the one it was."""
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
