"""Scratch for eviction passes in several threads: each pass borrows its scratch and returns it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from planner.swap.evict.address_space import AddressSpace, blank_address_space
from planner.swap.evict.cyclic_bytes import EvictionScratch, blank_eviction_scratch
from planner.swap.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class PassScratch:
    """Scratch of one pass, and the address space that goes with it."""

    scratch: EvictionScratch
    space: AddressSpace


@dataclass(eq=False)
class ScratchPool:
    """A pool that grows to as many scratches as were ever borrowed at once."""

    problem: Problem
    _free: list[PassScratch] = field(default_factory=list)

    @contextmanager
    def borrowed(self) -> Iterator[PassScratch]:
        """Scratch that no other thread uses in the meantime."""
        try:
            borrowed_scratch = self._free.pop()  # appending and popping are atomic
        except IndexError:
            scratch = blank_eviction_scratch(self.problem)
            borrowed_scratch = PassScratch(
                scratch, blank_address_space(self.problem.storages, len(scratch.absences.storage))
            )
        try:
            yield borrowed_scratch
        finally:
            self._free.append(borrowed_scratch)
