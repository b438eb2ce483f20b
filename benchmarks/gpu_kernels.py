"""What kernels that only a GPU has compute, out of products and exponentials, so that it can be computed anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

import torch
from torch import Tensor
from torch._decomp import decomposition_table

_ALIGNED = 32  # rows to which memory-efficient attention fills up its logarithms


def _scores(query: Tensor, key: Tensor, bias: Tensor | None, causal: bool, scale: float | None) -> Tensor:
    shared = query.shape[1] // key.shape[1]
    scores = query @ key.repeat_interleave(shared, 1).mT * (1 / sqrt(query.shape[-1]) if scale is None else scale)
    scores = scores if bias is None else scores + bias
    return scores.masked_fill(~scores.new_ones(scores.shape[-2:]).bool().tril(), -torch.inf) if causal else scores


def _attended(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, dropout_p: float, causal: bool, scale: float | None
) -> tuple[Tensor, Tensor]:
    assert dropout_p == 0
    scores = _scores(query, key, bias, causal, scale)
    value = value.repeat_interleave(query.shape[1] // key.shape[1], 1)
    return scores.softmax(-1) @ value, scores.logsumexp(-1)


def _derived(
    grad: Tensor, query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, out: Tensor, logarithms: Tensor,
    dropout_p: float, causal: bool, scale: float | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    assert dropout_p == 0
    shared = query.shape[1] // key.shape[1]
    scale = 1 / sqrt(query.shape[-1]) if scale is None else scale
    weights = (_scores(query, key, bias, causal, scale) - logarithms[..., None]).exp()
    of_weights = grad @ value.repeat_interleave(shared, 1).mT
    of_scores = weights * (of_weights - (grad * out).sum(-1, keepdim=True))
    of_key, of_value = (
        one.unflatten(1, (key.shape[1], shared)).sum(2) for one in (of_scores.mT @ query * scale, weights.mT @ grad)
    )
    return of_scores @ key.repeat_interleave(shared, 1) * scale, of_key, of_value, of_scores


def flash(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0, is_causal: bool = False,
    _return_debug_mask: bool = False, *, scale: float | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Flash attention."""
    out, logarithms = _attended(query, key, value, None, dropout_p, is_causal, scale)
    seed = torch.zeros(2, dtype=torch.uint64), torch.zeros((), dtype=torch.uint64)
    return out, logarithms, None, None, query.shape[2], key.shape[2], *seed, query.new_empty(0)


def flash_backward(
    grad_out: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor, _cum_seq_q: None,
    _cum_seq_k: None, _max_q: int, _max_k: int, dropout_p: float, is_causal: bool, _philox_seed: Tensor,
    _philox_offset: Tensor, *, scale: float | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Its derivative."""
    return _derived(grad_out, query, key, value, None, out, logsumexp, dropout_p, is_causal, scale)[:3]


def efficient(
    query: Tensor, key: Tensor, value: Tensor, attn_bias: Tensor | None, compute_log_sumexp: bool,
    dropout_p: float = 0.0, is_causal: bool = False, *, scale: float | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Memory-efficient attention."""
    out, logarithms = _attended(query, key, value, attn_bias, dropout_p, is_causal, scale)
    filled = torch.nn.functional.pad(logarithms, (0, -query.shape[2] % _ALIGNED), value=torch.inf)
    seed = torch.zeros((), dtype=torch.int64), torch.zeros((), dtype=torch.int64)
    return out, filled if compute_log_sumexp else filled[..., :0], *seed


def efficient_backward(
    grad_out_: Tensor, query: Tensor, key: Tensor, value: Tensor, attn_bias: Tensor | None, out: Tensor,
    logsumexp: Tensor, _philox_seed: Tensor, _philox_offset: Tensor, dropout_p: float, grad_input_mask: Sequence[bool],
    is_causal: bool = False, *, scale: float | None = None,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """Its derivative."""
    logarithms = logsumexp[..., : query.shape[2]]
    made = _derived(grad_out_, query, key, value, attn_bias, out, logarithms, dropout_p, is_causal, scale)
    return tuple(one if wanted else None for one, wanted in zip(made, grad_input_mask, strict=True))


def cudnn(
    query: Tensor, key: Tensor, value: Tensor, attn_bias: Tensor | None, compute_log_sumexp: bool,
    dropout_p: float = 0.0, is_causal: bool = False, _return_debug_mask: bool = False, *, scale: float | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Attention of cuDNN."""
    out, logarithms = _attended(query, key, value, attn_bias, dropout_p, is_causal, scale)
    seed = torch.zeros((), dtype=torch.int64), torch.zeros((), dtype=torch.int64)
    made = logarithms[..., None] if compute_log_sumexp else out.new_empty(0)
    return out, made, None, None, query.shape[2], key.shape[2], *seed, None


def cudnn_backward(
    grad_out: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor, _philox_seed: Tensor,
    _philox_offset: Tensor, attn_bias: Tensor | None, _cum_seq_q: None, _cum_seq_k: None, _max_q: int, _max_k: int,
    dropout_p: float, is_causal: bool, *, scale: float | None = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Its derivative."""
    logarithms = logsumexp[..., 0]
    return _derived(grad_out, query, key, value, attn_bias, out, logarithms, dropout_p, is_causal, scale)[:3]


def rms_norm(
    source: Tensor, shape: Sequence[int], weight: Tensor | None, eps: float | None
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """A norm of the mean of squares."""
    dimensions = list(range(-len(shape), 0))
    added = torch.finfo(source.dtype).eps if eps is None else eps
    root = (source.square().mean(dimensions, keepdim=True) + added) ** -0.5
    return source * root * (1 if weight is None else weight), root


#: By operator of ATen, what computes it.
GPU_KERNELS: dict[str, Callable[..., Any]] = {
    "_scaled_dot_product_flash_attention.default": flash,
    "_scaled_dot_product_flash_attention_backward.default": flash_backward,
    "_scaled_dot_product_efficient_attention.default": efficient,
    "_scaled_dot_product_efficient_attention_backward.default": efficient_backward,
    "_scaled_dot_product_cudnn_attention.default": cudnn,
    "_scaled_dot_product_cudnn_attention_backward.default": cudnn_backward,
    "_fused_rms_norm.default": rms_norm,
    "_fused_rms_norm_backward.default": decomposition_table[torch.ops.aten._fused_rms_norm_backward.default],
}
