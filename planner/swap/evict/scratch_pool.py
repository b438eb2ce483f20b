"""Scratch for walks in several threads: whoever walks borrows a desk, and brings it back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from planner.swap.evict.address_space import Ground, blank_ground
from planner.swap.evict.cyclic_bytes import Scratch, blank_scratch
from planner.swap.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class Place:
    """A desk and the ground beside it."""

    scratch: Scratch
    ground: Ground


@dataclass(eq=False)
class Places:
    """As many desks as were ever borrowed at a time."""

    problem: Problem
    _free: list[Place] = field(default_factory=list)

    @contextmanager
    def borrowed(self) -> Iterator[Place]:
        """A desk that nobody else uses meanwhile."""
        try:
            place = self._free.pop()  # appending and popping are atomic
        except IndexError:
            scratch = blank_scratch(self.problem)
            place = Place(scratch, blank_ground(self.problem.storages, len(scratch.gaps.storage)))
        try:
            yield place
        finally:
            self._free.append(place)
