"""What the capture uses of PyTorch beyond its public interface, in one place.

It holds for torch 2.11 to 2.13. What is private: fake tensors, dispatch modes, the running autograd node, operator
schemas, the identity of a storage, pytrees, the tables in which a module keeps its tensors, the hooks of tensors and
optimizers, how often tensors were written to, and the profiler's records of single allocations.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import nn
from torch._C._profiler import _ExperimentalConfig
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)
from torch.optim import optimizer as _optimizers
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._python_dispatch import _disable_current_modes as no_modes

from planner.capture import lstm
from planner.capture.layouts import right_strides
from planner.errors import StowageError

__all__ = [
    "DATA_DEPENDENT", "LAZY", "MIXED", "UNSUPPORTED", "FakeTensor", "FakeTensorMode", "OpOverload",
    "TorchDispatchMode", "allocations", "autocasting", "backward_sequence", "certain", "fake_call",
    "forward_sequence", "functional_form", "has_gradient_hooks", "has_step_hooks", "kernel_name",
    "marks", "mutated_arguments", "no_modes", "operator_name", "pytree", "quantises", "quiet",
    "schema", "storage_identity", "tables",
]  # fmt: skip

#: Raised by an op whose result depends on the values of tensors.
DATA_DEPENDENT = (DataDependentOutputException, DynamicOutputShapeException)
#: Raised by an op that has no fake form.
UNSUPPORTED = (UnsupportedFakeTensorException, UnsupportedOperatorException)

#: Ops whose result is another reading of the same memory, which a layout does not say.
LAZY = frozenset({torch.ops.aten._conj.default, torch.ops.aten._neg_view.default})

#: Ops whose kernels call others that autocast takes over, so that their bits depend on whether it is on.
MIXED = frozenset({torch.ops.aten._trilinear.default, torch.ops.aten.linalg_pinv.atol_rtol_tensor})

# Kernels that update their fourth and fifth argument, the running mean and variance, without saying so.
_SILENT = frozenset({"aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm"})


@contextmanager
def quiet() -> Iterator[None]:
    """Keep fake tensors from logging the traceback of an error that is raised as well."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


_NORMALISATIONS = frozenset({
    torch.ops.aten.native_layer_norm.default, torch.ops.aten.native_batch_norm.default,
    torch.ops.aten.native_group_norm.default,
})  # fmt: skip


def fake_call(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call an operator on fake tensors.

    PyTorch's fake form of the grouped product, which mixtures of experts use, refuses all but bfloat16, unlike its
    kernels. Those of normalisations overlook that the CPU's kernels, given an input of low precision and parameters of
    a higher one, keep mean and deviation in the higher. What strides are wrong, `right_strides` puts right. Those of
    oneDNN's LSTM leave out what it keeps for the backward pass, and take both biases' gradients for one tensor.
    """
    if target is torch.ops.aten._grouped_mm.default and args[0].dtype is not torch.bfloat16:
        return _grouped_product(*args, **kwargs)
    if target is torch.ops.aten.mkldnn_rnn_layer_backward.default:
        return _lstm_gradients(args)
    result = target(*args, **kwargs)
    if target is torch.ops.aten.mkldnn_rnn_layer.default:
        return (*result[:3], _kept_by_lstm(args) if torch.is_grad_enabled() else None)
    if all(value.device.type == "cpu" for value in pytree.tree_leaves(args) if isinstance(value, torch.Tensor)):
        result = right_strides(target, args, result)
    if target in _NORMALISATIONS and args[0].device.type == "cpu":
        others = [value.dtype for value in args[1:] if isinstance(value, torch.Tensor)]
        statistics = others[0] if others else args[0].dtype
        return (result[0], *(value.to(statistics) for value in result[1:]))
    if target is torch.ops.aten.native_group_norm_backward.default and result[0] is not None:
        return (result[0].to(args[1].dtype), *result[1:])
    return result


def _kept_by_lstm(args: Sequence[Any]) -> torch.Tensor:
    source, hidden = args[0], args[10]
    _check_lstm(source.dtype)
    slots, rows, inputs = source.shape
    size = lstm.workspace_bytes(slots, rows, inputs, hidden, source.dtype)
    return torch.empty(size, dtype=torch.uint8, device=source.device)


def _lstm_gradients(args: Sequence[Any]) -> tuple[torch.Tensor, ...]:
    """Of the input, the weights of input and state, a bias for each, and the states; always in single precision."""
    source, of_input, of_state, bias, _, state, cells = args[:7]
    bias = bias if args[17] else source.new_empty(of_input.shape[0])  # without biases others stand in their place
    likes = source, of_input, of_state, bias, bias, state, cells
    return tuple(like.new_empty(like.shape, dtype=torch.float32) for like in likes)


@cache
def _check_lstm(dtype: torch.dtype) -> None:
    """Try the layout out on this processor, where oneDNN might choose another kernel than is known here."""
    shape = 2, 3, 20, 10
    with no_modes(), torch.enable_grad():
        if lstm.measured_workspace_bytes(*shape, dtype) != lstm.workspace_bytes(*shape, dtype):
            raise StowageError(
                "nn.LSTM keeps another amount of memory here than Stowage knows of: switch oneDNN off by "
                "torch.backends.mkldnn.enabled = False"
            )


def _grouped_product(
    left: torch.Tensor,
    right: torch.Tensor,
    ends: torch.Tensor | None = None,
    _bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    rows, columns = left.shape[-2], right.shape[-1]
    groups: list[int] = []
    if left.dim() == right.dim():
        groups = [left.shape[0] if left.dim() == 3 or ends is None else ends.shape[0]]
    dtype = out_dtype or left.dtype
    lane = 16 // dtype.itemsize  # rows start at multiples of 16 bytes
    width = -(-columns // lane) * lane
    strides = [rows * width] * len(groups) + [width, 1]
    return left.new_empty_strided([*groups, rows, columns], strides, dtype=dtype)


def autocasting() -> bool:
    """Whether autocast was on where the op was called that a dispatch mode is handling."""
    with torch._C._RestorePythonTLSSnapshot():  # type: ignore[attr-defined]
        return torch.is_autocast_enabled("cpu")


def tables(module: nn.Module) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The parameters, the buffers and the plain attributes that a module itself holds, by name; these are no copies."""
    return module._parameters, module._buffers, vars(module)


def has_gradient_hooks(tensor: torch.Tensor) -> bool:
    """Whether somebody wants to be called when a tensor gets its gradient."""
    return bool(tensor._backward_hooks) or bool(getattr(tensor, "_post_accumulate_grad_hooks", None))


def has_step_hooks(optimizer: torch.optim.Optimizer | None) -> bool:
    """Whether somebody wants to be called before or after an optimizer's steps, or those of all optimizers."""
    tables = [_optimizers._global_optimizer_pre_hooks, _optimizers._global_optimizer_post_hooks]
    if optimizer is not None:
        tables += [optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks]
    return any(tables)


def marks(tensors: Sequence[torch.Tensor]) -> list[tuple[int, int]]:
    """Per tensor how often it was written to in place, and where it lies."""
    return [(0 if tensor.is_inference() else tensor._version, tensor.data_ptr()) for tensor in tensors]


def schema(target: Any) -> Any:
    """The signature of an operator overload: names, types and defaults of arguments, and which are written."""
    return target._schema


def storage_identity(storage: torch.UntypedStorage) -> int:
    """A number that no other living storage has."""
    return int(storage._cdata)


def allocations(call: Callable[[], object]) -> list[int]:
    """Bytes that PyTorch's allocator gives (above 0) and takes back (below 0) while a call runs, one after the other.

    The profiler's public face adds up what each op keeps, and so does not say what it holds at its worst moment.
    """
    profiler: Any = torch.autograd
    config = profiler.ProfilerConfig(
        profiler.ProfilerState.CPU, False, True, False, False, False, _ExperimentalConfig()
    )
    profiler._enable_profiler_legacy(config)
    try:
        call()
    finally:
        records = profiler._disable_profiler_legacy()
    return [int(event.cpu_memory_usage()) for thread in records for event in thread if event.kind() == "memory_alloc"]


def forward_sequence() -> int:
    """The sequence number of the autograd node made last on this thread."""
    return int(torch.autograd._get_sequence_nr()) - 1  # type: ignore[attr-defined]


def backward_sequence() -> int | None:
    """The sequence number of the autograd node that runs now; None outside a backward pass."""
    node = torch._C._current_autograd_node()
    return None if node is None else int(node._sequence_nr())


def mutated_arguments(target: OpOverload, args: Sequence[Any]) -> tuple[int | str, ...]:
    """Positions (or names, where keyword-only) of the arguments that a call writes into."""
    if target._schema.name in _SILENT:
        return (3, 4) if args[5] else ()  # the statistics run along only in training
    return _declared(target)


@cache
def _declared(target: OpOverload) -> tuple[int | str, ...]:
    return tuple(
        argument.name if argument.kwarg_only else place
        for place, argument in enumerate(target._schema.arguments)
        if argument.alias_info is not None and argument.alias_info.is_write
    )


@cache
def quantises(target: OpOverload) -> bool:
    """Whether a kernel takes or makes quantised tensors, which fake tensors do not tell from others."""
    namespace, name = target._schema.name.split("::")
    return namespace == "quantized" or name.startswith(("quantize_per_", "dequantize", "_empty_affine", "_empty_per_"))


@cache
def operator_name(target: OpOverload) -> str:
    """`add_` for `aten.add_.Tensor`."""
    return str(target._schema.name.rpartition("::")[2])


@cache
def kernel_name(target: OpOverload) -> str:
    """What a kernel is counted as, in place or not: `aten.add` for `aten.add_.Tensor`."""
    return str(target._schema.name.replace("::", ".").removesuffix("_"))


def certain(target: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call draws no random numbers, also because it drops values with probability 0."""
    if torch.Tag.nondeterministic_seeded not in target.tags:
        return True
    position = _probability(target)
    if position is None:
        return False
    probability = args[position] if position < len(args) else kwargs.get("dropout_p", 0.0)
    return bool(probability == 0.0)


@cache
def _probability(target: OpOverload) -> int | None:
    names = [argument.name for argument in target._schema.arguments]
    return names.index("dropout_p") if "dropout_p" in names else None


@cache
def functional_form(target: OpOverload) -> OpOverload | None:
    """`aten.relu.default` for `aten.relu_.default`; None where there is none."""
    namespace, name = target._schema.name.split("::")
    packet = getattr(getattr(torch.ops, namespace), name.removesuffix("_"), None)
    if packet is None or not name.endswith("_"):
        return None
    form = getattr(packet, target._overloadname, None)
    return form if isinstance(form, OpOverload) else None
