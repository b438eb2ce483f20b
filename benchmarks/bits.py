"""The bits of everything that a training loop leaves behind: of modules, deep through containers, and of optimizers."""

from __future__ import annotations

import pickle
import random
import struct
import types
from collections import UserDict, deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

#: What `nn.Module` keeps for itself; of its tables of hooks the lengths are compared.
_TABLES = {"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"}
_PLAIN = (bool, int, str, bytes, type(None), complex)
_OPAQUE = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.GeneratorType, types.MethodType)

Bits = dict[str, object]


def bits_of(model: nn.Module, optimizer: torch.optim.Optimizer, also: object) -> Bits:
    """What is compared after a loop, by name.

    Args:
        model: its tensors, attributes and how many hooks it has.
        optimizer: its state and hyperparameters.
        also: whatever else the loop changes.
    """
    found: Bits = {}
    seen: dict[int, object] = {}  # kept, so that no other object gets the same number
    found.update(_walk("model", model, seen))
    found.update(_walk("optimizer", optimizer.state_dict(), seen))
    found.update(_walk("also", also, seen))
    found["torch's generator"] = torch.get_rng_state().numpy().tobytes()
    found["Python's generator"] = random.getstate()
    found["NumPy's generator"] = pickle.dumps(np.random.get_state())
    return found


def difference(expected: Bits, found: Bits) -> list[str]:
    """The names of what differs; a NaN equals itself, and 0.0 and -0.0 differ."""
    missing = [f"{name} is missing" for name in expected if name not in found]
    more = [f"{name} is new" for name in found if name not in expected]
    return [name for name in expected if name in found and expected[name] != found[name]] + missing + more


def number_bits(value: float) -> bytes:
    """A number as it is kept."""
    return struct.pack("<d", value)


def _walk(name: str, value: Any, seen: dict[int, object]) -> Iterator[tuple[str, object]]:
    if isinstance(value, float):
        yield name, number_bits(value)
    elif isinstance(value, _PLAIN):
        yield name, (type(value).__name__, value)
    elif isinstance(value, Tensor):
        yield name, _tensor_bits(value)
    elif isinstance(value, np.ndarray | np.generic):
        yield name, (str(value.dtype), value.shape, value.tobytes() if value.dtype != object else len(value))
    elif isinstance(value, torch.Generator):
        yield name, value.get_state().numpy().tobytes()
    elif isinstance(value, random.Random):
        yield name, value.getstate()
    elif isinstance(value, np.random.Generator):
        yield name, str(value.bit_generator.state)
    elif isinstance(value, _OPAQUE):
        yield name, type(value).__name__
    elif id(value) in seen:
        yield name, "seen before"
    else:
        seen[id(value)] = value
        yield name, type(value).__name__
        yield from _inside(name, value, seen)


def _inside(name: str, value: Any, seen: dict[int, object]) -> Iterator[tuple[str, object]]:
    if isinstance(value, list | tuple | deque):
        if len(value) > 1000 and all(type(item) is int for item in value):
            yield name, hash(tuple(value))
            return
        yield f"len({name})", len(value)
        for place, item in enumerate(value):
            yield from _walk(f"{name}[{place}]", item, seen)
    elif isinstance(value, Mapping | UserDict):
        for place, (key, item) in enumerate(value.items()):
            yield from _walk(f"{name}[{key if isinstance(key, str | int) else place}]", item, seen)
    elif isinstance(value, set | frozenset):
        yield name, sorted(map(repr, value))
    elif isinstance(value, nn.Module):
        yield from _module(name, value, seen)
    elif isinstance(getattr(value, "__dict__", None), dict):
        for key, item in vars(value).items():
            yield from _walk(f"{name}.{key}", item, seen)


def _module(name: str, module: nn.Module, seen: dict[int, object]) -> Iterator[tuple[str, object]]:
    for key, value in vars(module).items():
        if key in _TABLES:
            for inner, item in value.items() if isinstance(value, dict) else ():
                yield from _walk(f"{name}.{inner}", item, seen)
        elif key.endswith(("_hooks", "_hooks_with_kwargs", "_hooks_always_called")):
            yield f"len({name}.{key})", len(value)
        else:
            yield from _walk(f"{name}.{key}", value, seen)


def _tensor_bits(tensor: Tensor) -> object:
    kind = (type(tensor).__name__, str(tensor.dtype), tuple(tensor.shape), tensor.requires_grad and tensor.is_leaf)
    if tensor.is_meta or tensor.layout is not torch.strided or kind[0] == "FakeTensor":
        return kind
    flat = tensor.detach().resolve_conj().contiguous().reshape(-1)
    return *kind, flat.view(torch.uint8).numpy().tobytes()
