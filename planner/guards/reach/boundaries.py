"""Which values are not followed: those of libraries, which the user's code does not change."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from planner.guards.referenced_names import of_library

#: Packages whose objects are compared by identity: their contents are large, private, or change without meaning.
_OPAQUE = frozenset({
    "logging", "threading", "_thread", "multiprocessing", "concurrent", "asyncio", "socket", "io", "_io", "weakref",
    "ctypes", "inspect", "importlib", "contextvars", "subprocess", "queue", "re", "pathlib", "abc", "typing", "types",
    "datetime", "time", "warnings", "contextlib", "planner", "widgets", "numba", "IPython", "ipykernel", "traitlets",
    "tqdm", "rich", "pytest", "_pytest",
})  # fmt: skip
_OPAQUE_TORCH = ("torch.optim", "torch.utils.data", "torch._", "torch.profiler", "torch.jit", "torch.fx")


def is_opaque(value: Any) -> bool:
    """Whether an object is compared by identity, whatever is in it."""
    module = getattr(type(value), "__module__", None)
    if not isinstance(module, str) or isinstance(value, BuiltinFunctionType):
        return True
    return (module.partition(".")[0] in _OPAQUE and type(value).__name__ != "SimpleNamespace") or module.startswith(
        _OPAQUE_TORCH
    )


def never_changes(value: Any) -> bool:
    """Whether a named value is one that does not change: a library, or a function or class of a library."""
    if isinstance(value, ModuleType):
        return of_library(value.__name__)
    if isinstance(value, FunctionType | type | BuiltinFunctionType):
        return of_library(getattr(value, "__module__", None))
    return False
