"""What functions and classes lead to: closures, default arguments, imports, and methods that no code names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import torch
from torch import nn

from planner.guards.referenced_names import imported, of_library

#: Methods that PyTorch calls of a `torch.autograd.Function`, while code names only `apply`.
_FUNCTION_METHODS = frozenset({"forward", "backward", "setup_context", "vjp", "jvp", "vmap"})


def children_of_function(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the paths and values of what a function reaches without looking up a name."""
    name, code = function.__name__, function.__code__
    for module in imported(code, function.__globals__.get("__package__") or ""):
        if module in sys.modules and not of_library(module):
            yield module, sys.modules[module]
    for variable, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        if variable != "__class__":
            yield f"{variable} in {name}()", cell
    for index, item in enumerate(function.__defaults__ or ()):
        yield f"default {index} of {name}()", item
    for key, item in (function.__kwdefaults__ or {}).items():
        yield f"default {key} of {name}()", item
    for key, item in vars(function).items():
        yield f"{name}.{key}", item


def unnamed_methods(kind: type) -> Iterator[tuple[str, FunctionType]]:
    """Yield the paths and functions of the methods of a class that are called without any code naming them."""
    for base in kind.__mro__:
        if of_library(base.__module__):
            continue
        for name, item in vars(base).items():
            function = item.__func__ if isinstance(item, staticmethod | classmethod) else item
            if isinstance(function, FunctionType) and _is_called_unnamed(kind, name):
                yield f"{base.__name__}.{name}", function


def _is_called_unnamed(kind: type, name: str) -> bool:
    """Whether Python or PyTorch calls a method of a class without any code naming it."""
    if issubclass(kind, nn.Module):
        return name == "forward" or (name.startswith("__") and name != "__init__")
    return name.startswith("__") or (issubclass(kind, torch.autograd.Function) and name in _FUNCTION_METHODS)
