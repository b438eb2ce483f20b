"""A graph of kernels as CUDA has it: recorded without being run, and replayed on the memory that it was recorded on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from planner.program import backend_of

#: What asks the device for a value, or draws from a generator that the graph does not know.
REFUSED = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape, torch.Tag.nondeterministic_seeded)


class KernelGraph(TorchDispatchMode):
    """Records the kernels that are called while this mode is active, and runs none.

    Results that are no argument's get memory of the graph's own, in which each replay puts them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._kernels: list[tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = []
        self._fakes = FakeTensorMode()

    def __len__(self) -> int:
        """How many kernels it has."""
        return len(self._kernels)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if any(tag in func.tags for tag in REFUSED):
            raise RuntimeError(f"CUDA error: operation not permitted when stream is capturing ({func})")
        if func.is_view:
            return func(*args, **kwargs)
        found = self._results(func, args, kwargs)
        self._kernels.append((func, args, kwargs, found))
        return found

    def _results(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given: dict[int, Tensor] = {}  # by fake

        def faked(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            fake = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
            given[id(fake)] = value
            return fake

        def real(value: Any) -> Any:
            if not isinstance(value, Tensor) or id(value) in given:
                return given.get(id(value), value)
            return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)

        with self._fakes:
            shaped, named = pytree.tree_map(faked, (args, kwargs))
            found = backend_of("cpu").fake_call(func, shaped, named)  # PyTorch says the wrong dtype of some
        return pytree.tree_map(real, found)

    def replay(self) -> None:
        """Run the kernels."""
        for func, args, kwargs, results in self._kernels:
            found = func(*args, **kwargs)
            for result, value in zip(pytree.tree_leaves(results), pytree.tree_leaves(found), strict=True):
                if isinstance(result, Tensor) and value is not result:
                    result.copy_(value)
