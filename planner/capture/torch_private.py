"""Everything that is used of PyTorch beyond its public interface, in one place.

It holds for torch 2.11 to 2.13. What is private: fake tensors, dispatch modes, the running autograd node, operator
schemas and the identity of a storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._python_dispatch import _disable_current_modes as no_modes

__all__ = [
    "DATA_DEPENDENT", "UNSUPPORTED", "FakeTensor", "FakeTensorMode", "OpOverload", "TorchDispatchMode",
    "arguments", "backward_sequence", "fake_call", "forward_sequence", "functional_form", "mutated_arguments", "no_modes",
    "storage_identity",
]  # fmt: skip

#: Raised by an op whose result depends on the values of tensors.
DATA_DEPENDENT = (DataDependentOutputException, DynamicOutputShapeException)
#: Raised by an op that has no fake form.
UNSUPPORTED = (UnsupportedFakeTensorException, UnsupportedOperatorException)

# Kernels that update arguments without saying so in their schema: the running mean and variance.
_SILENT_UPDATES = {
    "aten::native_batch_norm": (3, 4),
    "aten::cudnn_batch_norm": (3, 4),
    "aten::miopen_batch_norm": (3, 4),
}


def fake_call(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call an operator on fake tensors.

    PyTorch's fake form of the grouped product, which mixtures of experts use, refuses all but bfloat16, unlike its
    kernels.
    """
    if target is torch.ops.aten._grouped_mm.default and args[0].dtype is not torch.bfloat16:
        return _grouped_product(*args, **kwargs)
    return target(*args, **kwargs)


def _grouped_product(
    left: torch.Tensor,
    right: torch.Tensor,
    ends: torch.Tensor | None = None,
    _bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    rows, columns = left.shape[-2], right.shape[-1]
    groups = [ends.shape[0]] if left.dim() == right.dim() == 2 and ends is not None else []
    if left.dim() == right.dim() == 3:
        groups = [left.shape[0]]
    dtype = out_dtype or left.dtype
    lane = 16 // dtype.itemsize  # rows start at multiples of 16 bytes
    width = -(-columns // lane) * lane
    strides = [rows * width] * len(groups) + [width, 1]
    return left.new_empty_strided([*groups, rows, columns], strides, dtype=dtype)


def storage_identity(storage: torch.UntypedStorage) -> int:
    """A number that no other living storage has."""
    return int(storage._cdata)


def forward_sequence() -> int:
    """The sequence number of the autograd node made last on this thread."""
    return int(torch.autograd._get_sequence_nr()) - 1  # type: ignore[attr-defined]


def backward_sequence() -> int | None:
    """The sequence number of the autograd node that runs now; None outside a backward pass."""
    node = torch._C._current_autograd_node()
    return None if node is None else int(node._sequence_nr())


@cache
def mutated_arguments(target: OpOverload) -> tuple[int | str, ...]:
    """Positions (or names, where keyword-only) of the arguments that a kernel writes into."""
    silent = _SILENT_UPDATES.get(target._schema.name)
    if silent is not None:
        return silent
    return tuple(
        argument.name if argument.kwarg_only else place
        for place, argument in enumerate(target._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    )


def arguments(target: OpOverload) -> Iterator[tuple[str, Any, bool]]:
    """Name, default value and keyword-only mark of every argument."""
    for argument in target._schema.arguments:
        yield argument.name, argument.default_value, argument.kwarg_only


def functional_form(target: OpOverload) -> OpOverload | None:
    """`aten.relu.default` for `aten.relu_.default`; None where there is none."""
    namespace, name = target._schema.name.split("::")
    packet = getattr(getattr(torch.ops, namespace), name.removesuffix("_"), None)
    if packet is None or not name.endswith("_"):
        return None
    form = getattr(packet, target._overloadname, None)
    return form if isinstance(form, OpOverload) else None
