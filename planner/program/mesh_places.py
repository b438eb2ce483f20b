"""The workers of a mesh, and which of them communicate with each other at some of its levels."""

from __future__ import annotations

from functools import lru_cache
from itertools import product


@lru_cache(maxsize=64)
def places(mesh: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Every worker's number at each level, in the order of the workers."""
    return tuple(product(*(range(workers) for workers in mesh)))


@lru_cache(maxsize=4096)
def members(mesh: tuple[int, ...], place: tuple[int, ...], levels: tuple[int, ...]) -> tuple[int, ...]:
    """The workers that are at a place but for some levels, in order."""
    return tuple(
        worker for worker, other in enumerate(places(mesh))
        if all(level in levels or mine == theirs for level, (mine, theirs) in enumerate(zip(place, other, strict=True)))
    )  # fmt: skip
