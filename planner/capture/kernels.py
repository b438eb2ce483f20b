"""How an op is called so that its results land in memory that was chosen beforehand.

The one place that decides it: capture plans the temporary memory by it, the machine room measures the same calls,
the executor runs them. Four forms, the first that applies:

- *in place*: the call writes into its own arguments and is made as it is;
- *rewritten*: a call that does the very same arithmetic straight into the result (`clone` is a copy, `relu` is
  `clamp_min` with 0);
- *native*: the kernel's own `out=` variant. PyTorch also generates `out=` variants that run the op and copy;
  those are tagged `generated` and gain nothing;
- *functional*: run the op, copy what it returns. The results live twice for a moment, so this needs as much
  temporary memory as they are large.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from planner.capture import torch_private as private
from planner.capture.layouts import plainly_laid
from planner.capture.program import Call
from planner.errors import StowageError

_ATEN = torch.ops.aten
#: Arguments that a result already decides.
_LAYOUT_ARGUMENTS = frozenset({"dtype", "layout", "device", "pin_memory"})


class Bound(NamedTuple):
    """A call with everything in place: run it as `function(*args, **kwargs)`."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True, slots=True)
class OutVariant:
    """The `out=` overload of an operator, and the names of its out arguments, in the order of its results."""

    target: Callable[..., Any]
    names: tuple[str, ...]


def writes_directly(call: Call) -> bool:
    """Whether a call's results land in place without a second copy of them in temporary memory.

    A kernel cannot leave out a result, so one that the graph has no tensor for rules `out=` out.
    """
    if call.in_place or call.target in _REWRITTEN:
        return True
    return all(tensor >= 0 for tensor in call.results) and out_variant(call.target) is not None


def bind(call: Call, args: Sequence[Any], kwargs: Mapping[str, Any], results: Sequence[Tensor | None]) -> Bound:
    """Tie a call to its arguments and to the memory of its results.

    Args:
        call: the call; only its target and whether it works in place matter here.
        args, kwargs: its arguments, tensors and numbers in place.
        results: per value it returns, where it belongs; None for what nobody reads.
    """
    target = call.target
    if call.in_place:
        return Bound(target, tuple(args), dict(kwargs))
    rewrite = _REWRITTEN.get(target)
    if rewrite is not None and isinstance(results[0], Tensor):
        return rewrite(results[0], *args, **kwargs)
    variant = out_variant(target)
    if variant is not None and all(isinstance(result, Tensor) for result in results) and not _scattered(target, args):
        kept = {name: value for name, value in kwargs.items() if name not in _LAYOUT_ARGUMENTS}
        bound = Bound(variant.target, tuple(args), kept | dict(zip(variant.names, results, strict=True)))
        if not _resizes(bound, variant.names):
            return bound
    # oneDNN's LSTM keeps something for a backward pass, and rounds accordingly, where gradients could be asked for
    run = _run_with_gradients if target is _ATEN.mkldnn_rnn_layer.default and results[3] is not None else _run_and_copy
    return Bound(run, (target, tuple(args), dict(kwargs), tuple(results)), {})


@cache
def out_variant(target: Callable[..., Any]) -> OutVariant | None:
    """The `out=` overload that an operator's kernel was written for, or None where there is no such thing."""
    schema = private.schema(target)
    reduces = any(argument.name == "reduction" for argument in schema.arguments)
    if reduces and not schema.name.endswith("_backward"):
        return None  # `mse_loss` writes the losses that it then adds up into its result, resized
    wanted = [(a.name, str(a.type)) for a in schema.arguments if a.name not in _LAYOUT_ARGUMENTS]
    packet = target.overloadpacket  # type: ignore[attr-defined]
    for name in packet.overloads():
        overload = getattr(packet, name)
        out, given = [], []
        for argument in private.schema(overload).arguments:
            if argument.kwarg_only and argument.alias_info is not None and argument.alias_info.is_write:
                out.append(argument.name)
            elif argument.name not in _LAYOUT_ARGUMENTS:
                given.append((argument.name, str(argument.type)))
        if out and len(out) == len(schema.returns) and given == wanted and torch.Tag.generated not in overload.tags:
            return OutVariant(overload, tuple(out))
    return None


def may_overwrite(target: Callable[..., Any], position: int) -> bool:
    """Whether a result may take the exact place of the tensor argument at `position`, with the same bits.

    Only kernels known to read each element before they write it: `mm` into its own input is silently wrong.
    The caller sees to it that both have one dtype and layout and that no other argument overlaps them otherwise.
    """
    return target in _POINTWISE or (position == 0 and target in _SELF_FIRST)


def _scattered(target: Callable[..., Any], args: Sequence[Any]) -> bool:
    """Whether an `out=` variant rounds otherwise: batch normalisation does, where its input is transposed."""
    return target is _ATEN.native_batch_norm.default and not plainly_laid(args[0])


def _resizes(bound: Bound, names: tuple[str, ...]) -> bool:
    """Whether a kernel would change the size of the memory it is given, as it would for a result of another shape.

    That would write beyond the result's place. Tensors without memory tell it.
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
        except (NotImplementedError, RuntimeError):  # it cannot be told
            _RESIZING[key] = False
        else:
            _RESIZING[key] = any(_layout(kwargs[name]) != _layout(bound.kwargs[name]) for name in names)
    return _RESIZING[key]


#: What `_resizes` has found, by kernel, layouts and other arguments.
_RESIZING: dict[object, bool] = {}


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [tensor for item in value for tensor in _tensors(item)] if isinstance(value, list | tuple) else []


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    # no shape depends on a float, and some change; nor on a generator
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


def _in_turn(*calls: Bound) -> Bound:
    return Bound(_run_in_turn, calls, {})


def _run_in_turn(*calls: Bound) -> None:
    for function, args, kwargs in calls:
        function(*args, **kwargs)


def _copy(result: Tensor, source: Tensor, *_: Any, **__: Any) -> Bound:
    return Bound(result.copy_, (source,), {})


def _fill(position: int) -> Callable[..., Bound]:
    def rewrite(result: Tensor, *args: Any, **_: Any) -> Bound:
        return Bound(result.fill_, (args[position],), {})

    return rewrite


def _fill_with(value: float) -> Callable[..., Bound]:
    def rewrite(result: Tensor, *_: Any, **__: Any) -> Bound:
        return Bound(result.fill_, (value,), {})

    return rewrite


def _through(overload: Callable[..., Any], *more: Any) -> Callable[..., Bound]:
    """The `out=` overload of another operator that the op itself calls."""

    def rewrite(result: Tensor, *args: Any, **kwargs: Any) -> Bound:
        return Bound(overload, (*args, *more), {**kwargs, "out": result})

    return rewrite


def _scaled(overload: Callable[..., Any]) -> Callable[..., Bound]:
    """A sum or difference with a number, whose factor the tensor overload takes by name."""

    def rewrite(result: Tensor, source: Tensor, number: Any, alpha: Any = 1) -> Bound:
        return Bound(overload, (source, number), {"alpha": alpha, "out": result})

    return rewrite


def _copy_then(overload: Callable[..., Any]) -> Callable[..., Bound]:
    """An op defined as a copy of its first argument that is then changed in place."""

    def rewrite(result: Tensor, source: Tensor, *args: Any, **kwargs: Any) -> Bound:
        return _in_turn(Bound(result.copy_, (source,), {}), Bound(overload, (result, *args), kwargs))

    return rewrite


def _zero_then_copy(view: Callable[..., Tensor]) -> Callable[..., Bound]:
    """The gradient of a view: zero but for the viewed part."""

    def rewrite(result: Tensor, gradient: Tensor, _: Any, *where: Any) -> Bound:
        return _in_turn(Bound(result.zero_, (), {}), Bound(view(result, *where).copy_, (gradient,), {}))

    return rewrite


def _copy_then_part(view: Callable[..., Tensor]) -> Callable[..., Bound]:
    """A copy in which the viewed part comes from elsewhere."""

    def rewrite(result: Tensor, source: Tensor, part: Tensor, *where: Any, **more: Any) -> Bound:
        return _in_turn(Bound(result.copy_, (source,), {}), Bound(view(result, *where, **more).copy_, (part,), {}))

    return rewrite


def _bernoulli(result: Tensor, _: Tensor, probability: float, **generator: Any) -> Bound:
    return Bound(result.bernoulli_, (probability,), generator)


_REWRITTEN: dict[Callable[..., Any], Callable[..., Bound]] = {
    _ATEN.clone.default: _copy,
    _ATEN._to_copy.default: _copy,
    _ATEN.zeros_like.default: _fill_with(0),
    _ATEN.new_zeros.default: _fill_with(0),
    _ATEN.ones_like.default: _fill_with(1),
    _ATEN.new_ones.default: _fill_with(1),
    _ATEN.full_like.default: _fill(1),
    _ATEN.new_full.default: _fill(2),
    _ATEN.scalar_tensor.default: _fill(0),
    _ATEN.relu.default: _through(_ATEN.clamp_min.out, 0),
    _ATEN.add.Scalar: _scaled(_ATEN.add.out),
    _ATEN.sub.Scalar: _scaled(_ATEN.sub.out),
    _ATEN.mul.Scalar: _through(_ATEN.mul.out),
    _ATEN.div.Scalar: _through(_ATEN.div.out),
    _ATEN.bernoulli.p: _bernoulli,
    _ATEN.index_put.default: _copy_then(_ATEN.index_put_.default),
    _ATEN.masked_fill.Scalar: _copy_then(_ATEN.masked_fill_.Scalar),
    _ATEN.masked_fill.Tensor: _copy_then(_ATEN.masked_fill_.Tensor),
    _ATEN.slice_backward.default: _zero_then_copy(_ATEN.slice.Tensor),
    _ATEN.select_backward.default: _zero_then_copy(_ATEN.select.int),
    _ATEN.slice_scatter.default: _copy_then_part(_ATEN.slice.Tensor),
    _ATEN.select_scatter.default: _copy_then_part(_ATEN.select.int),
}

_POINTWISE: frozenset[Callable[..., Any]] = frozenset({
    _ATEN.add.Tensor, _ATEN.add.Scalar, _ATEN.sub.Tensor, _ATEN.sub.Scalar, _ATEN.mul.Tensor, _ATEN.mul.Scalar,
    _ATEN.div.Tensor, _ATEN.div.Scalar, _ATEN.neg.default, _ATEN.exp.default, _ATEN.sqrt.default,
    _ATEN.rsqrt.default, _ATEN.reciprocal.default, _ATEN.pow.Tensor_Scalar, _ATEN.addcmul.default,
    _ATEN.addcdiv.default, _ATEN.lerp.Scalar, _ATEN.lerp.Tensor, _ATEN.maximum.default, _ATEN.minimum.default,
    _ATEN.relu.default, _ATEN.threshold_backward.default, _ATEN.sigmoid.default, _ATEN.sigmoid_backward.default,
    _ATEN.tanh.default, _ATEN.tanh_backward.default, _ATEN.gelu.default, _ATEN.gelu_backward.default,
    _ATEN.silu.default, _ATEN.silu_backward.default, _ATEN.hardtanh.default, _ATEN.hardtanh_backward.default,
    _ATEN.where.self, _ATEN.clamp.default, _ATEN.clamp_min.default, _ATEN.sin.default, _ATEN.cos.default,
})  # fmt: skip

#: Copies of their first argument that are then changed in place.
_SELF_FIRST: frozenset[Callable[..., Any]] = frozenset({
    _ATEN.index_put.default, _ATEN.masked_fill.Scalar, _ATEN.masked_fill.Tensor,
    _ATEN.slice_scatter.default, _ATEN.select_scatter.default,
})  # fmt: skip
