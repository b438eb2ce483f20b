"""Chunks of memory: where the elements of a strided tensor are once its storage holds one worker's part alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from planner.partition.strategy import Split, chunk
from planner.program import Layout


class Whole(Enum):
    """A storage that has the size it has on a single device."""

    EVERYWHERE = "the same contents on every worker"
    SUMMED = "contents that add up over the workers"


@dataclass(frozen=True, slots=True)
class Cut:
    """One factor of a dense storage's addresses is divided: an address is (high * size + index) * stride + low.

    Args:
        stride: elements from one index to the next.
        size: how many indices there are.
    """

    stride: int
    size: int

    @property
    def block(self) -> int:
        """Elements that all indices cover together."""
        return self.stride * self.size


Spread = Whole | Cut


def cut_of(layout: Layout, split: Split) -> Cut:
    """The split of a tensor as a cut of the storage that it is dense in."""
    return Cut(layout.strides[split.dimension] * split.inner, split.size)


def split_of(layout: Layout, cut: Cut) -> Split | None:
    """The cut of a storage as a split of a tensor in it; None if the tensor does not contain it as one."""
    for dimension, (size, stride) in enumerate(zip(layout.shape, layout.strides, strict=True)):
        if size < cut.size or stride < 1 or cut.stride % stride:
            continue
        inner = cut.stride // stride
        outer, rest = divmod(size, cut.size * inner)
        split = Split(dimension, outer, cut.size, inner)
        if rest == 0 and _follows(layout, cut, split):
            return split
    return None


def part(layout: Layout, cut: Cut, split: Split, indices: int) -> Layout:
    """A tensor in the storage that holds only some indices of the cut, as many as given."""
    shape = list(layout.shape)
    shape[split.dimension] = split.outer * indices * split.inner
    strides = tuple(
        stride // cut.size * indices if stride >= cut.block and stride % cut.block == 0 else stride
        for stride in layout.strides
    )
    high, low = divmod(layout.offset, cut.block)
    return layout._replace(shape=tuple(shape), strides=strides, offset=high * cut.stride * indices + low)


def counts(size: int, workers: int) -> list[int]:
    """How many indices each worker has."""
    return [last - first for first, last in (chunk(size, workers, worker) for worker in range(workers))]


def _follows(layout: Layout, cut: Cut, split: Split) -> bool:
    """Whether every other step within the tensor stays at one index or moves over whole blocks."""
    low = layout.offset % cut.block
    if low >= cut.stride:
        return False
    for dimension, (size, stride) in enumerate(zip(layout.shape, layout.strides, strict=True)):
        if dimension == split.dimension:
            low += (split.inner - 1) * stride
        elif size > 1 and stride < cut.stride:
            low += (size - 1) * stride
        elif size > 1 and stride % cut.block:
            return False
    return low < cut.stride
