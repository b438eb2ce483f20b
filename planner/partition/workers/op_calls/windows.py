"""Ops that read other elements than their chunk's: windows over images, joined, padded and cut tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import torch

from planner.partition.tdl import Range
from planner.partition.workers.events.worker_events import WorkerEvents, refuse
from planner.partition.workers.op_calls.local_calls import groups_of
from planner.program import Layout

_ATEN = torch.ops.aten


@dataclass(frozen=True, slots=True)
class Windowed:
    """A dimension along which an op is divided and reads more or other elements than its chunk.

    Args:
        made: the range of its output that the worker computes.
        read: by place of an input, the range that the worker was brought; None if it needs nothing of the input.
        size: of the whole output.
        needs: by place of an input, what each worker is brought.
    """

    made: Range
    read: Mapping[int, Range | None]
    size: int
    needs: Mapping[int, Sequence[Range | None]]


def windowed_call(
    calls: WorkerEvents, op: str, target: Any, args: tuple[Any, ...], results: Sequence[Layout | None],
    dimensions: Mapping[int, Windowed],
) -> None:  # fmt: skip
    """Add the calls that compute a worker's chunk of an op's results from the regions that it reads.

    Args:
        calls: of the worker.
        op: the op's name.
        target, args: its kernel and arguments, whose tensors are the regions.
        results: where the worker is to have its chunks.
        dimensions: by dimension, what is made and read.

    Raises:
        StowageError: no rule is known for the kernel.
    """
    rule = _RULES.get(target)
    if rule is None:
        raise refuse(op, f"{target} needs more than its chunks, and no rule is known for it")
    rule(_Windows(calls, op, dimensions), args, results)


@dataclass(frozen=True, slots=True)
class _Windows:
    """The worker's calls, the op's name, and the dimensions along which it reads more than chunks."""

    calls: WorkerEvents
    op: str
    dimensions: Mapping[int, Windowed]


def _cat(at: _Windows, args: tuple[Any, ...], results: Sequence[Layout | None]) -> None:
    (windowed,) = at.dimensions.values()
    pieces = tuple(piece for place, piece in enumerate(args[0]) if windowed.read.get(place) is not None)
    at.calls.add(_ATEN.cat.default, (pieces, *args[1:]), *results)


def _pad(at: _Windows, args: tuple[Any, ...], results: Sequence[Layout | None]) -> None:
    x, amounts, *value = args
    rank, own = len(x.shape), list(amounts)
    for dimension, windowed in at.dimensions.items():
        place = 2 * (rank - 1 - dimension)
        before = amounts[place] if place < len(amounts) else 0
        read = windowed.read[0]
        if read is None:
            (result,) = results
            assert result is not None
            at.calls.add(_ATEN.full.default, (result.shape, *(value or [0])), result, dtype=result.dtype)
            return
        own[place : place + 2] = _around(read, (windowed.made[0] - before, windowed.made[1] - before))
    at.calls.add(_ATEN.constant_pad_nd.default, (x, own, *value), *results)


def _slice_backward(at: _Windows, args: tuple[Any, ...], results: Sequence[Layout | None]) -> None:
    grad, _, dim, start, _, step = args
    ((dimension, windowed),) = at.dimensions.items()
    (result,) = results
    read = windowed.read[0]
    assert result is not None
    if dimension != dim % len(result.shape):
        raise refuse(at.op, "another dimension than the one it fills is divided in parts that are no chunks")
    if read is None:
        at.calls.add(_ATEN.zeros.default, (result.shape,), result, dtype=result.dtype)
        return
    start = max(start + windowed.size, 0) if start < 0 else start
    first = start + read[0] * step - windowed.made[0]
    last = start + (read[1] - 1) * step - windowed.made[0]
    at.calls.add(_ATEN.slice_backward.default, (grad, result.shape, dim, first, last + 1, step), *results)


def _convolution(at: _Windows, args: tuple[Any, ...], results: Sequence[Layout | None]) -> None:
    x, weight, bias, stride, padding, dilation, transposed, output_padding, _ = args
    if transposed:
        raise refuse(at.op, "its image is divided, and it is transposed")
    rank = len(x.shape) - 2
    steps, borders, apart = (_each(setting, rank) for setting in (stride, padding, dilation))
    x = _region(at, x, 0.0, {2 + k: weight.shape[2 + k] for k in range(rank)}, steps, borders, apart)
    own = [0 if 2 + k in at.dimensions else borders[k] for k in range(rank)]
    settings = stride, own, dilation, transposed, output_padding, groups_of(x, weight, None)
    at.calls.add(_ATEN.convolution.default, (x, weight, bias, *settings), *results)


def _max_pool(at: _Windows, args: tuple[Any, ...], results: Sequence[Layout | None]) -> None:
    x, window, *given = args
    settings = [*given, *((), 0, 1, False)[len(given) :]]
    window, steps, borders, apart = (_each(each, 2) for each in (window, settings[0] or window, *settings[1:3]))
    if set(at.dimensions) != {2}:
        raise refuse(at.op, "columns of its images are divided, and the places that it returns count along them")
    windowed, columns = at.dimensions[2], x.shape[3]
    x = _region(at, x, -inf, {2: window[0], 3: window[1]}, steps, borders, apart)
    value, place = results
    assert place is not None
    here = at.calls.new(place.shape, place.dtype)
    target = _ATEN.max_pool2d_with_indices.default
    at.calls.add(target, (x, window, steps, [0, borders[1]], apart, settings[3]), value, here)
    offset = (windowed.made[0] * steps[0] - borders[0]) * columns
    at.calls.add(_ATEN.add.Tensor, (here, offset), place)


def _region(
    at: _Windows, x: Layout, value: float, window: Mapping[int, int], steps: Sequence[int], borders: Sequence[int],
    apart: Sequence[int],
) -> Layout:  # fmt: skip
    """The region of an image under a worker's windows, with a value where the image ends."""
    rank = len(x.shape)
    amounts = [0] * (2 * (rank - 2))
    for dimension, windowed in at.dimensions.items():
        k, (first, last) = dimension - 2, windowed.made
        read = windowed.read[0]
        low = first * steps[k] - borders[k]
        high = (last - 1) * steps[k] - borders[k] + (window[dimension] - 1) * apart[k] + 1
        place = 2 * (rank - 1 - dimension)
        assert read is not None
        amounts[place : place + 2] = _around(read, (low, high))
    if not any(amounts):
        return x
    shape = list(x.shape)
    for dimension in at.dimensions:
        shape[dimension] += sum(amounts[2 * (rank - 1 - dimension) :][:2])
    padded = at.calls.new(tuple(shape), x.dtype)
    at.calls.add(_ATEN.constant_pad_nd.default, (x, amounts, value), padded)
    return padded


def _around(have: Range, want: Range) -> list[int]:
    """How much is missing before and after."""
    return [have[0] - want[0], want[1] - have[1]]


def _each(setting: Sequence[int] | int, rank: int) -> list[int]:
    values = [setting] if isinstance(setting, int) else list(setting)
    return values * rank if len(values) == 1 else values


_RULES: Mapping[Any, Any] = {
    _ATEN.cat.default: _cat,
    _ATEN.constant_pad_nd.default: _pad,
    _ATEN.slice_backward.default: _slice_backward,
    _ATEN.convolution.default: _convolution,
    _ATEN.max_pool2d_with_indices.default: _max_pool,
}
