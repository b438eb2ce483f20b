"""Descriptions of what is done with tensors anywhere, one file per family."""

from planner.partition.ops.tensors import creation, indexing, joining, pointwise, reductions

__all__ = ["creation", "indexing", "joining", "pointwise", "reductions"]
