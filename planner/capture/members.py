"""The tensors that a module holds, and putting others in their place for a while."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from planner.capture.torch_private import storage_identity, tables
from planner.graph import Kind


@dataclass(frozen=True, slots=True)
class Member:
    """A tensor that a module holds: a parameter, a buffer, or a plain attribute, which is taken for a buffer."""

    name: str
    path: str
    kind: Kind
    tensor: torch.Tensor


def members(model: nn.Module) -> list[Member]:
    """Every tensor that a model holds, each once, under the first name it is found by."""
    found: dict[int, Member] = {}
    for path, module in model.named_modules():
        for kind, table in zip((Kind.PARAMETER, Kind.BUFFER, Kind.BUFFER), tables(module), strict=True):
            for name, tensor in table.items():
                if isinstance(tensor, torch.Tensor) and id(tensor) not in found:
                    found[id(tensor)] = Member(f"{path}.{name}" if path else name, path, kind, tensor)
    return list(found.values())


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


def substitute(model: nn.Module, others: Mapping[int, torch.Tensor]) -> None:
    """Put other tensors in the place of those that a model holds, by the `id` of each."""
    for module in model.modules():
        for table in tables(module):
            for name, tensor in list(table.items()):
                if isinstance(tensor, torch.Tensor) and id(tensor) in others:
                    table[name] = others[id(tensor)]


@contextmanager
def restored(model: nn.Module) -> Iterator[None]:
    """Afterwards every module holds again what it held before."""
    saved = [(table, dict(table)) for module in model.modules() for table in tables(module)]
    try:
        yield
    finally:
        for table, before in saved:
            table.clear()
            table.update(before)
