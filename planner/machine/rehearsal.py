"""A stretch of a step run on made-up values, in memory of its own, every call timed.

The ops run in their order, so that a call finds the caches, and the processor's memory of past branches, as it does
in a step. Repeated on its own it would be up to twice as fast; among strangers, slower.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch

from planner.capture.kernels import bind
from planner.capture.program import Program, ScalarRef, TensorRef
from planner.capture.rewrites import Bound
from planner.graph import Graph
from planner.machine.families import operator
from planner.machine.signatures import ALIGNMENT
from planner.machine.stretches import Stretch
from planner.machine.temporary import SIZED_BY_VALUES, temporary_bytes
from planner.machine.values import OTHERS, Filling, clear_integers, fill, filled, view

_LEAST_ROUNDS, _MOST_ROUNDS = 7, 40
_SECONDS = 1.5


class Rehearsal:
    """A stretch with memory, ready to run.

    Args:
        stretch, graph, program: what to rehearse.
        numbers: the values behind `ScalarRef` names.

    Attributes:
        refused: places in the stretch of calls that no made-up values suit; they are left out, and what reads their
            results reads what lies there.
    """

    def __init__(self, stretch: Stretch, graph: Graph, program: Program, numbers: Mapping[str, float]) -> None:
        self._slab = torch.empty(max(stretch.bytes, ALIGNMENT), dtype=torch.uint8)
        self._stretch, self._graph, self._numbers = stretch, graph, numbers
        self._program = program
        self._generator = torch.Generator()  # whoever measures in a thread does not move PyTorch's default one
        self._calls = [self._bind(op) for op in stretch.ops]
        self.refused: set[int] = set()
        fill(self._slab, stretch, graph, program, self._generator)
        try:
            self._round()
        except (IndexError, RuntimeError):
            # an index that is computed in the step went too far
            clear_integers(self._slab, stretch, graph)
            self._leave_out()

    def temporary_bytes(self, wanted: Sequence[bool]) -> list[int]:
        """Run once; the temporary memory of each call, 0 where it is not wanted.

        Args:
            wanted: per op of the stretch.
        """
        taken = []
        for place, ask in enumerate(wanted):
            taken.append(self._tried(place, _temporary_bytes if ask else _run))
            op = self._graph.ops[self._stretch.ops[place]]
            demanding = SIZED_BY_VALUES.get(operator(op)) if ask else None
            if demanding is not None:
                # values of all kinds at once may take copies of the kinds besides
                copies = sum(self._graph.storages[storage].bytes for storage in self._graph.reads[op.id])
                taken[-1] = max([taken[-1], *(self._tried_with(place, values) for values in demanding)]) + copies
        return taken

    def seconds(self, progress: Callable[[float], object]) -> list[float]:
        """Run again and again; what each call typically takes.

        Args:
            progress: told the share that is done.
        """
        rounds: list[list[float]] = []
        start = time.perf_counter()
        while len(rounds) < _LEAST_ROUNDS or (time.perf_counter() - start < _SECONDS and len(rounds) < _MOST_ROUNDS):
            progress(min(len(rounds) / _LEAST_ROUNDS, 1.0))
            try:
                rounds.append(self._round())
            except (IndexError, RuntimeError):  # values move on from round to round
                self._leave_out()
                rounds.clear()
        # What other programs take comes in bursts, of which the slower half of the rounds had more than a usual step.
        # The mean, because it adds up: a step of a thousand ops meets a thousand times what one op meets at times.
        quiet = sorted(rounds, key=sum)[: -(-len(rounds) // 2)]
        return [statistics.fmean(each) for each in zip(*quiet, strict=True)]

    def _leave_out(self) -> None:
        """Run once without the calls that refuse their values."""
        for place in range(len(self._calls)):
            self._tried(place, _run)

    def _tried(self, place: int, way: Callable[[Bound], int]) -> int:
        """What comes of a call, from now on with values of its own where it refuses those that are there."""
        op = self._stretch.ops[place]
        for other in OTHERS:
            try:
                return way(self._calls[place])
            except (IndexError, RuntimeError):
                self._calls[place] = self._bind(op, other)
        try:
            return way(self._calls[place])
        except (IndexError, RuntimeError):
            # others may index by its results
            results = [self._view(tensor) for tensor in self._program.calls[op].results if tensor >= 0]
            whole = [each for each in results if not each.is_floating_point() and not each.is_complex()]
            self._calls[place] = Bound(_clear, tuple(whole), {})
            self._calls[place].function(*whole)
            self.refused.add(place)
            return 0

    def _tried_with(self, place: int, values: Filling) -> int:
        """The temporary memory of a call with other values; 0 where it refuses them."""
        try:
            return _temporary_bytes(self._bind(self._stretch.ops[place], values))
        except (IndexError, RuntimeError):
            return 0

    def _round(self) -> list[float]:
        # exactly the executor's loop: what lies between two marks is a call and the taking of a mark
        marks: list[float] = []
        stamp, mark = marks.append, time.perf_counter
        stamp(mark())
        for function, args, kwargs in self._calls:
            function(*args, **kwargs)
            stamp(mark())
        return [stop - start for start, stop in pairwise(marks)]

    def _bind(self, op: int, values: Filling | None = None) -> Bound:
        """An op's call; with values, it reads memory of its own that is full of them."""
        call = self._program.calls[op]
        written = {self._graph.tensors[tensor].storage for tensor in self._graph.ops[op].outputs}

        def place(tensor: int) -> torch.Tensor:
            there = self._view(tensor)
            if values is None or self._graph.tensors[tensor].storage in written:
                return there
            return filled(there, values)

        args = [self._resolve(value, place) for value in call.args]
        kwargs = {name: self._resolve(value, place) for name, value in call.kwargs.items()}
        if self._graph.ops[op].random:
            kwargs["generator"] = self._generator
        return bind(call, args, kwargs, [None if t < 0 else self._view(t) for t in call.results])

    def _resolve(self, value: Any, place: Callable[[int], torch.Tensor]) -> Any:
        if isinstance(value, TensorRef):
            return place(value.tensor)
        if isinstance(value, ScalarRef):
            return self._numbers[value.name]
        if isinstance(value, list | tuple):
            return type(value)(self._resolve(item, place) for item in value)
        return value

    def _view(self, tensor: int) -> torch.Tensor:
        return view(self._slab, self._stretch, self._graph, tensor)


def _run(call: Bound) -> int:
    function, args, kwargs = call
    function(*args, **kwargs)
    return 0


def _temporary_bytes(call: Bound) -> int:
    return temporary_bytes(lambda: _run(call))


def _clear(*results: torch.Tensor) -> None:
    """In the place of a call that is left out."""
    for result in results:
        result.zero_()
