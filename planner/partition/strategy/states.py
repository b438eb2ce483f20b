"""How a tensor is spread over workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from planner.errors import StowageError
from planner.partition.tdl import Digit, Extent, Range, Reduction, Region


@dataclass(frozen=True, slots=True)
class Unread:
    """No worker needs its contents; its shape may matter."""


@dataclass(frozen=True, slots=True)
class Replicated:
    """Every worker has all of it."""


@dataclass(frozen=True, slots=True)
class Split:
    """Every worker has a chunk along one factor of one dimension.

    Args:
        dimension: which.
        outer, size, inner: the dimension seen in the shape (outer, size, inner), of which the middle one is cut. A
            dimension that is cut into contiguous chunks has an outer and inner of 1.
        halo: a worker needs more or other elements than its chunk, contiguous ones around the same part of the
            dimension; which they are, `needs` says.
    """

    dimension: int
    outer: int
    size: int
    inner: int
    halo: bool = False


@dataclass(frozen=True, slots=True)
class Partial:
    """Every worker has a tensor of the whole shape, and all of them together, reduced, are the tensor."""

    reduction: Reduction

    @property
    def stays_partial(self) -> bool:
        """Whether it is reduced where it is needed, to what is needed of it; others are reduced in full at once."""
        return self.reduction is Reduction.SUM


State = Unread | Replicated | Split | Partial


def chunk(size: int, workers: int, worker: int) -> Range:
    """The indices of one worker's chunk, as first and last (exclusive); chunks differ in size by at most one."""
    return size * worker // workers, size * (worker + 1) // workers


def own_digit(size: int, mesh: Sequence[int], level: int) -> int:
    """The step of the digit that one level alone cuts of a factor; 0 if levels share what the factor has.

    A factor whose size all levels together divide evenly has a digit for each of them. A level then cuts the same digit
    whether or not others cut theirs, and a tensor can be spread otherwise at one level with the others as they are.
    Other factors are cut by each level in what the levels before it have left.

    Args:
        size: how many indices the factor has.
        mesh: into how many parts each level cuts, the outermost first.
        level: which level.
    """
    return 0 if size % prod(mesh) else size // prod(mesh[: level + 1])


def held(shape: tuple[int, ...], state: State, workers: int, worker: int) -> Region:
    """What one worker has of a tensor.

    Raises:
        StowageError: the split's factors do not make up the dimension.
    """
    extents: list[Extent] = [(Digit(size, 0, size),) for size in shape]
    if isinstance(state, Split):
        if state.outer * state.size * state.inner != shape[state.dimension]:
            raise StowageError(f"{state} does not fit a tensor of shape {list(shape)}")
        cut = Digit(state.size, *chunk(state.size, workers, worker))
        factors = (Digit(state.outer, 0, state.outer), cut, Digit(state.inner, 0, state.inner))
        extents[state.dimension] = tuple(digit for digit in factors if digit.size > 1 or digit is cut)
    return Region(tuple(extents))
