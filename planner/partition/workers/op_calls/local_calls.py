"""The sizes and groups that kernels are called with on a worker's chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from planner.partition.parts import FILLED, SIZED
from planner.program import Layout

_ATEN = torch.ops.aten


def local_arguments(target: Any, args: tuple[Any, ...], results: Sequence[Layout | None]) -> tuple[Any, ...]:
    """The arguments of a worker's call with the sizes and groups of its chunks.

    Args:
        target: the kernel.
        args: its arguments, whose tensors are local already.
        results: what the worker's call returns.
    """
    if target is _ATEN.convolution.default:
        return *args[:8], groups_of(args[0], args[1], results[0] if args[6] else None)
    if target is _ATEN.convolution_backward.default:
        bias = [args[0].shape[1]] if args[3] else args[3]
        groups = groups_of(args[1], args[2], args[0] if args[7] else None)
        return *args[:3], bias, *args[4:9], groups, args[10]
    place = SIZED[target] if target in SIZED else FILLED.get(target)
    if place is None:
        return args
    assert results[0] is not None
    return (*args[:place], results[0].shape, *args[place + 1 :])


def groups_of(image: Layout, weight: Layout, transposed: Layout | None) -> int:
    """The groups of a convolution of local tensors; the image that it makes is given if it is transposed."""
    channels = image.shape[1] if transposed is None else transposed.shape[1]
    return channels // weight.shape[1]
