"""Whether two strided tensors of one storage are split alike: checked on their elements' addresses."""

from __future__ import annotations

from math import prod

import numpy as np

from planner.graph import Tensor
from planner.partition.strategy import Split

#: Address and layout of a tensor's elements, whichever view they are seen through.
Contents = tuple[int, tuple[tuple[int, int], ...]]


def same_split(view: Tensor, split: Split, root: Tensor, below: Split) -> bool:
    """Whether each element of a view has the same index along a split as it has along a split of its root.

    Args:
        view: the tensor that is checked.
        split: of the view.
        root: a tensor that fills its memory without gaps, in any order of dimensions.
        below: a split of it.
    """
    if split.size != below.size or not is_dense(root) or view.dtype != root.dtype:
        return view == root and split == below
    step = root.strides[below.dimension] * below.inner
    period = step * below.size
    dimension = split.dimension
    places = np.arange(view.shape[dimension], dtype=np.int64)
    address = view.offset - root.offset + places * view.strides[dimension]
    if not np.array_equal(address % period // step, places // split.inner % split.size):
        return False
    carry = int((address % step).max())
    for other, (size, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        if other == dimension or size == 1:
            continue
        address = np.arange(size, dtype=np.int64) * stride % period
        if bool((address >= step).any()):
            return False  # along another dimension the index changes
        carry += int(address.max())
    return carry < step


def split_of_root(view: Tensor, split: Split, root: Tensor) -> Split | None:
    """The split of its root that a split of a view is; None if none is."""
    step = view.strides[split.dimension] * split.inner
    for dimension, (size, stride) in enumerate(zip(root.shape, root.strides, strict=True)):
        if size == 1 or stride == 0 or step % stride or step < stride:
            continue
        inner = step // stride
        if size % (inner * split.size) == 0:
            below = Split(dimension, size // (inner * split.size), split.size, inner)
            if same_split(view, split, root, below):
                return below
    return None


def is_dense(tensor: Tensor) -> bool:
    """Whether it fills its memory without gaps or overlaps."""
    reach = 1
    for stride, size in sorted(zip(tensor.strides, tensor.shape, strict=True)):
        if size != 1:
            if stride != reach:
                return False
            reach *= size
    return True


def contents(tensor: Tensor) -> Contents:
    """Which elements of its storage a tensor is, in any order of dimensions."""
    found: list[tuple[int, int]] = []
    for stride, size in sorted(zip(tensor.strides, tensor.shape, strict=True)):
        if size == 1:
            continue
        if found and found[-1][0] * found[-1][1] == stride:
            found[-1] = found[-1][0], found[-1][1] * size
        else:
            found.append((stride, size))
    return tensor.offset, tuple(found)


def elements(tensor: Tensor) -> int:
    """How many a tensor has."""
    return prod(tensor.shape)
