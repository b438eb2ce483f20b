"""Proof by execution: descriptions and strategies against the real kernels."""

from planner.partition.verify.kernel_call import KernelCall
from planner.partition.verify.proof import prove
from planner.partition.verify.trial import Fault, Proof

__all__ = ["Fault", "KernelCall", "Proof", "prove"]
