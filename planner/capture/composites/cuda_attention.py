"""Which attention PyTorch takes on NVIDIA's GPUs, as of torch 2.13, and how it is called.

Flash attention comes first, then memory-efficient attention, then products and a softmax of their own. The card is one
of compute capability 8.0 or more; cuDNN's attention, which some newer ones prefer, keeps as many bytes as flash.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from planner import torch_private as private

_ATEN = torch.ops.aten
_HALVES = (torch.bfloat16, torch.float16)
_LARGEST_FLASH_HEAD = 256
_ALIGNED = 8  # elements, of masks and of the heads that flash attention takes
_ALIGNED_BYTES = 16  # of the heads that memory-efficient attention takes


def attention(
    go_on: private.Continuation, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """Compute `torch.nn.functional.scaled_dot_product_attention` as on a GPU."""
    if private.autocast_enabled():  # it converts the arguments first, and calls the operator again
        return go_on(query, key, value, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    whole = _of_equal_heads(query, key, value)
    fits = _dense(query, key, value) and (whole or enable_gqa) and not (is_causal and mask is not None)
    if fits and mask is None and _flash(query, key, value, is_causal):
        return _flash_attention(query, key, value, dropout_p, is_causal, scale)
    if fits and whole and _efficient(query, key, value):
        keeps = torch.is_grad_enabled() and any(one.requires_grad for one in (query, key, value))
        bias = None if mask is None else _bias(mask, query, key)
        return _ATEN._scaled_dot_product_efficient_attention.default(
            query, key, value, bias, keeps, dropout_p, is_causal, scale=scale
        )[0]
    return _ATEN._scaled_dot_product_attention_math.default(
        query, key, value, None if mask is None else _added(mask, query), dropout_p, is_causal, None, scale=scale,
        enable_gqa=enable_gqa,
    )[0]  # fmt: skip


def _dense(*tensors: Tensor) -> bool:
    """Whether the tensors have four dimensions, of which the last is next to each other, and are of one dtype."""
    dtype = tensors[0].dtype
    return all(one.dim() == 4 and one.dtype is dtype and one.numel() and one.stride(-1) == 1 for one in tensors)


def _of_equal_heads(query: Tensor, key: Tensor, value: Tensor) -> bool:
    return query.shape[:2] == key.shape[:2] == value.shape[:2]


def _flash(query: Tensor, key: Tensor, value: Tensor, is_causal: bool) -> bool:
    return (
        torch.backends.cuda.flash_sdp_enabled()  # type: ignore[no-untyped-call]
        and query.dtype in _HALVES
        and query.shape[-1] == key.shape[-1] == value.shape[-1] <= _LARGEST_FLASH_HEAD
        and not (is_causal and query.shape[-2] != key.shape[-2])
    )


def _efficient(query: Tensor, key: Tensor, value: Tensor) -> bool:
    aligned = all(one.shape[-1] * one.itemsize % _ALIGNED_BYTES == 0 for one in (query, key, value))
    return (
        torch.backends.cuda.mem_efficient_sdp_enabled()  # type: ignore[no-untyped-call]
        and query.dtype in (torch.float32, *_HALVES)
        and query.shape[-1] == key.shape[-1]
        and aligned
    )


def _flash_attention(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float, is_causal: bool, scale: float | None
) -> Any:
    """Call the kernel, with heads filled up with zeros where they are not aligned."""
    width = query.shape[-1]
    missing = -width % _ALIGNED
    if missing:
        query, key, value = (functional.pad(one, (0, missing)) for one in (query, key, value))
        scale = 1 / sqrt(width) if scale is None else scale
    kernel = _ATEN._scaled_dot_product_flash_attention.default
    result = kernel(query, key, value, dropout_p, is_causal, False, scale=scale)[0]
    return result[..., :width] if missing else result


def _added(mask: Tensor, query: Tensor) -> Tensor:
    """A mask as what is added to the scores."""
    if mask.dtype is not torch.bool:
        return mask
    none = torch.scalar_tensor(0.0, dtype=query.dtype, device=query.device)
    return torch.where(mask, none, torch.scalar_tensor(float("-inf"), dtype=query.dtype, device=query.device))


def _bias(mask: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """A mask as memory-efficient attention reads it: one for each head, in rows that are aligned."""
    bias = _added(mask, query)
    if any(stride % _ALIGNED for stride in bias.stride()[:-1]):
        width = bias.shape[-1]
        bias = functional.pad(bias, (0, _ALIGNED - width % _ALIGNED))[..., :width]
    return bias.expand(*query.shape[:3], key.shape[2])
