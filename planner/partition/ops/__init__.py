"""Descriptions of ATen's operators, one file per family."""

from planner.partition.ops import (
    attention,
    convolution,
    creation,
    embedding,
    indexing,
    joining,
    losses,
    matrix_products,
    normalization,
    pointwise,
    pooling,
    reductions,
    softmax,
)
from planner.partition.ops.registry import Describer, describe, described, describer_of, describes, unknown

__all__ = [
    "Describer", "attention", "convolution", "creation", "describe", "described", "describer_of", "describes",
    "embedding", "indexing", "joining", "losses", "matrix_products", "normalization", "pointwise", "pooling",
    "reductions", "softmax", "unknown",
]  # fmt: skip
