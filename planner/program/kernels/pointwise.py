"""Which results may be in the memory of an argument, with the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from planner.program.kernels.collectives import ALL_REDUCE

_ATEN = torch.ops.aten

#: Operators that read each element before they write it, whose result may be in the place of any argument.
POINTWISE: frozenset[Callable[..., Any]] = frozenset({
    _ATEN.add.Tensor, _ATEN.add.Scalar, _ATEN.sub.Tensor, _ATEN.sub.Scalar, _ATEN.mul.Tensor, _ATEN.mul.Scalar,
    _ATEN.div.Tensor, _ATEN.div.Scalar, _ATEN.neg.default, _ATEN.exp.default, _ATEN.sqrt.default,
    _ATEN.rsqrt.default, _ATEN.reciprocal.default, _ATEN.pow.Tensor_Scalar, _ATEN.addcmul.default,
    _ATEN.addcdiv.default, _ATEN.lerp.Scalar, _ATEN.lerp.Tensor, _ATEN.maximum.default, _ATEN.minimum.default,
    _ATEN.relu.default, _ATEN.threshold_backward.default, _ATEN.sigmoid.default, _ATEN.sigmoid_backward.default,
    _ATEN.tanh.default, _ATEN.tanh_backward.default, _ATEN.gelu.default, _ATEN.gelu_backward.default,
    _ATEN.silu.default, _ATEN.silu_backward.default, _ATEN.hardtanh.default, _ATEN.hardtanh_backward.default,
    _ATEN.where.self, _ATEN.clamp.default, _ATEN.clamp_min.default, _ATEN.sin.default, _ATEN.cos.default,
})  # fmt: skip

#: Calls that copy their first argument and then change the copy in place.
SELF_FIRST: frozenset[Callable[..., Any]] = frozenset({
    _ATEN.index_put.default, _ATEN.masked_fill.Scalar, _ATEN.masked_fill.Tensor,
    _ATEN.slice_scatter.default, _ATEN.select_scatter.default, ALL_REDUCE,
})  # fmt: skip
