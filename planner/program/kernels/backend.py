"""What differs between devices in how the ops of a step are captured and called: a `Backend`, one file for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from planner.graph import Graph
from planner.program.kernels.rewrites import BoundCall

Target = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Backend:
    """The kernels of a device, as far as capturing and calling them depends on it.

    Args:
        device: PyTorch's name of its type.
        fakes_on: the type of device of the fake tensors that a step is captured with; another one where it is captured
            without its own.
        missing: why no such device can be used by this process, in words; empty if one can.
        fake_call: calls an operator on fake tensors; the results have the layouts of the real kernel's.
        rewritten: by operator, a function that builds the call that replaces it, from its results, each in place, and
            its arguments; the call does exactly the same arithmetic.
        pointwise: operators whose result may reuse the exact buffer of any of their arguments, with the same bits.
        self_first: the same, but only of the first argument.
        storage_aware: operators that mistake two results in one storage, as in an arena, for the same tensor.
        rounds_apart: whether an operator's `out=` variant rounds differently on these arguments.
        keeps_gradients: whether a call with these results must be made with gradients enabled, to round as in a step.
        first_run_only: of an operator's arguments, the positions of those that a call updates beside its results, and
            that a call made again in the same step leaves out (None) without any other difference, bit for bit.
        undefined: by operator, the places of results that are memory for its backward pass, not every byte of which is
            written: two calls alike leave other bytes there.
        unwritten: by operator, the places of results that its kernel leaves as they are, and nobody reads.
        drawing: makes a call that can draw from PyTorch's default generator alone draw from another; None if none can
            be made to.
        hardware: the name of what calls are made on, as far as their costs depend on it.
        breaks_on_indices: whether an index out of range ends all use of the device by this process.
        seconds: runs calls in order, and returns the duration of each.
        slab: allocates so many bytes, shape (bytes,), uint8, for a plan to run in; calls its second argument meanwhile,
            which may raise to abandon that. Calls are measured in such memory, too: its pages decide how fast they are.
        free_bytes: how much more of the device's own memory this process may take.
        scratch_bytes: runs a call once, and returns the most bytes that it holds at once in memory it allocates itself.
        library_bytes: the most that libraries keep between calls, from the first call on, beside an arena.
        scratch_is_outside: whether memory that calls allocate themselves lies outside of a plan's arena, and counts
            beside it. Where a CPU stands in for a device, it only shows how much a plan would have to leave free.
        sources: the files that decide how calls are made: changing them changes what calls cost.
    """

    device: str
    fakes_on: str
    missing: Callable[[], str]
    fake_call: Callable[[Any, Sequence[Any], Mapping[str, Any]], Any]
    rewritten: Mapping[Target, Callable[..., BoundCall]]
    pointwise: frozenset[Target]
    self_first: frozenset[Target]
    storage_aware: frozenset[Target]
    rounds_apart: Callable[[Target, Sequence[Any]], bool]
    keeps_gradients: Callable[[Target, Sequence[Tensor | None]], bool]
    first_run_only: Callable[[Target, Sequence[Any]], tuple[int, ...]]
    undefined: Mapping[Target, frozenset[int]]
    unwritten: Mapping[Target, frozenset[int]]
    drawing: Callable[[torch.Generator, BoundCall], BoundCall] | None
    hardware: Callable[[], str]
    breaks_on_indices: bool
    seconds: Callable[[Sequence[BoundCall]], list[float]]
    slab: Callable[[int, Callable[[], object]], Tensor]
    free_bytes: Callable[[], int]
    scratch_bytes: Callable[[Callable[[], object]], int]
    library_bytes: Callable[[], int]
    scratch_is_outside: bool
    sources: tuple[Path, ...]

    @property
    def approximate(self) -> bool:
        """Whether a step is captured without its device, so that kernels there may keep other bytes."""
        return self.fakes_on != self.device

    def with_scratch(self, graph: Graph, needed: Mapping[int, int], kept: int = 0) -> Graph:
        """A graph with the scratch memory of its ops where it lies on the device.

        Args:
            graph: captured for the device.
            needed: bytes by op.
            kept: bytes that libraries keep between calls, where scratch memory lies outside of a plan's arena.
        """
        return graph.with_scratch_outside(needed, kept) if self.scratch_is_outside else graph.with_workspaces(needed)

    def may_overwrite(self, target: Target, position: int) -> bool:
        """Whether a result may reuse the exact buffer of the tensor argument at `position`, with the same bits.

        This holds only for kernels known to read each element before they write it: `mm` into its own input is silently
        wrong. The caller ensures that both have the same dtype and layout, and that no other argument overlaps them in
        any other way.
        """
        return target in self.pointwise or (position == 0 and target in self.self_first)
