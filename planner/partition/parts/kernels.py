"""Which kernels compute a worker's part when they are called on its chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from planner.partition.parts.op_call import OpCall
from planner.partition.parts.windows import IMAGES, is_transposed
from planner.partition.strategy import Split, State, Strategy, Unread
from planner.partition.tdl import Operand

_ATEN = torch.ops.aten

#: Kernels that compute a chunk of their results from chunks of their arguments, whichever axis is divided.
_PLAIN = frozenset({
    _ATEN.mm.default, _ATEN.bmm.default, _ATEN.addmm.default, _ATEN.baddbmm.default, _ATEN.sum.dim_IntList,
    _ATEN.sum.default, _ATEN.prod.dim_int, _ATEN.clone.default, _ATEN.constant_pad_nd.default, _ATEN.copy_.default,
    _ATEN.alias.default, _ATEN.detach.default, _ATEN._to_copy.default, _ATEN.where.self_out, _ATEN.where.ScalarSelf,
    _ATEN.where.ScalarOther, _ATEN.masked_fill.Tensor, _ATEN.masked_fill_.Scalar, _ATEN.floor_divide.default,
    _ATEN.floor_divide.Scalar, _ATEN.rsub.Tensor, _ATEN.abs_.default, _ATEN.mv.default, _ATEN.dot.default,
    _ATEN.amax.default, _ATEN.amin.default, _ATEN.any.dim, _ATEN.any.dims, _ATEN.all.dim, _ATEN.all.dims,
    _ATEN._safe_softmax.default, _ATEN.native_layer_norm_backward.default,
    _ATEN.fill.Scalar, _ATEN.fill.Tensor, _ATEN.fill_.Scalar, _ATEN.fill_.Tensor, _ATEN.zero_.default,
    _ATEN.embedding.default, _ATEN.embedding_dense_backward.default, _ATEN.index.Tensor, _ATEN.index_put.default,
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
#: Kernels whose results every worker must have all of along the dimension that is called `dim`.
_ALONG = frozenset({
    _ATEN.stack.default, _ATEN.slice_backward.default, _ATEN.select_backward.default, _ATEN.topk.default,
    _ATEN.sort.default, _ATEN.cumsum.default, _ATEN.cumprod.default,
})  # fmt: skip
#: Kernels whose argument at this place is the shape of the result.
SIZED: Mapping[Any, int] = {_ATEN.slice_backward.default: 1, _ATEN.select_backward.default: 1}
#: Kernels whose argument at this place is the shape of the result, which is all alike.
FILLED: Mapping[Any, int] = {
    _ATEN.full.default: 0, _ATEN.zeros.default: 0, _ATEN.ones.default: 0, _ATEN.new_zeros.default: 1,
    _ATEN.new_ones.default: 1, _ATEN.new_full.default: 1,
}  # fmt: skip
#: Kernels that count.
ARANGES = frozenset({_ATEN.arange.default, _ATEN.arange.start, _ATEN.arange.start_step})
#: Tables of which a worker may have some rows, and the axis of these.
TABLES: Mapping[Any, str] = {
    _ATEN.embedding.default: "v", _ATEN.embedding_dense_backward.default: "v", _ATEN.index.Tensor: "v",
    _ATEN.index_put.default: "v", _ATEN.gather.default: "v",
}  # fmt: skip
_LOSSES = frozenset({_ATEN.nll_loss_forward.default, _ATEN.nll_loss_backward.default})
_CONVOLUTIONS = frozenset({_ATEN.convolution.default, _ATEN.convolution_backward.default})


def is_in_rows(call: OpCall, strategy: Strategy) -> bool:
    """Whether a strategy divides the rows of a table, so that a worker looks up what it has and nothing else."""
    return strategy.axis is not None and TABLES.get(call.target) == strategy.axis.name


def kernel_obstacle(call: OpCall, strategy: Strategy) -> str:
    """Why a kernel does not compute a worker's part of its results from its chunks; empty if it does.

    Args:
        call: of the op.
        strategy: how it is divided; it needs no more of any input than a chunk.
    """
    target = call.target
    if target in ARANGES or target in FILLED:
        return ""
    if strategy.stages:
        return "its workers would have to combine what they have while it runs"
    if is_in_rows(call, strategy):
        return "its rows are divided"
    if target is _ATEN.cat.default:
        return "" if _joins_chunks(call, strategy) else "the dimension that it joins is divided"
    if target in _ALONG:
        return _whole(call, call.gives(strategy))
    if target is _ATEN.gather.default:
        return ""
    if target in IMAGES:
        return _between_windows(call, strategy)
    if target in _LOSSES:
        (state,) = strategy.inputs[:1] if target is _ATEN.nll_loss_forward.default else call.gives(strategy)[:1]
        return "the classes are divided" if isinstance(state, Split) and state.dimension == 1 else ""
    if target not in _PLAIN and torch.Tag.pointwise not in target.tags:
        return f"no rule is known for {target}"
    return ""


def _joins_chunks(call: OpCall, strategy: Strategy) -> bool:
    """Whether parts that are joined are divided across that, or by the same factor, each of them in full."""
    (give,) = call.gives(strategy)
    joined = call.arguments["dim"] % len(call.description.shapes[0] or (0,))
    if not isinstance(give, Split) or give.dimension != joined:
        return True
    wants = [strategy.inputs[place] for place in joined_places(call.arguments["tensors"])]
    alike = [
        want for want in wants
        if isinstance(want, Split)
        and (want.dimension, want.size, want.inner) == (give.dimension, give.size, give.inner)
    ]  # fmt: skip
    return len(alike) == len(wants) and sum(want.outer for want in alike) == give.outer


def joined_places(tensors: Sequence[Operand]) -> list[int]:
    """The place among an op's inputs of each tensor that is joined; those without elements do not count."""
    return [tensor.place for tensor in tensors if tensor.shape != (0,)]


def _whole(call: OpCall, gives: Sequence[State]) -> str:
    for number, give in zip(call.outputs, gives, strict=True):
        shape = call.description.shapes[number]
        if isinstance(give, Split) and shape is not None and give.dimension == call.arguments["dim"] % len(shape):
            return "the dimension along which it runs is divided"
    return ""


def _between_windows(call: OpCall, strategy: Strategy) -> str:
    """Windows may be divided among workers where they do not overlap; a window itself may not."""
    axis = strategy.axis
    if axis is None or axis.name in "ncgo":
        return ""
    if axis.name[0] not in "yxhw" or is_transposed(call):
        return f"windows reach beyond chunks along {axis.name}"
    images: tuple[Any, ...] = tuple(
        strategy.inputs[operand.place] for name in ("self", "input", "grad_output", "indices")
        if isinstance(operand := call.arguments.get(name), Operand)
    )  # fmt: skip
    divided = all(not isinstance(state, Split) or state.dimension > 1 for state in images)
    known = all(isinstance(state, Split | Unread) for state in images)
    return "" if divided and known else f"windows reach beyond chunks along {axis.name}"
