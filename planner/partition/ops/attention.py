"""Fused attention: opaque along keys and channels, described along batch, heads and, where it is safe, queries."""

from __future__ import annotations

from planner.partition.ops.registry import describes
from planner.partition.tdl import Affine, Description, Operand, Read, Sum, Variable, index, indices, opaque

_ALL = slice(None)


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


@describes("_scaled_dot_product_flash_attention_for_cpu.default")
def attention(
    op: Description, query: Operand, key: Operand, value: Operand, is_causal: bool, attn_mask: Operand | None
) -> None:
    """Some function of a head's keys and values and of a query, or of all queries where they are counted."""
    n, i, d = indices("n i d")
    g, _, head = _heads(query, key)
    row = _ALL if is_causal else i
    scores = query[n, head, row, _ALL], key[n, g, _ALL, _ALL], *_mask(attn_mask, n, head, row)
    op.output(0)[n, head, i, d] = opaque(*scores, value[n, g, _ALL, _ALL])
    op.output(1)[n, head, i] = opaque(*scores)


@describes("_scaled_dot_product_flash_attention_for_cpu_backward.default")
def attention_backward(
    op: Description, grad_out: Operand, query: Operand, key: Operand, value: Operand, out: Operand, logsumexp: Operand,
    attn_mask: Operand | None,
) -> None:  # fmt: skip
    """Per head of queries some function of everything; heads that share keys add up their gradients."""
    n, i, k, d, e = indices("n i k d e")
    g, r, head = _heads(query, key)
    scores = (
        query[n, head, _ALL, _ALL], key[n, g, _ALL, _ALL], logsumexp[n, head, _ALL], *_mask(attn_mask, n, head, _ALL),
        grad_out[n, head, _ALL, _ALL],
    )  # fmt: skip
    of_scores = opaque(*scores, value[n, g, _ALL, _ALL], out[n, head, _ALL, _ALL])
    op.output(0)[n, head, i, d] = of_scores
    op.output(1)[n, g, k, d] = Sum(r, of_scores)
    op.output(2)[n, g, k, e] = Sum(r, opaque(*scores))
