"""A stretch of a step run on made-up values, in memory of its own, every call timed.

The ops run in their order, so that a call finds the caches, and the processor's memory of past branches, as it does
in a step. Repeated on its own it would be up to twice as fast; among strangers, slower.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch

from planner.capture.kernels import Bound, bind
from planner.capture.program import Program, ScalarRef, TensorRef
from planner.errors import StowageError
from planner.graph import Graph
from planner.machine.stretches import Stretch
from planner.machine.temporary import temporary_bytes
from planner.machine.values import clear_integers, fill, view

_LEAST_ROUNDS, _MOST_ROUNDS = 7, 40
_SECONDS = 1.5


class Rehearsal:
    """A stretch with memory, ready to run.

    Args:
        stretch, graph, program: what to rehearse.
        numbers: the values behind `ScalarRef` names.

    Raises:
        StowageError: an op refuses its made-up values.
    """

    def __init__(self, stretch: Stretch, graph: Graph, program: Program, numbers: Mapping[str, float]) -> None:
        self._slab = torch.empty(max(stretch.bytes, 1), dtype=torch.uint8)
        self._stretch, self._graph, self._numbers = stretch, graph, numbers
        self._calls = [self._bind(program, op) for op in stretch.ops]
        fill(self._slab, stretch, graph, program)
        try:
            self._round()
        except (IndexError, RuntimeError):
            # an index that is computed in the step went too far
            clear_integers(self._slab, stretch, graph)
            self._try_again()

    def temporary_bytes(self, wanted: Sequence[bool]) -> list[int]:
        """Run once; the temporary memory of each call, 0 where it is not wanted.

        Args:
            wanted: per op of the stretch.
        """
        taken = []
        for (function, args, kwargs), ask in zip(self._calls, wanted, strict=True):
            if ask:
                taken.append(temporary_bytes(partial(function, *args, **kwargs)))
            else:
                function(*args, **kwargs)
                taken.append(0)
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
            rounds.append(self._round())
        # What other programs take comes in bursts, of which the slower half of the rounds had more than a usual step.
        # The mean, because it adds up: a step of a thousand ops meets a thousand times what one op meets at times.
        quiet = sorted(rounds, key=sum)[: -(-len(rounds) // 2)]
        return [statistics.fmean(each) for each in zip(*quiet, strict=True)]

    def _try_again(self) -> None:
        try:
            self._round()
        except (IndexError, RuntimeError) as error:
            raise StowageError(
                f"the ops of {self._graph.name} cannot be measured on made-up values ({error}); plan for a preset"
            ) from error

    def _round(self) -> list[float]:
        # exactly the executor's loop: what lies between two marks is a call and the taking of a mark
        marks: list[float] = []
        stamp, mark = marks.append, time.perf_counter
        stamp(mark())
        for function, args, kwargs in self._calls:
            function(*args, **kwargs)
            stamp(mark())
        return [stop - start for start, stop in pairwise(marks)]

    def _bind(self, program: Program, op: int) -> Bound:
        call = program.calls[op]
        args = [self._resolve(value) for value in call.args]
        kwargs = {name: self._resolve(value) for name, value in call.kwargs.items()}
        return bind(call, args, kwargs, [None if t < 0 else self._view(t) for t in call.results])

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, TensorRef):
            return self._view(value.tensor)
        if isinstance(value, ScalarRef):
            return self._numbers[value.name]
        if isinstance(value, list | tuple):
            return type(value)(self._resolve(item) for item in value)
        return value

    def _view(self, tensor: int) -> torch.Tensor:
        return view(self._slab, self._stretch, self._graph, tensor)
