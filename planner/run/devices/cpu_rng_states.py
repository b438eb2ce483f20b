"""RNG states: random ops draw the same numbers as in eager PyTorch, in whatever order they run.

The CPU's generator is one sequence of numbers, and each op takes the next ones. If a plan runs random ops in
captured order, they draw the right numbers by themselves. Otherwise the generator is set before each of them to the
state that eager PyTorch would have reached; how many numbers each op takes is counted once.

PyTorch's default generator is shared by the whole process. A run in a separate thread draws from its own generator, so
that neither disturbs other users of the default one.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from planner.errors import StowageError
from planner.graph import Graph
from planner.program import BoundCall
from planner.torch_private import draws_by_shape

_CHUNK = 1 << 16
_TAIL = 16


class CpuRngStates:
    """The generator's state before each random op.

    Args:
        graph: the graph.
        calls: by random op, its call; each is made once, on uninitialised memory.
        generator: the generator that they draw from.

    Raises:
        StowageError: the number of draws of an op is not predictable.
    """

    def __init__(self, graph: Graph, calls: Mapping[int, BoundCall], generator: torch.Generator) -> None:
        self._generator = generator
        self._states: dict[int, torch.Tensor] = {}
        start = self._generator.get_state()
        try:
            self._draws = {op: self._count(graph, op, calls[op]) for op in sorted(calls)}
        finally:
            self._generator.set_state(start)

    def begin(self) -> None:
        """Compute the states of this step, which starts from the generator's present state."""
        start = self._generator.get_state()
        for op, draws in self._draws.items():
            self._states[op] = self._generator.get_state()
            self._skip(draws)
        self._states[-1] = self._generator.get_state()
        self._generator.set_state(start)

    def restore(self, op: int) -> None:
        """Set the generator to its state before an op in captured order; -1 is the end of the step."""
        self._generator.set_state(self._states[op])

    def _skip(self, draws: int) -> None:
        scratch = torch.empty(min(draws, _CHUNK), dtype=torch.int32)
        for start in range(0, draws, _CHUNK):
            scratch[: min(_CHUNK, draws - start)].random_(generator=self._generator)

    def _count(self, graph: Graph, op: int, call: BoundCall) -> int:
        facts = graph.ops[op]
        if not draws_by_shape(facts.target.split(".")[1]):
            raise _unpredictable(facts.name)
        before = self._generator.get_state()
        call.function(*call.args, **call.kwargs)
        after = self._generator.get_state()
        tail = torch.empty(_TAIL, dtype=torch.int32).random_(generator=self._generator)
        self._generator.set_state(before)
        draws = self._find(tail, 8 * sum(graph.storages[s].bytes for s in graph.writes[op]) + _CHUNK)
        self._generator.set_state(before)
        self._skip(max(draws, 0))
        if draws < 0 or not torch.equal(self._generator.get_state(), after):
            raise _unpredictable(facts.name)
        return draws

    def _find(self, tail: torch.Tensor, most: int) -> int:
        """The number of draws after which the generator continues with `tail`; -1 if more than `most`."""
        window = torch.empty(0, dtype=torch.int32)
        drawn = 0
        while drawn <= most:
            more = torch.empty(_CHUNK, dtype=torch.int32).random_(generator=self._generator)
            window = torch.cat([window[-_TAIL:], more])
            drawn += _CHUNK
            for place in torch.nonzero(window[: len(window) - _TAIL + 1] == tail[0]).flatten().tolist():
                if torch.equal(window[place : place + _TAIL], tail):
                    return int(drawn - len(window) + place)
        return -1


def _unpredictable(name: str) -> StowageError:
    return StowageError(
        f"{name} draws as many random numbers as its inputs make it, so a plan cannot move it or any other random op; "
        "use a plan that keeps the first runs of the random ops in captured order"
    )
