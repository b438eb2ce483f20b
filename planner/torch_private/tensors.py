"""Tensors, their storages, and the tables in which a module keeps them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn
from torch._C._dynamo.guards import TensorGuards
from torch._C._profiler import _ExperimentalConfig
from torch.utils import _pytree as pytree

from planner.errors import StowageError

__all__ = [
    "allocations", "layout_guard", "lazy", "pytree", "storage_holders", "storage_identity", "tables", "tensors",
    "version",
]  # fmt: skip


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors among the arguments of an operator."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors(item)
    elif isinstance(value, dict):
        yield from tensors(tuple(value.values()))


def tables(module: nn.Module) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The parameters, buffers and plain attributes that a module itself holds, by name; these are not copies."""
    return module._parameters, module._buffers, vars(module)


def layout_guard(tensors: Sequence[torch.Tensor]) -> Callable[[], bool]:
    """Return a check that tensors still have their current class, shape, strides, dtype and `requires_grad`."""
    sizes: Any = [list(tensor.shape) for tensor in tensors]  # PyTorch's declared type differs from what it accepts
    strides: Any = [list(tensor.stride()) for tensor in tensors]
    guards = TensorGuards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)
    return partial(guards.check, *tensors)


def version(tensor: torch.Tensor) -> int:
    """How often a tensor was written in place, as far as PyTorch counts."""
    return 0 if tensor.is_inference() else int(tensor._version)


def storage_identity(storage: torch.UntypedStorage) -> int:
    """A number that no other living storage has."""
    return int(storage._cdata)


def storage_holders(storage: torch.UntypedStorage) -> int:
    """How many tensors have a storage, and one more for Python's own object of it."""
    return int(torch._C._storage_Use_Count(storage._cdata))


def lazy(tensor: torch.Tensor) -> bool:
    """Whether a tensor is the conjugate or the negative of what its memory holds."""
    return bool(tensor.is_conj() or tensor.is_neg())


def allocations(call: Callable[[], object]) -> list[int]:
    """Bytes that PyTorch's allocator allocates (above 0) and frees (below 0) while a call runs, in order.

    The profiler's public interface sums up what each op keeps, and so does not give the op's peak.

    Raises:
        StowageError: this thread is already being profiled.
    """
    profiler: Any = torch.autograd
    if profiler._profiler_enabled():
        raise StowageError(
            "a profiler is on, which the planner needs itself while the first step is made: make one step before it"
        )
    config = profiler.ProfilerConfig(
        profiler.ProfilerState.CPU, False, True, False, False, False, _ExperimentalConfig()
    )
    profiler._enable_profiler_legacy(config)
    try:
        call()
    finally:
        records = profiler._disable_profiler_legacy()
    return [int(event.cpu_memory_usage()) for thread in records for event in thread if event.kind() == "memory_alloc"]
