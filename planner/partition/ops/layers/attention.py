"""Fused attention: opaque along keys and channels, described along batch, heads and, where it is safe, queries.

With dropout, which values a kernel drops depends on where they are in the whole, so every worker computes all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.partition.ops.registry import describes, unknown
from planner.partition.tdl import (
    Affine,
    Description,
    Opaque,
    Operand,
    Read,
    Sum,
    Variable,
    counted,
    index,
    indices,
    opaque,
)

_ALL = slice(None)
_ALIGNED_COLUMNS = 16


def _heads(query: Operand, key: Operand) -> tuple[Variable, Variable, Affine]:
    """The head of keys, the query's number among those that share it, and the query's head of both."""
    shared = query.shape[1] // key.shape[1]
    g, r = index("head", key.shape[1]), index("sharer", shared)
    return g, r, g * shared + r


def _mask(mask: Operand | None, n: Affine, head: Affine, row: Affine | slice) -> list[Read]:
    if mask is None:
        return []
    places = (n, head, row, _ALL)[-len(mask.shape) :]
    return [mask[tuple(0 if size == 1 else place for size, place in zip(mask.shape, places, strict=True))]]


def _attention(
    op: Description, query: Operand, key: Operand, value: Operand, mask: Operand | None, whole_rows: bool
) -> None:
    """Some function of a head's keys and values and of a query, or of all queries, and the logarithm of its sum."""
    n, i, d = indices("n i d")
    g, _, head = _heads(query, key)
    row = _ALL if whole_rows else i
    scores = query[n, head, row, _ALL], key[n, g, _ALL, _ALL], *_mask(mask, n, head, row)
    op.output(0)[n, head, i, d] = opaque(*scores, value[n, g, _ALL, _ALL])
    if len(op.shapes) > 1 and (shape := op.shapes[1]) is not None:
        rows = i if shape[2] == query.shape[2] else index("row")
        op.output(1)[(n, head, rows, 0)[: len(shape)]] = opaque(*scores)


def _attention_backward(
    op: Description, grad_out: Operand, query: Operand, key: Operand, value: Operand, out: Operand, logsumexp: Operand,
    mask: Operand | None, wanted: Sequence[bool],
) -> None:  # fmt: skip
    """Per head of queries some function of everything; heads that share keys add up their gradients."""
    n, i, k, d, e = indices("n i k d e")
    g, r, head = _heads(query, key)
    logarithms = logsumexp[(n, head, _ALL, 0)[: len(logsumexp.shape)]]
    scores = (
        query[n, head, _ALL, _ALL], key[n, g, _ALL, _ALL], logarithms, *_mask(mask, n, head, _ALL),
        grad_out[n, head, _ALL, _ALL],
    )  # fmt: skip
    of_scores = opaque(*scores, value[n, g, _ALL, _ALL], out[n, head, _ALL, _ALL])
    if wanted[0]:
        op.output(0)[n, head, i, d] = of_scores
    if wanted[1]:
        op.output(1)[n, g, k, d] = Sum(r, of_scores)
    if wanted[2]:
        op.output(2)[n, g, k, e] = Sum(r, opaque(*scores))
    if wanted[3]:
        op.output(3)[n, head, i, k] = of_scores


def _random_state(op: Description) -> None:
    """The kernel's other results, of which the derivative reads none without dropout."""
    for number, shape in enumerate(op.shapes):
        if number > 1 and shape is not None:
            op.output(number)[counted("s", len(shape))] = Opaque()


def _fits(mask: Operand | None, query: Operand, key: Operand) -> bool:
    """Whether there is a number of a mask for every score, if there is a mask."""
    return mask is None or mask.shape == (*query.shape[:3], key.shape[2])


@describes("_scaled_dot_product_flash_attention_for_cpu.default")
def attention(
    op: Description, query: Operand, key: Operand, value: Operand, is_causal: bool, attn_mask: Operand | None
) -> None:
    """Attention on the CPU; where queries are counted, a worker needs all of them."""
    _attention(op, query, key, value, attn_mask, is_causal)


@describes("_scaled_dot_product_flash_attention_for_cpu_backward.default")
def attention_backward(
    op: Description, grad_out: Operand, query: Operand, key: Operand, value: Operand, out: Operand, logsumexp: Operand,
    attn_mask: Operand | None,
) -> None:  # fmt: skip
    """Its derivative."""
    _attention_backward(op, grad_out, query, key, value, out, logsumexp, attn_mask, (True, True, True, False))


@describes("_scaled_dot_product_flash_attention.default")
def flash_attention(
    op: Description, query: Operand, key: Operand, value: Operand, dropout_p: Any, is_causal: bool,
    return_debug_mask: bool,
) -> None:  # fmt: skip
    """Flash attention on a GPU."""
    if dropout_p != 0 or return_debug_mask:
        unknown(op)
        return
    _attention(op, query, key, value, None, is_causal)
    _random_state(op)


@describes("_scaled_dot_product_flash_attention_backward.default")
def flash_attention_backward(
    op: Description, grad_out: Operand, query: Operand, key: Operand, value: Operand, out: Operand, logsumexp: Operand,
    dropout_p: Any,
) -> None:  # fmt: skip
    """Its derivative."""
    if dropout_p != 0:
        unknown(op)
        return
    _attention_backward(op, grad_out, query, key, value, out, logsumexp, None, (True, True, True, False))


@describes("_scaled_dot_product_efficient_attention.default", "_scaled_dot_product_cudnn_attention.default")
def efficient_attention(
    op: Description, query: Operand, key: Operand, value: Operand, attn_bias: Operand | None, dropout_p: Any,
    is_causal: bool,
) -> None:  # fmt: skip
    """Memory-efficient attention on a GPU, whose logarithms are filled up to rows of its own, and that of cuDNN."""
    if dropout_p != 0 or not _fits(attn_bias, query, key):
        unknown(op)
        return
    _attention(op, query, key, value, attn_bias, is_causal or op.shapes[1] is not None)
    _random_state(op)


@describes("_scaled_dot_product_efficient_attention_backward.default")
def efficient_attention_backward(
    op: Description, grad_out_: Operand, query: Operand, key: Operand, value: Operand, attn_bias: Operand | None,
    out: Operand, logsumexp: Operand, dropout_p: Any, grad_input_mask: Sequence[bool],
) -> None:  # fmt: skip
    """The derivative of memory-efficient attention; rows of a mask's are filled up in memory, which is not divided."""
    filled_up = grad_input_mask[3] and key.shape[2] % _ALIGNED_COLUMNS != 0
    if dropout_p != 0 or filled_up or not _fits(attn_bias, query, key):
        unknown(op)
        return
    _attention_backward(op, grad_out_, query, key, value, out, logsumexp, attn_bias, grad_input_mask)


@describes("_scaled_dot_product_cudnn_attention_backward.default")
def cudnn_attention_backward(
    op: Description, grad_out: Operand, query: Operand, key: Operand, value: Operand, out: Operand, logsumexp: Operand,
    attn_bias: Operand | None, dropout_p: Any,
) -> None:  # fmt: skip
    """The derivative of cuDNN's attention."""
    if dropout_p != 0 or not _fits(attn_bias, query, key):
        unknown(op)
        return
    _attention_backward(op, grad_out, query, key, value, out, logsumexp, attn_bias, (True, True, True, False))
