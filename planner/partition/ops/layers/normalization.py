"""Batch, layer and RMS normalisation: statistics are stages, so that workers can combine them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

from planner.partition.ops.registry import describes, unknown
from planner.partition.tdl import Description, Operand, Sum, apply, counted, indices, opaque

#: What is added to a mean of squares if nothing is said of it.
_SMALLEST = {name: torch.finfo(getattr(torch, name)).eps for name in ("float32", "float64")}


@describes("native_batch_norm.default", "_native_batch_norm_legit_functional.default")
def batch_norm(
    op: Description, input: Operand, weight: Operand | None, bias: Operand | None, running_mean: Operand | None,
    running_var: Operand | None, training: bool, momentum: Any, eps: Any,
) -> None:  # fmt: skip
    """(x - mean) / sqrt(variance + eps) w + b per channel, and the statistics."""
    n, c = indices("n c")
    y = counted("y", len(input.shape) - 2)
    channels = input.shape[1]
    x = input[n, c, *y]
    if training or running_mean is None or running_var is None:
        count = prod(input.shape) // channels
        mean = op.stage("mean", (channels,))
        mean[c] = Sum((n, *y), x) / count
        variance = op.stage("variance", (channels,))
        variance[c] = Sum((n, *y), (x - mean[c]) * (x - mean[c])) / count
        op.output(1)[c] = mean[c]
        op.output(2)[c] = apply("rsqrt", variance[c] + eps)
        if running_mean is not None and running_var is not None and len(op.shapes) > 3:
            kept = apply("sub", 1, momentum)
            op.output(3)[c] = running_mean[c] * kept + mean[c] * momentum
            op.output(4)[c] = running_var[c] * kept + variance[c] * (count / max(count - 1, 1)) * momentum
        value = (x - mean[c]) * apply("rsqrt", variance[c] + eps)
    else:
        value = (x - running_mean[c]) * apply("rsqrt", running_var[c] + eps)
    value = value if weight is None else value * weight[c]
    op.output(0)[n, c, *y] = value if bias is None else value + bias[c]


@describes("native_batch_norm_backward.default")
def batch_norm_backward(
    op: Description, grad_out: Operand, input: Operand, weight: Operand | None, running_mean: Operand | None,
    running_var: Operand | None, save_mean: Operand | None, save_invstd: Operand | None, train: bool, eps: Any,
    output_mask: Sequence[bool],
) -> None:  # fmt: skip
    """The gradients with regard to x, w and b."""
    n, c = indices("n c")
    y = counted("y", len(input.shape) - 2)
    channels = (input.shape[1],)
    count = prod(input.shape) // input.shape[1]
    grad, x = grad_out[n, c, *y], input[n, c, *y]
    mean, deviation = (save_mean, save_invstd) if train else (running_mean, running_var)
    if mean is None or deviation is None:
        unknown(op)
        return
    scale = deviation[c] if train else apply("rsqrt", deviation[c] + eps)
    total = op.stage("gradient sum", channels)
    product = op.stage("gradient times deviation", channels)
    if train or output_mask[2]:
        total[c] = Sum((n, *y), grad)
    if train or output_mask[1]:
        product[c] = Sum((n, *y), grad * (x - mean[c]))
    if output_mask[0]:
        value = grad * 1
        if train:
            value = grad - total[c] / count - (x - mean[c]) * scale * scale * product[c] / count
        op.output(0)[n, c, *y] = value * scale if weight is None else value * scale * weight[c]
    if output_mask[1]:
        op.output(1)[c] = product[c] * scale
    if output_mask[2]:
        op.output(2)[c] = apply("add", total[c], 0)


@describes("native_layer_norm.default")
def layer_norm(
    op: Description, input: Operand, normalized_shape: Sequence[int], weight: Operand | None, bias: Operand | None,
    eps: Any,
) -> None:  # fmt: skip
    """(x - mean) / sqrt(variance + eps) w + b over the last dimensions, and the statistics."""
    lead = len(input.shape) - len(normalized_shape)
    i, j = counted("i", lead), counted("j", len(normalized_shape))
    count = prod(normalized_shape)
    mean = op.stage("mean", input.shape[:lead])
    mean[i] = Sum(j, input[*i, *j]) / count
    variance = op.stage("variance", input.shape[:lead])
    variance[i] = Sum(j, (input[*i, *j] - mean[i]) * (input[*i, *j] - mean[i])) / count
    value = (input[*i, *j] - mean[i]) * apply("rsqrt", variance[i] + eps)
    value = value if weight is None else value * weight[j]
    op.output(0)[*i, *j] = value if bias is None else value + bias[j]
    ones = (0,) * len(normalized_shape)
    op.output(1)[*i, *ones] = mean[i]
    op.output(2)[*i, *ones] = apply("rsqrt", variance[i] + eps)


@describes("native_layer_norm_backward.default")
def layer_norm_backward(
    op: Description, grad_out: Operand, input: Operand, normalized_shape: Sequence[int], mean: Operand,
    rstd: Operand, weight: Operand | None, output_mask: Sequence[bool],
) -> None:  # fmt: skip
    """The gradients with regard to x, w and b."""
    lead = len(input.shape) - len(normalized_shape)
    i, j = counted("i", lead), counted("j", len(normalized_shape))
    ones = (0,) * len(normalized_shape)
    count = prod(normalized_shape)
    grad = grad_out[*i, *j]
    normal = (input[*i, *j] - mean[*i, *ones]) * rstd[*i, *ones]
    if output_mask[0]:
        inner = grad if weight is None else grad * weight[j]
        total = op.stage("gradient sum", input.shape[:lead])
        total[i] = Sum(j, inner)
        product = op.stage("gradient times deviation", input.shape[:lead])
        product[i] = Sum(j, inner * normal)
        op.output(0)[*i, *j] = (inner - total[i] / count - normal * product[i] / count) * rstd[*i, *ones]
    if output_mask[1]:
        op.output(1)[j] = Sum(i, grad * normal)
    if output_mask[2]:
        op.output(2)[j] = Sum(i, grad)


@describes("_fused_rms_norm.default")
def rms_norm(
    op: Description, input: Operand, normalized_shape: Sequence[int], weight: Operand | None, eps: Any
) -> None:
    """X / sqrt(mean of squares + eps) w over the last dimensions, and the reciprocal root."""
    lead = len(input.shape) - len(normalized_shape)
    i, j = counted("i", lead), counted("j", len(normalized_shape))
    ones = (0,) * len(normalized_shape)
    if eps is None and input.dtype not in _SMALLEST:  # which one the kernel takes is its own affair
        rest = (slice(None),) * len(normalized_shape)
        op.output(0)[*i, *j] = opaque(input[*i, *rest], *([] if weight is None else [weight[rest]]))
        op.output(1)[*i, *ones] = opaque(input[*i, *rest])
        return
    square = op.stage("mean of squares", input.shape[:lead])
    square[i] = Sum(j, input[*i, *j] * input[*i, *j]) / prod(normalized_shape)
    scale = apply("rsqrt", square[i] + (_SMALLEST[input.dtype] if eps is None else eps))
    value = input[*i, *j] * scale
    op.output(0)[*i, *j] = value if weight is None else value * weight[j]
    op.output(1)[*i, *ones] = scale


@describes("_fused_rms_norm_backward.default")
def rms_norm_backward(
    op: Description, grad_out: Operand, input: Operand, normalized_shape: Sequence[int], rstd: Operand,
    weight: Operand | None, output_mask: Sequence[bool],
) -> None:  # fmt: skip
    """The gradients with regard to x and w."""
    lead = len(input.shape) - len(normalized_shape)
    i, j = counted("i", lead), counted("j", len(normalized_shape))
    ones = (0,) * len(normalized_shape)
    grad = grad_out[*i, *j]
    normal = input[*i, *j] * rstd[*i, *ones]
    if output_mask[0]:
        inner = grad if weight is None else grad * weight[j]
        product = op.stage("gradient times x", input.shape[:lead])
        product[i] = Sum(j, inner * normal)
        op.output(0)[*i, *j] = (inner - normal * product[i] / prod(normalized_shape)) * rstd[*i, *ones]
    if output_mask[1]:
        op.output(1)[j] = Sum(i, grad * normal)
