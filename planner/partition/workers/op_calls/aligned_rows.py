"""Masks of attention as a GPU's kernels read them: rows that begin at multiples of some elements of memory."""

from __future__ import annotations

from typing import Any

import torch

from planner.partition.workers.events.worker_events import WorkerEvents
from planner.program import Layout

_ATEN = torch.ops.aten
_ALIGNED = 8
#: Kernels that read such a mask, and its place among their arguments.
_MASKS = {
    _ATEN._scaled_dot_product_efficient_attention.default: 3,
    _ATEN._scaled_dot_product_efficient_attention_backward.default: 4,
    _ATEN._scaled_dot_product_cudnn_attention.default: 3,
    _ATEN._scaled_dot_product_cudnn_attention_backward.default: 8,
}


def with_aligned_rows(calls: WorkerEvents, target: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call, with a copy of its mask if the kernel could not read its rows.

    Args:
        calls: of the worker.
        target, args: the kernel and its arguments.
    """
    if target not in _MASKS:
        return args
    place = _MASKS[target]
    mask = args[place]
    if not isinstance(mask, Layout) or (
        mask.strides[-1] == 1 and not any(stride % _ALIGNED for stride in mask.strides[:-1])
    ):
        return args
    once = tuple(
        size if stride or number == len(mask.shape) - 1 else 1
        for number, (size, stride) in enumerate(zip(mask.shape, mask.strides, strict=True))
    )
    rows = calls.empty((*once[:-1], once[-1] + -once[-1] % _ALIGNED), mask.dtype)._replace(shape=once)
    calls.copy(mask._replace(shape=once), rows)
    strides = tuple(
        stride if size == whole else 0 for stride, size, whole in zip(rows.strides, once, mask.shape, strict=True)
    )
    return *args[:place], rows._replace(shape=mask.shape, strides=strides), *args[place + 1 :]
