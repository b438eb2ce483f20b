"""Convolutions and pooling of images that are divided along rows or columns: windows reach into others' chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import torch

from planner.partition.ops.broadcast import pair
from planner.partition.tdl import Range
from planner.partition.workers.events.worker_events import WorkerEvents
from planner.partition.workers.op_calls.local_calls import groups_of
from planner.program import Layout

_ATEN = torch.ops.aten
_MAX_POOL = _ATEN.max_pool2d_with_indices.default


@dataclass(frozen=True, slots=True)
class Windowed:
    """A dimension along which an op is divided and reads more or other elements than its chunk.

    Args:
        made: the range of its output, or of what it sums over, that the worker computes.
        size: of the whole that `made` is a range of.
        needs: by place of an input, the range that each worker is brought; None if it needs nothing of the input.
    """

    made: Range
    size: int
    needs: Mapping[int, Sequence[Range | None]]


@dataclass(frozen=True, slots=True)
class Windows:
    """An op that reads other elements than its chunk's.

    Args:
        calls: of the worker.
        op: its name.
        dimensions: those along which it does.
        columns: of the whole image that windows move over.
        operands: the arguments of the op by name, with operands for tensors.
    """

    calls: WorkerEvents
    op: str
    dimensions: Mapping[int, Windowed]
    columns: int
    operands: Mapping[str, Any]

    def needed(self, dimension: int, place: int) -> Range | None:
        """The range of an input that the worker was brought; None if it needs nothing of it."""
        return self.dimensions[dimension].needs[place][self.calls.worker]

    def read(self, dimension: int, place: int) -> Range:
        """The range of an input that the worker was brought."""
        found = self.needed(dimension, place)
        assert found is not None, f"{self.op} has nothing to compute with"
        return found


@dataclass(frozen=True, slots=True)
class _Geometry:
    """Size, step, border and distance of a window's places, per dimension of an image."""

    window: Sequence[int]
    steps: Sequence[int]
    borders: Sequence[int]
    apart: Sequence[int]

    def under(self, dimension: int, windows: Range) -> Range:
        """The range of an image under a range of windows, which may reach beyond it."""
        k, (first, last) = dimension - 2, windows
        low = first * self.steps[k] - self.borders[k]
        return low, (last - 1) * self.steps[k] - self.borders[k] + (self.window[k] - 1) * self.apart[k] + 1

    def borders_within(self, at: Windows) -> list[int]:
        """The borders that are left to the kernel."""
        return [0 if 2 + k in at.dimensions else border for k, border in enumerate(self.borders)]


def convolution(at: Windows, args: tuple[Any, ...], results: Sequence[Layout | None]) -> None:
    """Every worker convolves the region under its windows."""
    x, weight, bias, stride, padding, dilation, transposed, output_padding, _ = args
    shape = _geometry(len(weight.shape) - 2, weight.shape[2:], stride, padding, dilation)
    x = _under_windows(at, x, 0, shape, 0.0)
    settings = stride, shape.borders_within(at), dilation, transposed, output_padding, groups_of(x, weight, None)
    at.calls.add(_ATEN.convolution.default, (x, weight, bias, *settings), *results)


def convolution_backward(at: Windows, args: tuple[Any, ...], results: Sequence[Layout | None]) -> None:
    """The weight's gradient sums over a worker's windows; the image's is spread from the windows that reach a chunk."""
    grad, x, weight, bias, stride, padding, dilation, transposed, output_padding, _, mask = args
    shape = _geometry(len(weight.shape) - 2, weight.shape[2:], stride, padding, dilation)
    groups = groups_of(x, weight, None)
    settings = stride, shape.borders_within(at), dilation, transposed, output_padding, groups, mask
    sizes = [grad.shape[1]] if bias else bias
    target = _ATEN.convolution_backward.default
    if mask[0] and _is_out_of_reach(at):
        _zeros(at, results[0])
    elif mask[0]:
        reached = {d: shape.under(d, at.read(d, 0)) for d in at.dimensions}
        image, spread = _spread_image(at, x, results, reached)
        at.calls.add(target, (grad, image, weight, sizes, *settings), spread, *results[1:])
        _cropped(at, spread, reached, results[0])
    else:
        x = _under_windows(at, x, 1, shape, 0.0)
        at.calls.add(target, (grad, x, weight, sizes, *settings), *results)


def max_pool(at: Windows, args: tuple[Any, ...], results: Sequence[Layout | None]) -> None:
    """Every worker pools the region under its windows, and counts places in the whole image."""
    x, window, stride, padding, dilation, ceil = _completed(args, ((), 0, 1, False))
    shape = _geometry(2, window, stride or window, padding, dilation)
    region = _under_windows(at, x, 0, shape, -inf)
    value, place = results
    assert place is not None
    here = at.calls.new(place.shape, place.dtype)
    settings = shape.window, shape.steps, shape.borders_within(at), shape.apart, ceil
    at.calls.add(_MAX_POOL, (region, *settings), value, here)
    row, column = (shape.under(d, at.dimensions[d].made)[0] if d in at.dimensions else 0 for d in (2, 3))
    _renumbered(at, here, place, (region.shape[3], at.columns), (row, column))


def max_pool_backward(at: Windows, args: tuple[Any, ...], results: Sequence[Layout | None]) -> None:
    """Gradients are put where the windows that reach a worker's chunk found their largest value."""
    if _is_out_of_reach(at):
        _zeros(at, results[0])
        return
    grad, x, window, stride, padding, dilation, ceil, place = args
    shape = _geometry(2, window, stride or window, padding, dilation)
    reached = {d: shape.under(d, at.read(d, 0)) for d in at.dimensions}
    image, spread = _spread_image(at, x, results, reached)
    here = at.calls.new(place.shape, place.dtype)
    row, column = reached.get(2, (0, 0))[0], reached.get(3, (0, 0))[0]
    _renumbered(at, place, here, (at.columns, image.shape[3]), (-row, -column))
    settings = shape.window, shape.steps, shape.borders_within(at), shape.apart, ceil
    at.calls.add(_ATEN.max_pool2d_with_indices_backward.default, (grad, image, *settings, here), spread)
    _cropped(at, spread, reached, results[0])


def avg_pool(at: Windows, args: tuple[Any, ...], results: Sequence[Layout | None]) -> None:
    """Every worker averages the region under its windows."""
    x, window, stride, padding, ceil, padded, divisor = _completed(args, ((), 0, False, True, None))
    shape = _geometry(2, window, stride or window, padding, 1)
    region = _under_windows(at, x, 0, shape, 0.0)
    settings = shape.window, shape.steps, shape.borders_within(at), ceil, padded, divisor
    at.calls.add(_ATEN.avg_pool2d.default, (region, *settings), *results)


def avg_pool_backward(at: Windows, args: tuple[Any, ...], results: Sequence[Layout | None]) -> None:
    """Gradients are spread over the windows that reach a worker's chunk."""
    if _is_out_of_reach(at):
        _zeros(at, results[0])
        return
    grad, x, window, stride, padding, ceil, padded, divisor = args
    shape = _geometry(2, window, stride or window, padding, 1)
    reached = {d: shape.under(d, at.read(d, 0)) for d in at.dimensions}
    image, spread = _spread_image(at, x, results, reached)
    settings = shape.window, shape.steps, shape.borders_within(at), ceil, padded, divisor
    at.calls.add(_ATEN.avg_pool2d_backward.default, (grad, image, *settings), spread)
    _cropped(at, spread, reached, results[0])


def missing(rank: int, ranges: Mapping[int, tuple[Range, Range]]) -> list[int]:
    """How much `constant_pad_nd` adds, or takes away, to make ranges of dimensions out of others.

    Args:
        rank: dimensions of the image, of which the first two are not padded.
        ranges: by dimension the range that there is, and that there is to be.
    """
    amounts = [0] * (2 * (rank - 2))
    for dimension, (have, want) in ranges.items():
        place = 2 * (rank - 1 - dimension)
        amounts[place : place + 2] = [have[0] - want[0], want[1] - have[1]]
    return amounts


def _completed(args: tuple[Any, ...], defaults: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with the defaults of those that are left out after the first two."""
    return (*args, *defaults[len(args) - 2 :])


def _geometry(rank: int, *settings: Any) -> _Geometry:
    """Window, step, border and distance, each a number for every dimension of an image or one for all."""
    return _Geometry(*(pair(setting, rank) for setting in settings))


def _is_out_of_reach(at: Windows) -> bool:
    """Whether no window reaches the worker's chunk."""
    return any(at.needed(dimension, 0) is None for dimension in at.dimensions)


def _zeros(at: Windows, result: Layout | None) -> None:
    assert result is not None
    at.calls.add(_ATEN.zeros.default, (result.shape,), result, dtype=result.dtype)


def _spread_image(
    at: Windows, like: Layout, results: Sequence[Layout | None], reached: Mapping[int, Range]
) -> tuple[Layout, Layout]:
    """Stand-ins of an image that reaches as far as windows do, and its gradient."""
    result = results[0]
    assert result is not None
    shape = list(result.shape)
    for dimension, (first, last) in reached.items():
        shape[dimension] = last - first
    return at.calls.empty(tuple(shape), like.dtype), at.calls.new(tuple(shape), result.dtype)


def _cropped(at: Windows, image: Layout, reached: Mapping[int, Range], result: Layout | None) -> None:
    """Keep of an image the chunk that the worker makes, with zeros where no window reaches."""
    amounts = missing(len(image.shape), {d: (have, at.dimensions[d].made) for d, have in reached.items()})
    at.calls.add(_ATEN.constant_pad_nd.default, (image, amounts, 0.0), result)


def _under_windows(at: Windows, x: Layout, place: int, shape: _Geometry, value: float) -> Layout:
    """The region under a worker's windows of an image of which it was brought what there is, a value around it."""
    wants = {dimension: shape.under(dimension, windowed.made) for dimension, windowed in at.dimensions.items()}
    size = tuple(wants[d][1] - wants[d][0] if d in wants else size for d, size in enumerate(x.shape))
    if any(at.needed(dimension, place) is None for dimension in wants):  # all windows are over the border
        border = at.calls.new(size, x.dtype)
        at.calls.add(_ATEN.full.default, (size, value), border, dtype=x.dtype)
        return border
    amounts = missing(len(x.shape), {d: (at.read(d, place), want) for d, want in wants.items()})
    if not any(amounts):
        return x
    moved = at.calls.new(size, x.dtype)
    at.calls.add(_ATEN.constant_pad_nd.default, (x, amounts, value), moved)
    return moved


def _renumbered(at: Windows, source: Layout, target: Layout, columns: tuple[int, int], offset: tuple[int, int]) -> None:
    """Places in an image, counted row by row, as places in another one that lies elsewhere.

    Args:
        at: the worker's calls.
        source, target: the places, and where they go.
        columns: of both images.
        offset: rows and columns from the first image's place to the second's.
    """
    calls = at.calls
    if columns[0] == columns[1] and not offset[1]:
        calls.add(_ATEN.add.Tensor, (source, offset[0] * columns[1]), target)
        return
    row, column, moved, start = (calls.new(source.shape, source.dtype) for _ in range(4))
    calls.add(_ATEN.div.Tensor_mode, (source, columns[0]), row, rounding_mode="floor")
    calls.add(_ATEN.remainder.Scalar, (source, columns[0]), column)
    calls.add(_ATEN.mul.Tensor, (row, columns[1]), start)
    calls.add(_ATEN.add.Tensor, (column, offset[0] * columns[1] + offset[1]), moved)
    calls.add(_ATEN.add.Tensor, (start, moved), target)
