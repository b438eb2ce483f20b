"""Which kernels compute a worker's part when they are called on its chunks, and with which sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from planner.partition.strategy import Split, State
from planner.partition.tdl import Range
from planner.partition.workers.events.worker_events import refuse
from planner.partition.workers.op_calls.divisions import Divided
from planner.partition.workers.tensors.spreads import Cut, contiguous
from planner.program import Layout

_ATEN = torch.ops.aten

#: Kernels that compute a chunk of their results from chunks of their arguments, whichever axis is divided.
_PLAIN = frozenset({
    _ATEN.mm.default, _ATEN.bmm.default, _ATEN.addmm.default, _ATEN.baddbmm.default, _ATEN.sum.dim_IntList,
    _ATEN.sum.default, _ATEN.clone.default, _ATEN.constant_pad_nd.default, _ATEN.copy_.default, _ATEN.where.self_out,
    _ATEN.native_layer_norm_backward.default,
    _ATEN.embedding.default, _ATEN.embedding_dense_backward.default, _ATEN.nll_loss_backward.default,
    _ATEN._log_softmax.default, _ATEN._softmax.default, _ATEN._log_softmax_backward_data.default,
    _ATEN._softmax_backward_data.default, _ATEN.native_layer_norm.default, _ATEN.threshold_backward.default,
    _ATEN.tanh_backward.default, _ATEN.sigmoid_backward.default, _ATEN.gelu_backward.default,
    _ATEN.silu_backward.default, _ATEN.ones_like.default, _ATEN.zeros_like.default, _ATEN.full_like.default,
    _ATEN._scaled_dot_product_flash_attention_for_cpu.default,
    _ATEN._scaled_dot_product_flash_attention_for_cpu_backward.default,
    _ATEN._scaled_dot_product_flash_attention.default, _ATEN._scaled_dot_product_flash_attention_backward.default,
    _ATEN._scaled_dot_product_efficient_attention.default,
    _ATEN._scaled_dot_product_efficient_attention_backward.default,
    _ATEN._scaled_dot_product_cudnn_attention.default, _ATEN._scaled_dot_product_cudnn_attention_backward.default,
    _ATEN.native_dropout_backward.default,
    _ATEN._fused_rms_norm.default, _ATEN._fused_rms_norm_backward.default,
})  # fmt: skip
#: Kernels whose dimension of this argument must be whole.
_ALONG = {_ATEN.cat.default: 1, _ATEN.stack.default: 1}
#: Kernels whose argument at this place is the shape of the result, and the dimension that must be whole after it.
_SIZED = {_ATEN.slice_backward.default: (1, 2), _ATEN.select_backward.default: (1, 2)}
#: Kernels whose argument at this place is the shape of the result, which is all alike.
_FILLED = {
    _ATEN.full.default: 0, _ATEN.zeros.default: 0, _ATEN.ones.default: 0, _ATEN.new_zeros.default: 1,
    _ATEN.new_ones.default: 1, _ATEN.new_full.default: 1,
}  # fmt: skip
_ARANGES = (_ATEN.arange.default, _ATEN.arange.start, _ATEN.arange.start_step)
#: Losses over classes, the second dimension of the argument (or result, -1) here, which must be whole.
_CLASSES = {_ATEN.nll_loss_forward.default: 0, _ATEN.nll_loss_backward.default: -1}


_IMAGE = frozenset({*"nogc", *(f"{letter}{number}" for letter in "yx" for number in range(3))})
#: Kernels that move windows over images, and the axes of their descriptions along which no window is cut, or only
#: between windows that do not overlap.
_WINDOWS: Mapping[Any, frozenset[str]] = {
    _ATEN.convolution.default: _IMAGE, _ATEN.convolution_backward.default: _IMAGE,
    _ATEN.max_pool2d_with_indices.default: frozenset("nc"), _ATEN.avg_pool2d.default: frozenset("nchw"),
    _ATEN.max_pool2d_with_indices_backward.default: frozenset("nc"), _ATEN.avg_pool2d_backward.default: frozenset("nc"),
    _ATEN._adaptive_avg_pool2d.default: frozenset("nc"), _ATEN._adaptive_avg_pool2d_backward.default: frozenset("nc"),
}  # fmt: skip


def local_range(
    name: str, target: Any, args: tuple[Any, ...], elements: int, own: Mapping[Cut, Range]
) -> tuple[Any, tuple[Any, ...]]:
    """The kernel and arguments that make a worker's chunk of a range of numbers; others stay as they are.

    Args:
        name: of the op.
        target, args: its kernel and its arguments.
        elements: how many numbers there are.
        own: by digit of their places that is cut, what the worker has.

    Raises:
        StowageError: the chunk is not contiguous.
    """
    if target not in _ARANGES or not own:
        return target, args
    start, step = (args[0] if len(args) > 1 else 0), (args[2] if len(args) > 2 else 1)
    found = contiguous(elements, own)
    if found is None or not all(isinstance(value, int) for value in (start, step)):
        raise refuse(name, "its numbers are not divided into ranges of whole numbers")
    return _ATEN.arange.start_step, (start + found[0] * step, start + found[1] * step, step)


def obstacle(target: Any, args: tuple[Any, ...], divided: Divided, results: Sequence[Layout | None]) -> str:
    """Why a kernel does not compute a worker's part of its results from chunks of its arguments; empty if it does.

    Args:
        target: the kernel.
        args: its arguments, whose tensors are local already.
        divided: how the op is divided at one level.
        results: what the worker's call returns.
    """
    strategy = divided.strategy
    if strategy is None or target in _ARANGES:
        return ""
    if strategy.stages:
        return "its workers would have to combine what they have while it runs"
    if target in _ALONG:
        joins = target is _ATEN.cat.default and _joins_factors(divided)
        return "" if joins else _whole(args[_ALONG[target]] if len(args) > 1 else 0, divided.gives[0], results[0])
    if target in _SIZED:
        return _whole(args[_SIZED[target][1]], divided.gives[0], results[0])
    if target in _FILLED:
        return ""
    if target in _WINDOWS:
        axis = strategy.axis
        return "" if axis is None or axis.name in _WINDOWS[target] else f"windows reach beyond chunks along {axis.name}"
    if target not in _PLAIN and torch.Tag.pointwise not in target.tags:
        return f"no rule is known for {target}"
    if target is _ATEN.embedding_dense_backward.default and args[4]:
        return "it scales by how often a number occurs in the whole batch"
    if target in _CLASSES:
        state = divided.gives[0] if _CLASSES[target] < 0 else divided.wants[0]
        if isinstance(state, Split) and state.dimension == 1:
            return "the classes are divided"
    return ""


def local_arguments(target: Any, args: tuple[Any, ...], results: Sequence[Layout | None]) -> tuple[Any, ...]:
    """The arguments of a worker's call with the sizes and groups of its chunks.

    Args:
        target, args, results: as in `obstacle`.
    """
    if target is _ATEN.convolution.default:
        return *args[:8], groups_of(args[0], args[1], results[0] if args[6] else None)
    if target is _ATEN.convolution_backward.default:
        bias = [args[0].shape[1]] if args[3] else args[3]
        groups = groups_of(args[1], args[2], args[0] if args[7] else None)
        return *args[:3], bias, *args[4:9], groups, args[10]
    place = _SIZED[target][0] if target in _SIZED else _FILLED.get(target)
    if place is None:
        return args
    assert results[0] is not None
    return (*args[:place], results[0].shape, *args[place + 1 :])


def groups_of(image: Layout, weight: Layout, transposed: Layout | None) -> int:
    """The groups of a convolution of local tensors; the image that it makes is given if it is transposed."""
    channels = image.shape[1] if transposed is None else transposed.shape[1]
    return channels // weight.shape[1]


def _joins_factors(divided: Divided) -> bool:
    """Whether parts that are joined are divided by the same factor, each of them in full."""
    give = divided.gives[0]
    if not isinstance(give, Split):
        return False
    alike = [
        want for want in divided.wants
        if isinstance(want, Split)
        and (want.dimension, want.size, want.inner) == (give.dimension, give.size, give.inner)
    ]  # fmt: skip
    return len(alike) == len(divided.wants) and sum(want.outer for want in alike) == give.outer


def _whole(dimension: int, state: State, result: Layout | None) -> str:
    assert result is not None
    if isinstance(state, Split) and state.dimension == dimension % len(result.shape):
        return "the dimension that it joins or fills is divided"
    return ""
