"""PyTorch's metadata of operators: schemas, views, mutated arguments, random draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload

__all__ = [
    "COPYING",
    "MATERIALISED",
    "MIXED",
    "READS",
    "OpOverload",
    "draws_by_shape",
    "functional_form",
    "has_kernel",
    "is_deterministic",
    "is_view",
    "kernel_name",
    "mutated_arguments",
    "operator_name",
    "quantises",
    "schema",
]  # fmt: skip

#: By a call that copies a tensor, and whether that is lazily conjugated and lazily negated: the equivalent op.
MATERIALISED = {
    (torch.ops.aten.clone.default, True, False): torch.ops.aten._conj_physical.default,
    (torch.ops.aten.clone.default, False, True): torch.ops.aten.neg.default,
}

#: Calls that copy their last argument, which may equally be copied first to resolve lazy conjugation or negation.
COPYING = frozenset({torch.ops.aten.copy_.default, torch.ops.aten._to_copy.default})

#: Ops by which Python code reads values of tensors.
READS = frozenset({torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default})

#: Ops whose kernels call others that autocast intercepts, so that their bits depend on whether it is enabled.
MIXED = frozenset({torch.ops.aten._trilinear.default, torch.ops.aten.linalg_pinv.atol_rtol_tensor})

#: The argument of attention that is the probability of dropping a value; LSTMs have one by position.
_PROBABILITY = "dropout_p"

#: Not those whose values decide how often they draw, such as a Poisson draw or a leaky ReLU of random slopes.
_DRAWING_BY_SHAPE = frozenset({
    "_scaled_dot_product_efficient_attention", "_scaled_dot_product_flash_attention",
    "bernoulli", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "native_dropout", "normal_",
    "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "random_", "randperm", "uniform_",
})  # fmt: skip

# Kernels that update their fourth and fifth argument, the running mean and variance, without declaring it.
_SILENT = frozenset({"aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm"})


def overload(target: str) -> Any:
    """The operator of a name such as `aten.add.Tensor`."""
    found: Any = torch.ops
    for part in target.split("."):
        found = getattr(found, part)
    return found


def schema(target: Any) -> Any:
    """The signature of an operator overload: names, types and defaults of arguments, and which are written."""
    return target._schema


@cache
def is_view(target: OpOverload) -> bool:
    """Whether an operator only returns views of its first argument.

    Composite operators, such as `resolve_conj`, do not count: they may copy.
    """
    name = target.name()  # type: ignore[no-untyped-call]
    if torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd"):
        return False
    return bool(target.is_view) or target in (torch.ops.aten.detach.default, torch.ops.aten._unsafe_view.default)


def mutated_arguments(target: OpOverload, args: Sequence[Any]) -> tuple[int | str, ...]:
    """Positions (or names, where keyword-only) of the arguments that a call writes into."""
    if target._schema.name in _SILENT:
        return (3, 4) if args[5] else ()  # the running statistics are updated only in training
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
    """Whether a kernel takes or makes quantised tensors, which fake tensors do not distinguish from others."""
    namespace, name = target._schema.name.split("::")
    return namespace == "quantized" or name.startswith(("quantize_per_", "dequantize", "_empty_affine", "_empty_per_"))


@cache
def operator_name(target: OpOverload) -> str:
    """`add_` for `aten.add_.Tensor`."""
    return str(target._schema.name.rpartition("::")[2])


@cache
def kernel_name(target: OpOverload) -> str:
    """The name that a kernel is counted under, in place or not: `aten.add` for `aten.add_.Tensor`."""
    return str(target._schema.name.replace("::", ".").removesuffix("_"))


def is_deterministic(target: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call draws no random numbers, including because it drops values with probability 0."""
    if not _seeded(target):
        return True
    position = _probability(target)
    if position is None:
        return False
    probability = args[position] if position < len(args) else kwargs.get(_PROBABILITY, 0.0)
    return bool(probability == 0.0)


def draws_by_shape(kernel: str) -> bool:
    """Whether what a call takes tells how many random numbers it draws, apart from the values in its tensors.

    Args:
        kernel: an operator's name without namespace and overload.
    """
    return kernel in _DRAWING_BY_SHAPE


@cache
def _seeded(target: OpOverload) -> bool:
    return torch.Tag.nondeterministic_seeded in target.tags


@cache
def _probability(target: OpOverload) -> int | None:
    names = [argument.name for argument in target._schema.arguments]
    return next((names.index(name) for name in (_PROBABILITY, "dropout") if name in names), None)


@cache
def functional_form(target: OpOverload) -> OpOverload | None:
    """The functional form of an in-place op: `aten.relu.default` for `aten.relu_.default`; None if there is none."""
    namespace, name = target._schema.name.split("::")
    packet = getattr(getattr(torch.ops, namespace), name.removesuffix("_"), None)
    if packet is None or not name.endswith("_"):
        return None
    form = getattr(packet, target._overloadname, None)
    return form if isinstance(form, OpOverload) else None


def has_kernel(target: Callable[..., Any], device: str) -> bool:
    """Whether PyTorch has a kernel of an operator for a type of device, or makes it of operators that may have one.

    Args:
        target: an operator overload.
        device: PyTorch's name of its type.
    """
    name, overload = schema(target).name, schema(target).overload_name
    name = f"{name}.{overload}" if overload else name
    composites = ("ExplicitAutograd", "ExplicitAutogradNonFunctional", "ImplicitAutograd")
    keys = (device.upper(), *(f"Composite{kind}" for kind in composites))
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in keys)
