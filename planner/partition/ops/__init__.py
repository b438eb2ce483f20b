"""Descriptions of ATen's operators, one file per family."""

from planner.partition.ops import layers, tensors
from planner.partition.ops.registry import Describer, describe, described, describer_of, describes, unknown

__all__ = ["Describer", "describe", "described", "describer_of", "describes", "layers", "tensors", "unknown"]
