"""Rows of a table by number. A table that is split by rows gives partial sums: a row is on one worker only."""

from __future__ import annotations

from planner.partition.ops.registry import describes, unknown
from planner.partition.tdl import Description, Operand, Sum, apply, counted, equal, index, where


@describes("embedding.default")
def embedding(op: Description, weight: Operand, indices: Operand) -> None:
    """The row of each index: the sum over all rows, of which one counts."""
    i = counted("i", len(indices.shape))
    v, j = index("v"), index("j")
    op.output(0)[*i, j] = Sum(v, where(equal(indices[i], v), weight[v, j], 0))


@describes("embedding_dense_backward.default")
def embedding_backward(
    op: Description, grad_output: Operand, indices: Operand, padding_idx: int, scale_grad_by_freq: bool
) -> None:
    """Per row the sum of the gradients of where it was taken."""
    if scale_grad_by_freq:
        unknown(op)
        return
    i = counted("i", len(indices.shape))
    v, j = index("v"), index("j")
    taken = equal(indices[i], v) * apply("ne", v, padding_idx)
    op.output(0)[v, j] = Sum(i, where(taken, grad_output[*i, j], 0))
