"""Descriptions of ATen's operators, one file per family."""

from planner.partition.ops import layers, tensors
from planner.partition.ops.registry import (
    Describer,
    arguments_by_name,
    describe,
    described,
    describer_of,
    describes,
    unknown,
)

__all__ = [
    "Describer", "arguments_by_name", "describe", "described", "describer_of", "describes", "layers", "tensors",
    "unknown",
]  # fmt: skip
