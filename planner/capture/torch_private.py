"""What the capture uses of PyTorch beyond its public interface, in one place.

It holds for torch 2.11 to 2.13. What is private: fake tensors, dispatch modes, the running autograd node, operator
schemas, how a call finds its kernel, the identity of a storage, pytrees, the tables in which a module keeps its
tensors, the hooks of tensors, modules and optimizers, how often tensors were written to and what their layouts are, all
at once, and the profiler's records of single allocations.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache, partial, wraps
from operator import attrgetter
from pathlib import Path
from threading import get_ident
from types import FrameType
from typing import Any, cast

import torch
from torch import nn
from torch._C._dynamo.guards import TensorGuards
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
from torch.nn.modules import module as _modules
from torch.optim import optimizer as _optimizers
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils._python_dispatch import _disable_current_modes as no_modes

from planner.capture import lstm
from planner.capture.layouts import WRONG_STRIDES, right_strides
from planner.errors import StowageError

__all__ = [
    "COPYING", "DATA_DEPENDENT", "GRADIENT_HOOKS", "MATERIALISED", "MIXED", "READS", "UNSUPPORTED",
    "FakeTensor", "FakeTensorMode", "OpOverload", "TorchDispatchMode", "addresses_refused", "allocations",
    "autocasting", "backward_node", "backward_sequence", "certain", "device_of", "fake_call",
    "forward_sequence", "function_modes", "functional_form", "has_gradient_hooks", "has_step_hooks",
    "hook_tables", "is_view", "kernel_name", "layout_guard", "lazy", "mutated_arguments", "no_modes",
    "operator_name", "overriding", "plainly", "pytree", "quantises", "quiet", "saved_tensors_hooks", "schema",
    "storage_identity", "tables", "tensors", "tracing_hidden", "user_modes", "version", "watching_tensor_hooks",
]  # fmt: skip

_TORCH = f"{Path(torch.__file__).parent}{os.sep}"

#: Raised by an op whose result depends on the values of tensors.
DATA_DEPENDENT = (DataDependentOutputException, DynamicOutputShapeException)
#: Raised by an op that has no fake form.
UNSUPPORTED = (UnsupportedFakeTensorException, UnsupportedOperatorException)

#: By a call that copies a tensor, and whether that is lazily conjugated and lazily negated: the op that it amounts to.
MATERIALISED = {
    (torch.ops.aten.clone.default, True, False): torch.ops.aten._conj_physical.default,
    (torch.ops.aten.clone.default, False, True): torch.ops.aten.neg.default,
}
#: Calls that copy their last argument, which may as well be copied first as it reads.
COPYING = frozenset({torch.ops.aten.copy_.default, torch.ops.aten._to_copy.default})

#: Ops by which Python code reads values of tensors.
READS = frozenset({torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default})

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


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors among the arguments of an operator."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors(item)
    elif isinstance(value, dict):
        yield from tensors(tuple(value.values()))


def device_of(tensor: torch.Tensor) -> torch.device:
    """Where a tensor is, or would be if it were not fake; PyTorch's own way to ask is a call of an operator."""
    return tensor.fake_device if isinstance(tensor, FakeTensor) else tensor.device


def fake_call(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call an operator on fake tensors.

    PyTorch's fake form of the grouped product, which mixtures of experts use, refuses all but bfloat16, unlike its
    kernels. Those of normalisations overlook that the CPU's kernels, given an input of low precision and parameters of
    a higher one, keep mean and deviation in the higher. What strides are wrong, `right_strides` puts right. Those of
    oneDNN's LSTM leave out what it keeps for the backward pass, and take both biases' gradients for one tensor. Those
    of bags of embeddings know the CPU's fast kernels for half precision and not for bfloat16. That of the CTC loss
    refuses lengths that are known as well.
    """
    if target is torch.ops.aten._grouped_mm.default and args[0].dtype is not torch.bfloat16:
        return _grouped_product(*args, **kwargs)
    if target is torch.ops.aten.mkldnn_rnn_layer_backward.default:
        return _lstm_gradients(args)
    if target is torch.ops.aten._ctc_loss.default:
        return _ctc_results(*args)
    if target is torch.ops.aten._ctc_loss_backward.default:
        return args[1].new_empty(args[1].shape)
    if target in _BAGS and args[0].dtype is torch.bfloat16:
        return _bags_of_half(target, args, kwargs)
    result = target(*args, **kwargs)
    if target is torch.ops.aten.mkldnn_rnn_layer.default:
        return (*result[:3], _kept_by_lstm(args) if torch.is_grad_enabled() else None)
    if target in WRONG_STRIDES and all(device_of(value).type == "cpu" for value in tensors(args)):
        result = right_strides(target, args, result)
    if target in _NORMALISATIONS and args[0].device.type == "cpu":
        others = [value.dtype for value in args[1:] if isinstance(value, torch.Tensor)]
        statistics = others[0] if others else args[0].dtype
        return (result[0], *(value.to(statistics) for value in result[1:]))
    if target is torch.ops.aten.native_group_norm_backward.default and result[0] is not None:
        return (result[0].to(args[1].dtype), *result[1:])
    return result


def _ctc_results(
    log_probs: torch.Tensor,
    _targets: torch.Tensor,
    _inputs: Sequence[int],
    lengths: Sequence[int],
    *_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of each sequence, and what its backward pass reads: two states per element of a target, and one."""
    slots, rows = log_probs.shape[:2]
    return log_probs.new_empty(rows), log_probs.new_empty(rows, slots, 2 * max(lengths, default=0) + 1)


_BAGS = frozenset({torch.ops.aten._embedding_bag.default, torch.ops.aten._embedding_bag_forward_only.default})


def _bags_of_half(target: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[torch.Tensor, ...]:
    def like(value: Any, before: torch.dtype, after: torch.dtype) -> Any:
        return value.to(after) if isinstance(value, torch.Tensor) and value.dtype is before else value

    result = target(*(like(value, torch.bfloat16, torch.float16) for value in args), **kwargs)
    return tuple(like(value, torch.float16, torch.bfloat16) for value in result)


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


@contextmanager
def overriding(kernels: Mapping[OpOverload, Callable[..., Any]]) -> Iterator[None]:
    """Have this thread's calls of operators answered by other functions, where they would reach a dispatch mode.

    Calls from within PyTorch's own kernels are answered too. Other threads, and calls outside of any dispatch mode,
    find everything as it is.

    Args:
        kernels: by operator of `aten`, a function that is given how to go on without it, then the call's arguments.
    """
    thread = get_ident()
    # the key by which a call with a dispatch mode enters, above autocast and autograd
    beyond = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.PythonTLSSnapshot)

    def answered(target: OpOverload, kernel: Callable[..., Any]) -> Callable[..., Any]:
        def answer(keys: Any, *args: Any, **kwargs: Any) -> Any:
            def go_on(*args: Any, **kwargs: Any) -> Any:
                return target.redispatch(keys & beyond, *args, **kwargs)

            return (kernel if get_ident() == thread else _plainly)(go_on, *args, **kwargs)

        return answer

    library: Any = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    try:
        for target, kernel in kernels.items():
            library.impl(target, answered(target, kernel), "PythonTLSSnapshot", with_keyset=True)
        yield
    finally:
        library._destroy()


def _plainly(go_on: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return go_on(*args, **kwargs)


@contextmanager
def plainly() -> Iterator[None]:
    """Run kernels as they are: without modes, derivatives and autocast."""
    modes = no_modes() if torch._C._len_torch_dispatch_stack() else nullcontext()
    autocast = torch.autocast("cpu", enabled=False) if torch.is_autocast_enabled("cpu") else nullcontext()
    with modes, autocast, torch._C.DisableTorchFunction(), torch.no_grad():
        yield


class Asked(type):
    """Stands for `FakeTensor` while a step is traced: code outside of PyTorch may be told that nothing is fake.

    Attributes:
        asked: whether such code has asked.
    """

    thread: int
    truthful: bool
    asked: bool

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, FakeTensor) and cls._answers(sys._getframe(1))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, FakeTensor) and cls._answers(sys._getframe(1))

    def __getattr__(cls, name: str) -> Any:
        return getattr(FakeTensor, name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return FakeTensor(*args, **kwargs)

    def _answers(cls, frame: FrameType) -> bool:
        if get_ident() != cls.thread or frame.f_code.co_filename.startswith(_TORCH):
            return True
        cls.asked = True
        return cls.truthful


@contextmanager
def addresses_refused() -> Iterator[None]:
    """Let code outside of PyTorch not ask in this thread where a fake tensor lies, which would be nowhere.

    Raises:
        StowageError: it has asked.
    """
    thread, kind = get_ident(), cast(Any, FakeTensor)

    def data_ptr(tensor: torch.Tensor) -> int:
        frame = sys._getframe(1)
        if get_ident() == thread and not frame.f_code.co_filename.startswith(_TORCH):
            raise StowageError(
                f"data_ptr() at {Path(frame.f_code.co_filename).name}:{frame.f_lineno} asks where a tensor lies, which "
                "a plan decides: let the step not depend on it"
            )
        return torch.Tensor.data_ptr(tensor)

    kind.data_ptr = data_ptr
    try:
        yield
    finally:
        del kind.data_ptr


@contextmanager
def tracing_hidden(hide: bool) -> Iterator[Asked]:
    """Let code outside of PyTorch that asks in this thread whether a tensor is fake be told that it is not.

    Such code asks by `isinstance(x, torch._subclasses.FakeTensor)`. PyTorch's own goes on being told the truth.

    Args:
        hide: without it such code is told the truth too, and that it asked is noted.
    """
    package: Any = torch._subclasses
    before = package.FakeTensor
    package.FakeTensor = asked = Asked("FakeTensor", (), {"thread": get_ident(), "truthful": not hide, "asked": False})
    try:
        yield asked
    finally:
        package.FakeTensor = before


def autocasting() -> bool:
    """Whether autocast was on where the op was called that a dispatch mode is handling."""
    with torch._C._RestorePythonTLSSnapshot():  # type: ignore[attr-defined]
        return torch.is_autocast_enabled("cpu")


def tables(module: nn.Module) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The parameters, the buffers and the plain attributes that a module itself holds, by name; these are no copies."""
    return module._parameters, module._buffers, vars(module)


def function_modes() -> int:
    """How many modes that see calls of functions this thread has entered; one of them is a default device."""
    return torch._C._len_torch_function_stack()


def user_modes() -> tuple[object, ...]:
    """The modes that this thread has entered, which see every call of a function or an operator."""
    functions = function_modes()
    if not functions and not torch._C._len_torch_dispatch_stack():
        return ()
    modes = [torch._C._get_function_stack_at(place) for place in range(functions)]
    return (*modes, *_get_current_dispatch_mode_stack())


def saved_tensors_hooks() -> tuple[object, ...]:
    """What this thread has PyTorch call with each tensor that it keeps for a backward pass, and gets back from it."""
    return torch._C._autograd._top_saved_tensors_default_hooks(True) or ()


#: Of a tensor, those who want to be called when it gets its gradient, by kind.
GRADIENT_HOOKS = attrgetter("_backward_hooks"), attrgetter("_post_accumulate_grad_hooks")


def has_gradient_hooks(tensor: torch.Tensor) -> bool:
    """Whether somebody wants to be called when a tensor gets its gradient."""
    return any(hooks(tensor) for hooks in GRADIENT_HOOKS)


def layout_guard(tensors: Sequence[torch.Tensor]) -> Callable[[], bool]:
    """Asks whether tensors are of the class, shape, strides and type they are of now, and want gradients as they do."""
    sizes: Any = [list(tensor.shape) for tensor in tensors]  # which PyTorch declares otherwise than it takes them
    strides: Any = [list(tensor.stride()) for tensor in tensors]
    guards = TensorGuards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)
    return partial(guards.check, *tensors)


def hook_tables(module: nn.Module | None) -> dict[str, dict[int, Any]]:
    """The hooks that a module calls as it runs, by their kind, or those of all modules; these are no copies.

    Args:
        module: None for those that every module calls.
    """
    source, prefix = (_modules, "_global") if module is None else (module, "")
    kinds = {
        "forward hook": "forward_hooks", "forward pre-hook": "forward_pre_hooks", "backward hook": "backward_hooks",
        "backward pre-hook": "backward_pre_hooks",
    }  # fmt: skip
    return {kind: getattr(source, f"{prefix}_{name}") for kind, name in kinds.items()}


@contextmanager
def watching_tensor_hooks(seen: Callable[[object], object]) -> Iterator[None]:
    """Look at what this thread wants called with the gradients of tensors.

    Args:
        seen: called with a hook before it is registered, or with None where a gradient is to be kept; what it raises
            reaches the caller.
    """
    thread, before = get_ident(), torch.Tensor.register_hook

    def watched(register: Any, *, keeps: bool = False) -> Any:
        @wraps(register)
        def look(tensor: torch.Tensor, *hook: Any, **named: Any) -> Any:
            if get_ident() == thread and not (keeps and tensor.is_leaf):
                seen(next(iter((*hook, *named.values())), None))
            return register(tensor, *hook, **named)

        return look

    owner: Any = torch.Tensor  # which has two of these of its own and inherits the third
    after = owner.register_post_accumulate_grad_hook
    owner.register_hook, owner.retain_grad = watched(before), watched(owner.retain_grad, keeps=True)
    owner.register_post_accumulate_grad_hook = watched(after)
    try:
        yield
    finally:
        owner.register_hook, owner.register_post_accumulate_grad_hook = before, after
        del owner.retain_grad


def has_step_hooks(optimizer: torch.optim.Optimizer | None) -> bool:
    """Whether somebody wants to be called before or after an optimizer's steps, or those of all optimizers."""
    tables = [_optimizers._global_optimizer_pre_hooks, _optimizers._global_optimizer_post_hooks]
    if optimizer is not None:
        tables += [optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks]
    return any(tables)


def version(tensor: torch.Tensor) -> int:
    """How often a tensor was written to in place, as far as PyTorch counts."""
    return 0 if tensor.is_inference() else int(tensor._version)


def schema(target: Any) -> Any:
    """The signature of an operator overload: names, types and defaults of arguments, and which are written."""
    return target._schema


def storage_identity(storage: torch.UntypedStorage) -> int:
    """A number that no other living storage has."""
    return int(storage._cdata)


def allocations(call: Callable[[], object]) -> list[int]:
    """Bytes that PyTorch's allocator gives (above 0) and takes back (below 0) while a call runs, one after the other.

    The profiler's public face adds up what each op keeps, and so does not say what it holds at its worst moment.

    Raises:
        StowageError: somebody else profiles this thread.
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


def lazy(tensor: torch.Tensor) -> bool:
    """Whether a tensor is the conjugate or the negative of what lies in its memory."""
    return bool(tensor.is_conj() or tensor.is_neg())


@cache
def is_view(target: OpOverload) -> bool:
    """Whether an operator only makes other views of its first argument.

    Those made of other operators, such as `resolve_conj`, are not asked: they may copy.
    """
    name = target.name()  # type: ignore[no-untyped-call]
    if torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd"):
        return False
    return bool(target.is_view) or target in (torch.ops.aten.detach.default, torch.ops.aten._unsafe_view.default)


def forward_sequence() -> int:
    """The sequence number of the autograd node made last on this thread."""
    return int(torch.autograd._get_sequence_nr()) - 1  # type: ignore[attr-defined]


def backward_sequence() -> int | None:
    """The sequence number of the autograd node that runs now; None outside a backward pass."""
    node = torch._C._current_autograd_node()
    return None if node is None else int(node._sequence_nr())


def backward_node() -> str:
    """What autograd calls the derivative that runs now, such as `MulBackward0`; empty outside a backward pass."""
    node = torch._C._current_autograd_node()
    return "" if node is None else str(node.name())


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
