"""How an op is called so that its results are written to memory chosen in advance.

Only this module decides it: capture plans scratch memory by it, the profiler measures the same calls, and the executor
runs them. There are four forms, of which the first that applies is used:

- *in place*: the call writes into its own arguments and is made unchanged;
- *rewritten*: a call that does exactly the same arithmetic directly into the result (`clone` is a copy, `relu` is
  `clamp_min` with 0);
- *native*: the kernel's own `out=` variant. PyTorch also generates `out=` variants that run the op and copy;
  those are tagged `generated` and gain nothing;
- *functional*: run the op, then copy what it returns. The results exist twice for a moment, so this needs scratch
  memory of their size.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from planner import torch_private as private
from planner.errors import StowageError
from planner.program.isolated_generator import has_generator
from planner.program.kernels.backend import Backend
from planner.program.kernels.rewrites import DRAWING, BoundCall
from planner.program.program import Call

#: Arguments that a result already determines.
_LAYOUT_ARGUMENTS = frozenset({"dtype", "layout", "device", "pin_memory"})


@dataclass(frozen=True, slots=True)
class OutVariant:
    """The `out=` overload of an operator.

    Args:
        target: the overload.
        names: names of its out arguments, in the order of its results.
        defaults: (position, name, default) of each argument that is optional for the operator and required by its
            `out=` overload.
        left_out: arguments of the operator that its `out=` overload does not have, since a result determines them.
    """

    target: Callable[..., Any]
    names: tuple[str, ...]
    defaults: tuple[tuple[int, str, Any], ...]
    left_out: frozenset[str]


def writes_directly(backend: Backend, call: Call) -> bool:
    """Whether a call writes its results to their destination without a second copy of them in scratch memory.

    A kernel cannot omit a result, so a result without a tensor in the graph rules out `out=`.
    """
    if call.in_place:
        return True
    return all(tensor >= 0 for tensor in call.results) and (
        call.target in backend.rewritten or out_variant(backend, call.target) is not None
    )


def takes_generator(backend: Backend, target: Callable[..., Any]) -> bool:
    """Whether a random operator accepts, through an argument `generator` of `bind`, the generator to draw from."""
    return backend.drawing is not None or _given_generator(backend, target)


def _given_generator(backend: Backend, target: Callable[..., Any]) -> bool:
    return (target in DRAWING and target in backend.rewritten) or has_generator(target)


def bind(
    backend: Backend,
    call: Call,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    results: Sequence[Tensor | None],
) -> BoundCall:
    """Bind a call to its arguments and to the memory of its results.

    Args:
        backend: of the device that it is called on.
        call: the call; only its target and whether it works in place matter here.
        args, kwargs: its arguments, with the tensors and numbers filled in.
        results: per value it returns, its destination; None if the value is unused.
    """
    target = call.target
    if "generator" in kwargs and backend.drawing is not None and not _given_generator(backend, target):
        others = {name: value for name, value in kwargs.items() if name != "generator"}
        return backend.drawing(kwargs["generator"], bind(backend, call, args, others, results))
    if call.in_place:
        return BoundCall(target, tuple(args), dict(kwargs))
    rewrite = backend.rewritten.get(target)
    if rewrite is not None and isinstance(results[0], Tensor):
        return rewrite(*results, *args, **kwargs)
    variant = out_variant(backend, target)
    whole = all(isinstance(result, Tensor) for result in results)
    if variant is not None and whole and not backend.rounds_apart(target, args):
        kept = {name: value for name, value in kwargs.items() if name not in variant.left_out}
        missing = {name: value for place, name, value in variant.defaults if place >= len(args) and name not in kept}
        bound = BoundCall(variant.target, tuple(args), missing | kept | dict(zip(variant.names, results, strict=True)))
        if not _resizes(bound, variant.names):
            return bound
    unwritten = backend.unwritten.get(target, frozenset())
    results = [None if place in unwritten else result for place, result in enumerate(results)]
    run = _run_with_gradients if backend.keeps_gradients(target, results) else _run_and_copy
    return BoundCall(run, (target, tuple(args), dict(kwargs), tuple(results)), {})


@cache
def out_variant(backend: Backend, target: Callable[..., Any]) -> OutVariant | None:
    """Return the `out=` overload that an operator's kernel was written for, or None if there is none."""
    schema = private.schema(target)
    reduces = any(argument.name == "reduction" for argument in schema.arguments)
    if reduces and not schema.name.endswith("_backward"):
        return None  # `mse_loss` resizes its result to hold the losses before it sums them
    if target in backend.storage_aware:
        return None
    wanted = [(a.name, str(a.type)) for a in schema.arguments if a.name not in _LAYOUT_ARGUMENTS]
    packet = target.overloadpacket  # type: ignore[attr-defined]
    for name in packet.overloads():
        overload = getattr(packet, name)
        out, given, demanded = [], [], set()
        for argument in private.schema(overload).arguments:
            if argument.kwarg_only and argument.alias_info is not None and argument.alias_info.is_write:
                out.append(argument.name)
                continue
            if not argument.has_default_value():
                demanded.add(argument.name)
            if argument.name not in _LAYOUT_ARGUMENTS:
                given.append((argument.name, str(argument.type)))
        lists = any(str(value.type) != "Tensor" for value in schema.returns)
        if not out or lists or len(out) != len(schema.returns) or demanded & _LAYOUT_ARGUMENTS:
            continue
        if given == wanted and torch.Tag.generated not in overload.tags:
            defaults = tuple(
                (place, argument.name, argument.default_value)
                for place, argument in enumerate(schema.arguments)
                if argument.has_default_value() and argument.name in demanded
            )
            taken = {argument.name for argument in private.schema(overload).arguments}
            return OutVariant(overload, tuple(out), defaults, _LAYOUT_ARGUMENTS - taken)
    return None


def _resizes(bound: BoundCall, names: tuple[str, ...]) -> bool:
    """Whether a kernel would resize the memory it is given, as it would for a result of another shape.

    That would write outside the result's memory. The check runs the kernel on tensors without memory.
    """
    tensors = [*_tensors(bound.args), *_tensors(tuple(bound.kwargs.values()))]
    key = (
        bound.function,
        tuple((t.shape, t.stride(), t.dtype) for t in tensors),
        repr(_plain([bound.args, *bound.kwargs.items()])),
    )
    if key not in _RESIZING:
        kwargs = {name: _bodiless(value) for name, value in bound.kwargs.items()}
        try:
            with warnings.catch_warnings(action="ignore"):
                bound.function(*_bodiless(bound.args), **kwargs)
        except (NotImplementedError, RuntimeError):  # cannot be determined
            _RESIZING[key] = False
        else:
            _RESIZING[key] = any(_layout(kwargs[name]) != _layout(bound.kwargs[name]) for name in names)
    return _RESIZING[key]


#: Cached results of `_resizes`, by kernel, layouts and other arguments.
_RESIZING: dict[object, bool] = {}


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [tensor for item in value for tensor in _tensors(item)] if isinstance(value, list | tuple) else []


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    # no shape depends on a float, and some floats change; nor on a generator
    return None if isinstance(value, Tensor | float | torch.Generator) else value


def _bodiless(value: Any) -> Any:
    if isinstance(value, Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, torch.Generator):
        return None
    return type(value)(_bodiless(item) for item in value) if isinstance(value, list | tuple) else value


def _layout(tensor: Tensor) -> tuple[object, ...]:
    return tensor.shape, tensor.stride()


def _run_and_copy(
    target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], results: tuple[Tensor | None, ...]
) -> None:
    values = target(*args, **kwargs)
    if isinstance(values, Tensor):
        values = (values,)
    for result, value in zip(results, values, strict=True):
        if result is not None and value is not None:
            if value.dtype is not result.dtype:  # a copy would round
                raise StowageError(f"{target} returns {value.dtype} and was captured as {result.dtype}; report this op")
            result.copy_(value)


def _run_with_gradients(*call: Any) -> None:
    with torch.enable_grad():
        _run_and_copy(*call)
