"""Descriptions of what layers of a network call, one file per family."""

from planner.partition.ops.layers import (
    attention,
    convolution,
    dropout,
    embedding,
    losses,
    matrix_products,
    normalization,
    pooling,
    softmax,
)

__all__ = [
    "attention", "convolution", "dropout", "embedding", "losses", "matrix_products", "normalization", "pooling",
    "softmax",
]  # fmt: skip
