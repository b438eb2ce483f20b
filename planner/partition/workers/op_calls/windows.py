"""Ops that read other elements than their chunk's: joined, padded and cut tensors, and images under windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from planner.partition.tdl import Operand
from planner.partition.workers.op_calls import images
from planner.partition.workers.op_calls.images import Windows
from planner.program import Layout

_ATEN = torch.ops.aten


def windowed_call(windows: Windows, target: Any, args: tuple[Any, ...], results: Sequence[Layout | None]) -> None:
    """Add the calls that compute a worker's chunk of an op's results from the regions that it reads.

    Args:
        windows: the op, and what is made and read.
        target, args: its kernel and arguments, whose tensors are the regions.
        results: where the worker is to have its chunks.
    """
    _RULES[target](windows, args, results)


def _cat(at: Windows, args: tuple[Any, ...], results: Sequence[Layout | None]) -> None:
    ((dimension, windowed),) = at.dimensions.items()
    operands: Sequence[Operand] = at.operands["tensors"]
    pieces: list[Layout] = []
    start = 0
    for operand, region in zip(operands, args[0], strict=True):
        if operand.shape == (0,):
            continue
        size = operand.shape[dimension]
        first, last = max(windowed.made[0] - start, 0), min(windowed.made[1] - start, size)
        start += size
        if first < last:  # a tensor that is joined twice may be brought for another of its places
            brought = at.read(dimension, operand.place)
            shape = tuple(last - first if d == dimension else each for d, each in enumerate(region.shape))
            skipped = (first - brought[0]) * region.strides[dimension]
            pieces.append(region._replace(shape=shape, offset=region.offset + skipped))
    at.calls.add(_ATEN.cat.default, (tuple(pieces), *args[1:]), *results)


def _pad(at: Windows, args: tuple[Any, ...], results: Sequence[Layout | None]) -> None:
    x, amounts, *value = args
    rank, own = len(x.shape), list(amounts)
    for dimension, windowed in at.dimensions.items():
        place = 2 * (rank - 1 - dimension)
        have, before = at.needed(dimension, 0), amounts[place]
        if have is None:
            (result,) = results
            assert result is not None
            at.calls.add(_ATEN.full.default, (result.shape, *(value or [0])), result, dtype=result.dtype)
            return
        own[place : place + 2] = have[0] + before - windowed.made[0], windowed.made[1] - before - have[1]
    at.calls.add(_ATEN.constant_pad_nd.default, (x, own, *value), *results)


def _slice_backward(at: Windows, args: tuple[Any, ...], results: Sequence[Layout | None]) -> None:
    grad, _, dim, start, _, step = args
    ((dimension, windowed),) = at.dimensions.items()
    (result,) = results
    read = at.needed(dimension, 0)
    assert result is not None
    if read is None:
        at.calls.add(_ATEN.zeros.default, (result.shape,), result, dtype=result.dtype)
        return
    start = max(start + windowed.size, 0) if start < 0 else start
    first = start + read[0] * step - windowed.made[0]
    last = start + (read[1] - 1) * step - windowed.made[0]
    at.calls.add(_ATEN.slice_backward.default, (grad, result.shape, dim, first, last + 1, step), *results)


_Rule = Callable[[Windows, tuple[Any, ...], Sequence[Layout | None]], None]

#: Kernels whose windows move over images.
_IMAGES: Mapping[Any, _Rule] = {
    _ATEN.convolution.default: images.convolution,
    _ATEN.convolution_backward.default: images.convolution_backward,
    _ATEN.max_pool2d_with_indices.default: images.max_pool,
    _ATEN.max_pool2d_with_indices_backward.default: images.max_pool_backward,
    _ATEN.avg_pool2d.default: images.avg_pool,
    _ATEN.avg_pool2d_backward.default: images.avg_pool_backward,
}
_RULES: Mapping[Any, _Rule] = {
    _ATEN.cat.default: _cat,
    _ATEN.constant_pad_nd.default: _pad,
    _ATEN.slice_backward.default: _slice_backward,
    **_IMAGES,
}
