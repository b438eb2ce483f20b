"""Small calls of every described operator in awkward shapes: stride, padding, dilation, groups, uneven, broadcast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from gpu_kernels import GPU_KERNELS
from torch import Tensor

from planner.partition.verify import KernelCall

#: An operator (without `aten.`) and the arguments of a call.
Arguments = tuple[str, tuple[Any, ...], dict[str, Any]]
F64 = torch.float64
#: Inputs whose values must fit the others: the places that max-pooling found, and the ends of groups.
FIXED = {"max_pool2d_with_indices_backward.default": (2,), "_grouped_mm.default": (2,)}


def calls() -> Iterator[KernelCall]:
    """All calls; they have the same values every time."""
    torch.manual_seed(0)
    for family in (
        pointwise, creation, products, convolutions, normalizations, softmaxes, losses, embeddings, pools, reductions,
        joins, attentions, gpu_attentions, dropouts, indexings,
    ):  # fmt: skip
        for target, args, kwargs in family():
            yield KernelCall(f"aten.{target}", args, kwargs, FIXED.get(target, ()), GPU_KERNELS.get(target))


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=F64)


def positive(*shape: int) -> Tensor:
    return torch.rand(*shape, dtype=F64) + 0.5


def turned(*shape: int) -> Tensor:
    """A tensor whose elements are not in order in memory."""
    return normal(*shape[::-1]).permute(*reversed(range(len(shape))))


def whole(high: int, *shape: int) -> Tensor:
    return torch.randint(0, high, shape)


def every(count: int, *shape: int) -> Tensor:
    """Whole numbers below `count` in which every one occurs, if there are enough places."""
    places = torch.empty(shape).numel()
    return torch.cat([torch.randperm(count) for _ in range(places // count + 1)])[:places].reshape(shape)


def pointwise() -> Iterator[Arguments]:
    same, alone = (normal(5, 7), turned(5, 7)), normal(5, 7)
    for name in (
        "abs", "ceil", "cos", "erf", "exp", "expm1", "floor", "log", "log1p", "neg", "reciprocal", "round", "rsqrt",
        "sigmoid", "sign", "sin", "sqrt", "tanh", "trunc", "relu", "silu", "gelu", "clone", "alias", "detach",
    ):  # fmt: skip
        yield f"{name}.default", (alone,), {}
        if name not in ("gelu", "clone", "alias", "detach"):
            yield f"{name}_.default", (positive(5, 1, 3),), {}
    yield "gelu.default", (alone,), {"approximate": "tanh"}
    for name in ("eq", "ge", "gt", "le", "lt", "ne"):
        yield f"{name}.Tensor", (every(3, 5, 7), every(3, 7)), {}
        yield f"{name}.Scalar", (every(3, 5, 7), 1), {}
    for name in ("maximum", "minimum", "atan2"):
        yield f"{name}.default", (normal(5, 1), normal(3, 1, 7)), {}
    for name in ("add", "sub"):
        yield f"{name}.Tensor", same, {"alpha": -0.5}
        yield f"{name}.Tensor", (normal(5, 1, 4), normal(3, 4)), {}
        yield f"{name}_.Tensor", (normal(5, 4), normal(4)), {"alpha": 2}
        yield f"{name}.Scalar", (alone, 2.5, 3), {}
        yield f"{name}.Tensor", (whole(9, 1, 5), whole(9, 6, 1)), {}
    yield "add.Tensor", (alone, alone), {}
    yield "rsub.Scalar", (alone, 2.5), {}
    yield "rsub.Tensor", (normal(5, 4), normal(5, 1)), {"alpha": 2}
    for name in ("mul", "div"):
        yield f"{name}.Tensor", (normal(5, 1, 4), normal(3, 4)), {}
        yield f"{name}.Tensor", (alone, torch.tensor(0.3, dtype=F64)), {}
        yield f"{name}_.Tensor", same, {}
        yield f"{name}.Scalar", (alone, 3), {}
        yield f"{name}_.Scalar", (turned(5, 7), 0.7), {}
    yield "mul.Tensor", (alone, alone), {}
    yield "floor_divide.default", (whole(20, 5, 7), 3), {}
    yield "floor_divide.Scalar", (whole(20, 5, 7), 3), {}
    yield "remainder.Scalar", (normal(5, 7), 1.5), {}
    yield "remainder.Tensor", (normal(5, 7), positive(7)), {}
    yield "pow.Tensor_Scalar", (alone, 3), {}
    yield "pow.Tensor_Scalar", (positive(5, 7), -1.5), {}
    yield "pow.Tensor_Tensor", (positive(5, 7), normal(7)), {}
    yield "lerp.Scalar", (*same, 0.3), {}
    yield "lerp_.Scalar", (*same, 0.9), {}
    yield "lerp.Tensor", (normal(5, 4), normal(4), normal(5, 1)), {}
    for name in ("addcmul", "addcdiv"):
        yield f"{name}.default", (alone, normal(5, 1), normal(7)), {"value": 0.1}
        yield f"{name}_.default", (alone, *same), {"value": -0.1}
    shared = normal(5, 7)
    yield "addcmul_.default", (alone, shared, shared), {"value": 0.1}
    yield "_to_copy.default", (alone * 5,), {"dtype": torch.int64}
    yield "_to_copy.default", (whole(2, 5, 3),), {"dtype": torch.bool}
    yield "_to_copy.default", (whole(9, 5, 3),), {"dtype": torch.float32}
    yield "copy_.default", (alone, normal(7)), {}
    yield "fill_.Tensor", (alone, torch.tensor(2.0, dtype=F64)), {}
    yield "fill_.Scalar", (alone, 2.0), {}
    yield "fill.Scalar", (alone, 2.0), {}
    yield "fill.Tensor", (alone, torch.tensor(2.0, dtype=F64)), {}
    yield "where.self", (whole(2, 5, 1).bool(), normal(5, 7), normal(7)), {}
    yield "where.self_out", (whole(2, 5, 1).bool(), normal(5, 7), normal(7)), {"out": normal(5, 7)}
    yield "where.ScalarSelf", (whole(2, 5, 7).bool(), 2.0, normal(5, 7)), {}
    yield "where.ScalarOther", (whole(2, 5, 7).bool(), normal(5, 7), 2.0), {}
    for name in ("masked_fill.Scalar", "masked_fill_.Scalar"):
        yield name, (normal(5, 7), whole(2, 5, 1).bool(), -3.0), {}
    yield "masked_fill.Tensor", (normal(5, 7), whole(2, 7).bool(), torch.tensor(2.0, dtype=F64)), {}
    yield "clamp.default", (alone, -0.5, 0.7), {}
    yield "clamp.default", (alone, None, 0.7), {}
    yield "clamp_.default", (alone, -0.5), {}
    yield "clamp_min.default", (alone, 0.1), {}
    for name in ("bitwise_and.Tensor", "bitwise_or.Tensor", "logical_and.default", "logical_or.default"):
        yield name, (whole(2, 5, 4).bool(), whole(2, 4).bool()), {}
    yield "bitwise_and.Tensor", (whole(8, 5, 4), whole(8, 4)), {}
    yield "logical_not.default", (whole(2, 5, 4).bool(),), {}
    yield "threshold_backward.default", (*same, 0.2), {}
    yield "silu_backward.default", same, {}
    yield "sigmoid_backward.default", same, {}
    yield "tanh_backward.default", same, {}
    for approximate in ("none", "tanh"):
        yield "gelu_backward.default", same, {"approximate": approximate}
    for diagonal in (0, 1):  # so that every row and column is needed: a region is a box, triangles are not followed
        yield "tril.default", (normal(2, 5, 5 + diagonal), diagonal), {}
        yield "triu.default", (normal(5 + diagonal, 5), -diagonal), {}


def creation() -> Iterator[Arguments]:
    for name in ("zeros", "ones"):
        yield f"{name}.default", ([4, 3],), {"dtype": F64}
        yield f"new_{name}.default", (normal(2), [4, 3]), {}
        yield f"{name}_like.default", (normal(4, 3),), {}
    yield "zero_.default", (normal(4, 3),), {}
    yield "full.default", ([4, 3], 2.5), {"dtype": F64}
    yield "full_like.default", (normal(4, 3), 2.5), {}
    yield "new_full.default", (normal(2), [4, 3], 2.5), {}
    yield "scalar_tensor.default", (2.5,), {"dtype": F64}
    yield "scalar_tensor.default", (float("-inf"),), {"dtype": F64}
    yield "arange.default", (7,), {}
    yield "arange.start", (2, 7), {}
    yield "arange.start_step", (2, 17, 3), {}


def products() -> Iterator[Arguments]:
    yield "mm.default", (normal(5, 7), turned(7, 6)), {}
    yield "mm.default", (normal(1, 7), normal(7, 1)), {}
    yield "addmm.default", (normal(6), normal(5, 7), normal(7, 6)), {}
    yield "addmm.default", (normal(5, 1), normal(5, 7), turned(7, 6)), {"beta": 0.5, "alpha": -2}
    yield "addmm.default", (normal(5, 6), normal(5, 1), normal(1, 6)), {}
    yield "bmm.default", (normal(3, 5, 4), turned(3, 4, 6)), {}
    yield "baddbmm.default", (normal(3, 1, 6), normal(3, 5, 4), normal(3, 4, 6)), {"beta": 2}
    yield "mv.default", (normal(5, 7), normal(7)), {}
    yield "dot.default", (normal(7), normal(7)), {}
    rows, columns = torch.randn(8, 16), torch.randn(16, 8)
    yield "_grouped_mm.default", (rows, torch.randn(3, 16, 8), torch.tensor([2, 5, 8], dtype=torch.int32)), {}
    yield "_grouped_mm.default", (columns, torch.randn(8, 24), torch.tensor([2, 5, 8], dtype=torch.int32)), {}


#: Size of the image, of the kernel, stride, padding, dilation, groups.
WINDOWS = (
    ((7, 8), (3, 3), (1, 1), (1, 1), (1, 1), 1), ((9, 7), (3, 2), (2, 2), (1, 0), (1, 1), 2),
    ((8, 8), (1, 1), (2, 2), (0, 0), (1, 1), 1), ((10, 9), (3, 3), (2, 1), (2, 2), (2, 2), 1),
    ((7, 9), (2, 3), (3, 2), (0, 1), (1, 2), 4), ((5, 1), (3, 1), (1, 1), (1, 0), (1, 1), 1),
    ((11, 6), (5, 3), (2, 2), (3, 1), (1, 1), 2), ((6, 6), (3, 3), (1, 1), (0, 0), (1, 1), 4),
)  # fmt: skip


def convolutions() -> Iterator[Arguments]:
    for image, kernel, stride, padding, dilation, groups in WINDOWS:
        x, w = normal(3, 4, *image), normal(8 if groups == 4 else 6, 4 // groups, *kernel)
        yield "convolution.default", (x, w, None, stride, padding, dilation, False, (0, 0), groups), {}
        shape = (x, w, normal(w.shape[0]), stride, padding, dilation, False, (0, 0), groups)
        yield "convolution.default", shape, {}
        y = torch.ops.aten.convolution.default(*shape)
        for mask in ((True, False, False), (False, True, False), (True, True, True)):
            yield "convolution_backward.default", (
                torch.randn_like(y), x, w, (w.shape[0],), stride, padding, dilation, False, (0, 0), groups, mask
            ), {}  # fmt: skip
    x, w = normal(3, 4, 5, 4), normal(4, 3, 3, 2)
    for stride, padding, more, groups in (((1, 1), (0, 0), (0, 0), 1), ((2, 3), (1, 0), (1, 2), 2)):
        shape = (x, w, normal(3 * groups), stride, padding, (1, 1), True, more, groups)
        yield "convolution.default", shape, {}
        y = torch.ops.aten.convolution.default(*shape)
        yield "convolution_backward.default", (
            torch.randn_like(y), x, w, (3 * groups,), stride, padding, (1, 1), True, more, groups, (True, True, True)
        ), {}  # fmt: skip
    yield "convolution.default", (normal(2, 4, 9), normal(6, 2, 3), None, (2,), (1,), (2,), False, (0,), 2), {}
    yield "convolution.default", (
        normal(2, 2, 4, 3, 5), normal(3, 2, 2, 2, 3), normal(3), (1, 1, 2), (1, 0, 1), (1, 1, 1), False, (0, 0, 0), 1
    ), {}  # fmt: skip


def normalizations() -> Iterator[Arguments]:
    for shape in ((5, 3, 4, 2), (4, 3), (3, 4, 5)):
        x, c = normal(*shape) * 2 + 1, shape[1]
        w, b, mean, variance = normal(c), normal(c), normal(c), positive(c)
        for training in (True, False):
            yield "native_batch_norm.default", (x, w, b, mean, variance, training, 0.1, 1e-5), {}
            if training:
                yield "native_batch_norm.default", (x, None, None, None, None, training, 0.1, 1e-5), {}
                yield "_native_batch_norm_legit_functional.default", (x, w, b, mean, variance, True, 0.1, 1e-5), {}
            made = torch.ops.aten.native_batch_norm(x, w, b, mean.clone(), variance.clone(), training, 0.1, 1e-5)
            saved = made[1:] if training else (None, None)
            yield "native_batch_norm_backward.default", (
                normal(*shape), x, w, mean, variance, *saved, training, 1e-5, (True, True, True)
            ), {}  # fmt: skip
        masks = ((True, False, False), (False, True, True)) if len(shape) == 4 else ()
        for mask in masks:
            made = torch.ops.aten.native_batch_norm(x, w, b, mean.clone(), variance.clone(), True, 0.1, 1e-5)
            yield "native_batch_norm_backward.default", (
                normal(*shape), x, w, mean, variance, *made[1:], True, 1e-5, mask
            ), {}  # fmt: skip
    for shape, last in (((5, 3, 7), 1), ((4, 3, 5), 2), ((6, 8), 1), ((7,), 1)):
        x, size = normal(*shape), shape[-last:]
        w, b = normal(*size), normal(*size)
        for weight, bias in ((w, b), (None, None)):
            yield "native_layer_norm.default", (x, size, weight, bias, 1e-5), {}
            _, mean, rstd = torch.ops.aten.native_layer_norm(x, size, weight, bias, 1e-5)
            mask = (True, weight is not None, bias is not None)
            yield "native_layer_norm_backward.default", (
                normal(*shape), x, size, mean, rstd, weight, bias, mask
            ), {}  # fmt: skip

    for shape, last in (((5, 3, 7), 1), ((4, 3, 5), 2), ((7,), 1)):
        x, size = normal(*shape), shape[-last:]
        for weight in (normal(*size), None):
            for eps in (0.1, None):
                yield "_fused_rms_norm.default", (x, size, weight, eps), {}
            _, rstd = torch.ops.aten._fused_rms_norm(x, size, weight, 0.1)
            for mask in ((True, weight is not None), (True, False)):
                yield "_fused_rms_norm_backward.default", (normal(*shape), x, size, rstd, weight, mask), {}
    x, weight = normal(5, 3, 7).bfloat16(), normal(7).bfloat16()
    yield "_fused_rms_norm.default", (x, (7,), weight, None), {}


def softmaxes() -> Iterator[Arguments]:
    hidden = normal(4, 6)
    hidden[1] = -torch.inf
    yield "_safe_softmax.default", (hidden, -1), {}
    for shape, dim in (((5, 7), 1), ((5, 7), 0), ((3, 4, 5), -2), ((2, 1, 3, 6), 3), ((7,), 0)):
        x = normal(*shape)
        for name in ("_softmax", "_log_softmax"):
            yield f"{name}.default", (x, dim, False), {}
            y = getattr(torch.ops.aten, name).default(x, dim, False)
            yield f"{name}_backward_data.default", (normal(*shape), y, dim, F64), {}
        yield "_safe_softmax.default", (x, dim), {}


def losses() -> Iterator[Arguments]:
    for weight in (None, positive(5)):
        for reduction in (1, 2):
            target = every(5, 12)
            target[3] = -100
            x = torch.log_softmax(normal(12, 5), 1)
            yield "nll_loss_forward.default", (x, target, weight, reduction, -100), {}
            _, total = torch.ops.aten.nll_loss_forward(x, target, weight, reduction, -100)
            grad = torch.tensor(0.7, dtype=F64)
            yield "nll_loss_backward.default", (grad, x, target, weight, reduction, -100, total), {}
    for reduction in (0, 1, 2):
        x, y = normal(5, 7), turned(5, 7)
        yield "mse_loss.default", (x, y, reduction), {}
        grad = normal(5, 7) if reduction == 0 else torch.tensor(0.7, dtype=F64)
        yield "mse_loss_backward.default", (grad, x, y, reduction), {}


def embeddings() -> Iterator[Arguments]:
    for shape in ((14,), (4, 7), (2, 3, 5)):
        rows = every(7, *shape)
        yield "embedding.default", (normal(7, 4), rows), {}
        yield "embedding.default", (normal(7, 4), rows, 2), {}
        yield "embedding_dense_backward.default", (normal(*shape, 4), rows, 7, -1, False), {}
        yield "embedding_dense_backward.default", (normal(*shape, 4), rows, 7, 2, False), {}
        yield "embedding_dense_backward.default", (normal(*shape, 4), rows, 7, -1, True), {}


#: Size of the image, of the window, stride, padding, dilation.
POOLS = (
    ((7, 8), (3, 3), (2, 2), (1, 1), (1, 1)), ((8, 7), (2, 3), (2, 1), (0, 1), (1, 1)),
    ((9, 9), (3, 2), (), (0, 0), (1, 1)), ((9, 7), (2, 2), (3, 3), (1, 1), (1, 1)),
)  # fmt: skip


def pools() -> Iterator[Arguments]:
    for image, kernel, stride, padding, dilation in (*POOLS, ((10, 9), (3, 3), (2, 1), (1, 1), (2, 2))):
        x = normal(2, 3, *image)
        for ceil in (False, True):
            y, places = torch.ops.aten.max_pool2d_with_indices(x, kernel, stride, padding, dilation, ceil)
            yield "max_pool2d_with_indices.default", (x, kernel, stride, padding, dilation, ceil), {}
            yield "max_pool2d_with_indices_backward.default", (
                torch.randn_like(y), x, kernel, stride or kernel, padding, dilation, ceil, places
            ), {}  # fmt: skip
    for image, kernel, stride, padding, _ in POOLS:
        x = normal(2, 3, *image)
        for ceil, padded, override in ((False, True, None), (True, False, None), (True, True, None), (False, True, 5)):
            settings = (kernel, stride, padding, ceil, padded, override)
            y = torch.ops.aten.avg_pool2d(x, *settings)
            yield "avg_pool2d.default", (x, *settings), {}
            yield "avg_pool2d_backward.default", (torch.randn_like(y), x, *settings), {}


def reductions() -> Iterator[Arguments]:
    x = normal(3, 5, 4)
    for dims in ([0], [-1], [0, 2], [], None):
        for keep in (False, True):
            for name in ("sum.dim_IntList", "mean.dim"):
                yield name, (x, dims, keep), {}
            for name in ("amax.default", "amin.default"):
                yield name, (x, dims or [], keep), {}
    for keep in (False, True):
        for dim in (0, -1):
            yield "prod.dim_int", (x, dim, keep), {}
            for name in ("any.dim", "all.dim"):
                yield name, (whole(2, 3, 5, 4).bool(), dim, keep), {}
        for name in ("any.dims", "all.dims"):
            yield name, (whole(2, 3, 5, 4).bool(), [0, 1], keep), {}
    yield "sum.default", (x,), {}
    yield "mean.default", (x,), {}
    yield "sum.default", (torch.tensor(2.0, dtype=F64),), {}


def joins() -> Iterator[Arguments]:
    for dim in (0, 1, -1):
        yield "cat.default", ([normal(4, 5, 3), turned(4, 5, 3), normal(4, 5, 3)], dim), {}
        yield "stack.default", ([normal(4, 5), turned(4, 5), normal(4, 5)], dim), {}
    yield "cat.default", ([normal(4, 3), normal(4, 1), normal(4, 6)], 1), {}
    yield "cat.default", ([normal(0), normal(4, 3), normal(5, 3)],), {}
    for sides, value in (([1, 2], 0.0), ([-1, 1, 2, -1], 0.0), ([0, 1], -100.0), ([1, 1, 1, 1, 1, 1], 0.5)):
        yield "constant_pad_nd.default", (normal(3, 5, 6), sides, value), {}
    for dim, start, end, step in ((1, 2, 9223372036854775807, 1), (0, 0, 2, 1), (1, 1, 8, 3), (-1, -5, -1, 2)):
        shape = [6, 9]
        grad = torch.zeros(shape, dtype=F64)[(slice(None),) * (dim % 2) + (slice(start, end, step),)]
        yield "slice_backward.default", (torch.randn_like(grad), shape, dim, start, end, step), {}
    for dim, place in ((0, 2), (1, -1), (-1, 0)):
        shape = [4, 5, 6]
        yield (
            "select_backward.default",
            (torch.randn_like(torch.zeros(shape, dtype=F64).select(dim, place)), shape, dim, place),
            {},
        )


def attentions() -> Iterator[Arguments]:
    for heads, shared, rows, columns, causal in ((4, 4, 5, 6, False), (4, 2, 6, 6, True), (3, 1, 4, 7, False)):
        q, k, v = normal(3, heads, rows, 8), normal(3, shared, columns, 8), normal(3, shared, columns, 8)
        masks = (None,) if causal else (None, normal(3, 1, rows, columns), normal(rows, columns))
        for mask in masks:
            settings = {"attn_mask": mask, "scale": 0.3}
            name = "_scaled_dot_product_flash_attention_for_cpu"
            y, lse = getattr(torch.ops.aten, name).default(q, k, v, 0.0, causal, **settings)
            yield f"{name}.default", (q, k, v, 0.0, causal), settings
            yield f"{name}_backward.default", (torch.randn_like(y), q, k, v, y, lse, 0.0, causal), settings


def gpu_attentions() -> Iterator[Arguments]:
    prefix, backward = "_scaled_dot_product", "backward.default"
    for heads, shared, rows, columns, causal in ((4, 4, 5, 6, False), (4, 2, 6, 6, True), (3, 1, 4, 7, False)):
        q, k, v = normal(3, heads, rows, 8), normal(3, shared, columns, 8), normal(3, shared, columns, 8)
        made = GPU_KERNELS[f"{prefix}_flash_attention.default"](q, k, v, 0.0, causal, scale=0.3)
        yield f"{prefix}_flash_attention.default", (q, k, v, 0.0, causal), {"scale": 0.3}
        arguments = (normal(*q.shape), q, k, v, *made[:6], 0.0, causal, *made[6:8])
        yield f"{prefix}_flash_attention_{backward}", arguments, {"scale": 0.3}
    biases = (5, 6, normal(3, 4, 5, 6), False), (3, 16, normal(3, 4, 3, 16), False)
    for rows, columns, bias, causal in ((5, 6, None, False), (6, 6, None, True), (32, 6, None, False), *biases):
        q, k, v = normal(3, 4, rows, 8), normal(3, 4, columns, 8), normal(3, 4, columns, 5)
        for name in ("efficient", "cudnn"):
            forward = f"{prefix}_{name}_attention.default"
            for kept in (True, False):
                yield forward, (q, k, v, bias, kept, 0.0, causal), {}
            made = GPU_KERNELS[forward](q, k, v, bias, True, 0.0, causal)
            grad = torch.randn_like(made[0])
            if name == "cudnn":
                arguments = (grad, q, k, v, *made[:2], *made[6:8], bias, None, None, rows, columns, 0.0, causal)
                yield f"{prefix}_cudnn_attention_{backward}", arguments, {}
                continue
            for mask in ((True, True, True, bias is not None and columns == 16), (True, False, True, False)):
                arguments = (grad, q, k, v, bias, *made, 0.0, mask, causal)
                yield f"{prefix}_efficient_attention_{backward}", arguments, {}


def dropouts() -> Iterator[Arguments]:
    yield "native_dropout_backward.default", (normal(5, 7), whole(2, 5, 7).bool(), 1.5), {}


def indexings() -> Iterator[Arguments]:
    yield "index.Tensor", (normal(7, 3), [every(7, 14) - 7]), {}
    yield "index.Tensor", (normal(7, 3), [every(7, 2, 7)]), {}
    yield "index.Tensor", (normal(7, 3), [None, whole(3, 4)]), {}
    yield "index.Tensor", (normal(7, 3), [whole(7, 4), whole(3, 4)]), {}
    yield "index_put.default", (normal(7, 3), [every(7, 14)], normal(14, 3), True), {}
    yield "index_put.default", (normal(7, 3), [torch.randperm(7)], normal(7, 3), False), {}
    yield "gather.default", (normal(4, 7), 1, every(7, 4, 7)), {}
    yield "gather.default", (normal(6, 5), 0, every(6, 5, 12).T.contiguous()), {}
    yield "gather.default", (normal(6, 5), 0, whole(6, 3, 4)), {}
    yield "topk.default", (normal(5, 6), 2, 1), {}
    yield "sort.default", (normal(5, 6), 0), {}
    yield "cumsum.default", (normal(5, 6), 1), {}
    yield "cumprod.default", (normal(5, 6, 2), -1), {}
