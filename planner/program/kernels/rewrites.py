"""Calls that do exactly the same arithmetic as another, directly into the memory of its result."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from planner.torch_private import tensors

_ATEN = torch.ops.aten


class BoundCall(NamedTuple):
    """A call with all arguments bound: run it as `function(*args, **kwargs)`."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def operands(bound: BoundCall) -> list[Tensor] | None:
    """The tensors that a bound call can read or write: its arguments, and the tensor that it is a method of.

    None if these are not all, because the function holds values of its own.
    """
    function = bound.function
    if isinstance(function, partial) or getattr(function, "__closure__", None) is not None:
        return None
    owner = getattr(function, "__self__", None)
    found = [owner] if isinstance(owner, Tensor) else []
    for value in (*bound.args, *bound.kwargs.values()):
        inner = operands(value) if isinstance(value, BoundCall) else [*tensors(value)]
        if inner is None:
            return None
        found += inner
    return found


def _in_turn(*calls: BoundCall) -> BoundCall:
    return BoundCall(_run_in_turn, calls, {})


def _run_in_turn(*calls: BoundCall) -> None:
    for function, args, kwargs in calls:
        function(*args, **kwargs)


def _copy(result: Tensor, source: Tensor, *_: Any, **__: Any) -> BoundCall:
    return BoundCall(result.copy_, (source,), {})


def _fill(position: int) -> Callable[..., BoundCall]:
    def rewrite(result: Tensor, *args: Any, **_: Any) -> BoundCall:
        return BoundCall(result.fill_, (args[position],), {})

    return rewrite


def _fill_with(value: float) -> Callable[..., BoundCall]:
    def rewrite(result: Tensor, *_: Any, **__: Any) -> BoundCall:
        return BoundCall(result.fill_, (value,), {})

    return rewrite


def _through(overload: Callable[..., Any], *more: Any) -> Callable[..., BoundCall]:
    """Rewrite as the `out=` overload of another operator that the op itself calls."""

    def rewrite(result: Tensor, *args: Any, **kwargs: Any) -> BoundCall:
        return BoundCall(overload, (*args, *more), {**kwargs, "out": result})

    return rewrite


def _scaled(overload: Callable[..., Any]) -> Callable[..., BoundCall]:
    """Rewrite a sum or difference with a number, whose factor the tensor overload takes by name."""

    def rewrite(result: Tensor, source: Tensor, number: Any, alpha: Any = 1) -> BoundCall:
        return BoundCall(overload, (source, number), {"alpha": alpha, "out": result})

    return rewrite


def _copy_then(overload: Callable[..., Any]) -> Callable[..., BoundCall]:
    """Rewrite an op defined as a copy of its first argument that is then changed in place."""

    def rewrite(result: Tensor, source: Tensor, *args: Any, **kwargs: Any) -> BoundCall:
        return _in_turn(BoundCall(result.copy_, (source,), {}), BoundCall(overload, (result, *args), kwargs))

    return rewrite


def _zero_then_copy(view: Callable[..., Tensor]) -> Callable[..., BoundCall]:
    """Rewrite the gradient of a view: zero except for the viewed part."""

    def rewrite(result: Tensor, gradient: Tensor, _: Any, *where: Any) -> BoundCall:
        return _in_turn(BoundCall(result.zero_, (), {}), BoundCall(view(result, *where).copy_, (gradient,), {}))

    return rewrite


def _copy_then_part(view: Callable[..., Tensor]) -> Callable[..., BoundCall]:
    """Rewrite a copy in which the viewed part comes from another tensor."""

    def rewrite(result: Tensor, source: Tensor, part: Tensor, *where: Any, **more: Any) -> BoundCall:
        return _in_turn(
            BoundCall(result.copy_, (source,), {}), BoundCall(view(result, *where, **more).copy_, (part,), {})
        )

    return rewrite


def _bernoulli(result: Tensor, _: Tensor, probability: float, **generator: Any) -> BoundCall:
    return BoundCall(result.bernoulli_, (probability,), generator)


def _drawn(draw: Callable[..., Tensor]) -> Callable[..., BoundCall]:
    """Rewrite a new random tensor, which PyTorch also creates empty and then fills; the result determines its shape."""

    def rewrite(result: Tensor, *_: Any, generator: torch.Generator | None = None, **__: Any) -> BoundCall:
        return BoundCall(draw, (result,), {"generator": generator})

    return rewrite


def _drawn_below(position: int, least: int | None = None) -> Callable[..., BoundCall]:
    """Rewrite a draw of integers below the argument at `position` and at least `least` or the argument before it."""

    def rewrite(result: Tensor, *args: Any, generator: torch.Generator | None = None, **_: Any) -> BoundCall:
        low = args[position - 1] if least is None else least
        return BoundCall(result.random_, (low, args[position]), {"generator": generator})

    return rewrite


def _permutation(result: Tensor, size: int, *, generator: torch.Generator | None = None, **_: Any) -> BoundCall:
    return BoundCall(_ATEN.randperm.generator_out, (size,), {"generator": generator, "out": result})


def _dropout(
    result: Tensor, kept: Tensor | None, source: Tensor, p: float, train: bool | None,
    generator: torch.Generator | None = None,
) -> BoundCall:  # fmt: skip
    return BoundCall(_run_dropout, (result, kept, source, p, train, generator), {})


def _run_dropout(
    result: Tensor, kept: Tensor | None, source: Tensor, p: float, train: bool | None, generator: torch.Generator | None
) -> None:
    kept = torch.empty_like(source, dtype=torch.bool) if kept is None else kept
    if train is False:
        result.copy_(source)
        kept.fill_(True)
        return
    kept.bernoulli_(1 - p, generator=generator)
    # the mask comes first: multiplying the source by it would create a whole copy of the mask as numbers
    _ATEN.mul_.Scalar(result.copy_(kept).mul_(source), 0.0 if p == 1 else 1 / (1 - p))


#: Ops that can draw only from PyTorch's default generator; rewritten, they can be given another.
DRAWING: dict[Callable[..., Any], Callable[..., BoundCall]] = {
    _ATEN.rand.default: _drawn(Tensor.uniform_),
    _ATEN.rand_like.default: _drawn(Tensor.uniform_),
    _ATEN.randn.default: _drawn(Tensor.normal_),
    _ATEN.randn_like.default: _drawn(Tensor.normal_),
    _ATEN.randint.default: _drawn_below(0, 0),
    _ATEN.randint.low: _drawn_below(1),
    _ATEN.randint_like.default: _drawn_below(1, 0),
    _ATEN.randint_like.low_dtype: _drawn_below(2),
    _ATEN.randperm.default: _permutation,
    _ATEN.native_dropout.default: _dropout,
}

#: By operator, a function that builds the call that replaces it, from its results, each in place, and its arguments.
REWRITTEN: dict[Callable[..., Any], Callable[..., BoundCall]] = {
    **DRAWING,
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
    _ATEN._conj_physical.default: _through(_ATEN.conj_physical.out),
    _ATEN.bernoulli.p: _bernoulli,
    _ATEN.index_put.default: _copy_then(_ATEN.index_put_.default),
    _ATEN.masked_fill.Scalar: _copy_then(_ATEN.masked_fill_.Scalar),
    _ATEN.masked_fill.Tensor: _copy_then(_ATEN.masked_fill_.Tensor),
    _ATEN.slice_backward.default: _zero_then_copy(_ATEN.slice.Tensor),
    _ATEN.select_backward.default: _zero_then_copy(_ATEN.select.int),
    _ATEN.slice_scatter.default: _copy_then_part(_ATEN.slice.Tensor),
    _ATEN.select_scatter.default: _copy_then_part(_ATEN.select.int),
    # its own kernel copies the whole storage that its first argument is part of, which here is the arena
    _ATEN.diagonal_scatter.default: _copy_then_part(_ATEN.diagonal.default),
}
