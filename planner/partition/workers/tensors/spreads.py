"""How workers hold a storage: level by level all of it, a summand of it, or a chunk of a digit of its addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from planner.partition.strategy import Split, chunk, own_digit
from planner.partition.tdl import Range
from planner.program import Layout


class Whole(Enum):
    """A level that does not cut the storage."""

    EVERYWHERE = "the same contents on every worker"
    SUMMED = "contents that add up over the workers"


@dataclass(frozen=True, slots=True)
class Cut:
    """A level divides one digit of a dense storage's addresses, which are (high * size + digit) * stride + low.

    Args:
        stride: elements from one value of the digit to the next.
        size: how many values it has.
    """

    stride: int
    size: int

    @property
    def block(self) -> int:
        """Elements that all values of the digit cover together."""
        return self.stride * self.size


#: Per level of the mesh, the outermost first; levels that cut the same digit cut what those before have left.
Spread = tuple[Whole | Cut, ...]


def refined(spread: Spread, mesh: Sequence[int]) -> Spread:
    """The same spread with a digit for each level that has one of its own, so that equal spreads compare equal.

    Args:
        spread: what each level cuts, in terms of whole factors.
        mesh: how many parts each level cuts into.
    """
    left: dict[Cut, Cut] = {}
    found: list[Whole | Cut] = []
    for number, level in enumerate(spread):
        if isinstance(level, Cut):
            rest, step = left.get(level, level), own_digit(level.size, mesh, number)
            if not step and rest.size % mesh[number] == 0 and rest not in found:
                step = rest.size // mesh[number]
            if step:
                found.append(Cut(level.stride * step, mesh[number]))
                left[level] = Cut(level.stride, step)
            else:
                found.append(rest)
        else:
            found.append(level)
    return tuple(found)


def chunks(spread: Spread, mesh: Sequence[int], place: Sequence[int]) -> dict[Cut, Range]:
    """By digit that is cut, the values that a worker has, as first and last (exclusive).

    Args:
        spread: how the storage is spread.
        mesh: how many parts each level cuts into.
        place: the worker's number at each level.
    """
    found: dict[Cut, Range] = {}
    for level, workers, number in zip(spread, mesh, place, strict=True):
        if isinstance(level, Cut):
            first, last = found.get(level, (0, level.size))
            start, stop = chunk(last - first, workers, number)
            found[level] = first + start, first + stop
    return found


def local_elements(elements: int, own: Mapping[Cut, Range]) -> int:
    """How many of a storage's elements a worker has.

    Args:
        elements: of the storage; or its bytes.
        own: by digit that is cut, the values that the worker has.
    """
    for cut, (first, last) in own.items():
        elements = elements // cut.size * (last - first)
    return elements


def uncut(spread: Spread) -> Spread:
    """The same spread with everything everywhere that levels cut; summands stay."""
    return tuple(Whole.EVERYWHERE if isinstance(level, Cut) else level for level in spread)


def contiguous(elements: int, own: Mapping[Cut, Range]) -> Range | None:
    """The elements that a worker has of a storage, as first and last (exclusive); None if they are no such range.

    Args:
        elements: of the storage.
        own: by digit that is cut, the values that the worker has.
    """
    first, left = 0, elements
    for cut in sorted(own, key=lambda cut: -cut.stride):
        if cut.block != left:
            return None
        start, stop = own[cut]
        first, left = first + start * cut.stride, (stop - start) * cut.stride
    return first, first + left


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


def local_part(layout: Layout, own: Mapping[Cut, Range]) -> Layout | None:
    """A tensor of the whole storage as it lies in a worker's; None if a digit that is cut is none of the tensor's.

    Args:
        layout: the tensor.
        own: by digit of the storage that is cut, the values that the worker has.
    """
    for cut in sorted(own, key=lambda cut: -cut.stride):
        split = split_of(layout, cut)
        if split is None:
            return None
        first, last = own[cut]
        layout = _part(layout, cut, split, last - first)
    return layout


def splits_of(layout: Layout, spread: Spread) -> tuple[Split | None, ...] | None:
    """Per level, the cut of a storage as a split of a tensor in it; None if the tensor does not contain one of them."""
    found = tuple(split_of(layout, level) if isinstance(level, Cut) else None for level in spread)
    missed = any(isinstance(level, Cut) and split is None for level, split in zip(spread, found, strict=True))
    return None if missed else found


@dataclass(frozen=True, slots=True)
class Overlap:
    """What a worker's chunk of a storage has of a tensor in the storage.

    Args:
        layout: that part as it lies in the worker's storage.
        ranges: by dimension of the tensor of which the part has not all, the first and last (exclusive) index.
        empty: whether the chunk has nothing of it; `layout` is then without meaning.
    """

    layout: Layout
    ranges: Mapping[int, Range]
    empty: bool


def overlap_of(layout: Layout, own: Mapping[Cut, Range]) -> Overlap | None:
    """The part of a tensor that is in a worker's chunk of its storage; None if it is no range of each dimension.

    Args:
        layout: the tensor, which may be a slice that begins in one worker's chunk and ends in another's.
        own: by digit of the storage that is cut, the values that the worker has.
    """
    ranges: dict[int, Range] = {}
    empty = False
    for cut in sorted(own, key=lambda cut: -cut.stride):
        first, last = own[cut]
        high, low = divmod(layout.offset, cut.block)
        digit, low = divmod(low, cut.stride)
        inner = low + sum(
            (size - 1) * stride
            for size, stride in zip(layout.shape, layout.strides, strict=True)
            if stride < cut.stride
        )
        moving = [
            dimension for dimension, (size, stride) in enumerate(zip(layout.shape, layout.strides, strict=True))
            if size > 1 and stride >= cut.stride and stride % cut.block
        ]  # fmt: skip
        if inner >= cut.stride or len(moving) > 1 or ranges.keys() & set(moving):
            return None
        shape = list(layout.shape)
        for dimension in moving:
            step, rest = divmod(layout.strides[dimension], cut.stride)
            if rest or digit + (shape[dimension] - 1) * step >= cut.size:
                return None
            start, stop = (min(max(-(-(end - digit) // step), 0), shape[dimension]) for end in (first, last))
            ranges[dimension] = start, stop
            shape[dimension], digit = stop - start, digit + start * step
        empty = empty or 0 in shape or not first <= digit < last
        strides = tuple(
            stride // cut.size * (last - first) if stride >= cut.block else stride for stride in layout.strides
        )
        offset = (high * (last - first) + digit - first) * cut.stride + low
        layout = layout._replace(shape=tuple(shape), strides=strides, offset=offset)
    return Overlap(layout, ranges, empty)


def _part(layout: Layout, cut: Cut, split: Split, indices: int) -> Layout:
    """A tensor in the storage that holds only some values of a digit, as many as given."""
    shape = list(layout.shape)
    shape[split.dimension] = split.outer * indices * split.inner
    strides = tuple(
        stride // cut.size * indices if stride >= cut.block and stride % cut.block == 0 else stride
        for stride in layout.strides
    )
    high, low = divmod(layout.offset, cut.block)
    return layout._replace(shape=tuple(shape), strides=strides, offset=high * cut.stride * indices + low)


def _follows(layout: Layout, cut: Cut, split: Split) -> bool:
    """Whether every other step within the tensor stays at one value of the digit or moves over whole blocks."""
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
