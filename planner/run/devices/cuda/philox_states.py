"""The generator of a GPU before each random op of a step, for ops that run in another order than captured.

It is a seed and an offset. Each op takes its numbers from the offset on and advances it by what the host computes
before it launches the kernel, from shapes and the number of multiprocessors, whatever the tensors hold.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from planner.graph import Graph
from planner.program import BoundCall


class PhiloxStates:
    """Offsets before each random op.

    Args:
        graph: the graph.
        calls: by random op, its call; each is made once, on uninitialised memory.
        generator: the GPU's generator that they draw from.
    """

    def __init__(self, graph: Graph, calls: Mapping[int, BoundCall], generator: torch.Generator) -> None:
        self._generator = generator
        self._advances = {op: self._advance(call) for op, call in sorted(calls.items())}
        self._offsets: dict[int, int] = {}

    def begin(self) -> None:
        """Compute the offsets of this step, which starts from the generator's present one."""
        offset = self._generator.get_offset()
        for op, advance in self._advances.items():
            self._offsets[op] = offset
            offset += advance
        self._offsets[-1] = offset

    def restore(self, op: int) -> None:
        """Set the generator to its offset before an op in captured order; -1 is the end of the step."""
        self._generator.set_offset(self._offsets[op])

    def _advance(self, call: BoundCall) -> int:
        before = self._generator.get_offset()
        call.function(*call.args, **call.kwargs)
        advance = self._generator.get_offset() - before
        self._generator.set_offset(before)
        return advance
