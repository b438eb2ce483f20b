"""RNG states of accelerators, whose generators count: each random op takes the next numbers of a counter's sequence.

How far an op moves the counter is known to the host, depends on its shapes alone, and is found by making it once.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from planner.graph import Graph
from planner.program import BoundCall


class PhiloxOffsets:
    """The generator's offset before each random op.

    Args:
        graph: the graph.
        calls: by random op, its call; each is made once, on uninitialised memory.
        generator: the generator that they draw from.
    """

    def __init__(self, graph: Graph, calls: Mapping[int, BoundCall], generator: torch.Generator) -> None:
        self._generator = generator
        self._offsets: dict[int, int] = {}
        start = generator.get_offset()
        try:
            self._advances = {op: self._count(calls[op]) for op in sorted(calls)}
        finally:
            generator.set_offset(start)

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

    def _count(self, call: BoundCall) -> int:
        before = self._generator.get_offset()
        call.function(*call.args, **call.kwargs)
        return self._generator.get_offset() - before
