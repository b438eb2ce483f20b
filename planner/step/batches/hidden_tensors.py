"""Search for tensors in objects that cannot be taken apart."""

from __future__ import annotations

import gc
import types
from typing import Any

import torch

_MAX_OBJECTS = 10_000
_NOT_SEARCHED = (type, types.ModuleType, types.CodeType)
_ATOMS = frozenset({str, bytes, int, float, complex, bool, type(None)})


def holds_tensor(value: object) -> bool:
    """Whether a tensor can be reached from an object; also True if too many objects can be reached to tell.

    The closures and defaults of functions are searched, but not the globals of their modules.
    """
    waiting, seen = [value], {id(value): value}
    while waiting:
        one = waiting.pop()
        if issubclass(type(one), torch.Tensor | torch.nn.Module):
            return True
        for other in _reached(one):
            if id(other) not in seen:
                seen[id(other)] = other
                waiting.append(other)
        if len(seen) > _MAX_OBJECTS:
            return True
    return False


def _reached(value: Any) -> list[Any]:
    if type(value) is types.FunctionType:
        cells = value.__closure__ or ()
        return [value.__defaults__, value.__kwdefaults__, vars(value), *map(_content, cells)]
    return [
        other
        for other in gc.get_referents(value)
        if type(other) not in _ATOMS and not issubclass(type(other), _NOT_SEARCHED)
    ]


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None
