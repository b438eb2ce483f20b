"""The segment benchmark: runs a segment of a step on synthetic values in its own memory, and times every call.

The ops run in their order, so that a call finds caches and branch predictors in the same state as in a step. A call
repeated on its own would be up to twice as fast; between unrelated calls it would be slower.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from planner.graph import Graph
from planner.machine import operator
from planner.profile.segments import Segment
from planner.profile.signatures import ALIGNMENT
from planner.profile.synthetic_inputs import ALTERNATIVE_FILLINGS, Filling, clear_integers, fill, filled, view
from planner.profile.value_dependent_scratch import SIZED_BY_VALUES
from planner.program import BoundCall, Program, ScalarRef, TensorRef, backend_of, bind

_LEAST_ROUNDS, _MOST_ROUNDS = 7, 40
_SECONDS = 1.5
#: Of rounds that take long, fewer are enough: by so many seconds the bursts of other programs are averaged out.
_LONG_SECONDS, _LEAST_LONG_ROUNDS = 10.0, 3


class SegmentBenchmark:
    """A segment with its memory, ready to run.

    Args:
        segment, graph, program: the segment to benchmark, and its step.
        numbers: the values of `ScalarRef` names.

    Attributes:
        failed: positions in the segment of calls that fail on all synthetic values; they are skipped, and readers of
            their results read the memory as it is.
    """

    def __init__(self, segment: Segment, graph: Graph, program: Program, numbers: Mapping[str, float]) -> None:
        self._segment, self._graph, self._numbers = segment, graph, numbers
        self._program, self._backend = program, backend_of(graph.device)
        self._slab = self._backend.slab(max(segment.bytes, ALIGNMENT), lambda: None)
        self._generator = torch.Generator(graph.device)  # measuring in a thread must not advance PyTorch's default one
        self._calls = [self._bind(op) for op in segment.ops]
        self.failed: set[int] = set()
        if self._backend.breaks_on_indices:
            for position in self._reading_computed_indices():
                self._leave_out(position)
        fill(self._slab, segment, graph, program, self._generator)
        try:
            self._round()
        except (IndexError, RuntimeError):
            # an index computed in the step was out of range
            clear_integers(self._slab, segment, graph)
            self._replace_failing_calls()

    def scratch_bytes(self, wanted: Sequence[bool]) -> list[int]:
        """Run once; returns the scratch memory of each call, 0 where it is not requested.

        Args:
            wanted: whether to measure, per op of the segment.
        """
        scratch = []
        for position, requested in enumerate(wanted):
            scratch.append(self._run_or_rebind(position, self._temporary_bytes if requested else _run))
            op = self._graph.ops[self._segment.ops[position]]
            fillings = SIZED_BY_VALUES.get(operator(op)) if requested else None
            if fillings is not None:
                # inputs that mix these kinds of values may also need copies to separate them
                copies = sum(self._graph.storages[storage].bytes for storage in self._graph.reads[op.id])
                scratch[-1] = (
                    max([scratch[-1], *(self._scratch_with_values(position, values) for values in fillings)]) + copies
                )
        return scratch

    def seconds(self, progress: Callable[[float, int], object]) -> list[float]:
        """Run repeatedly; returns the typical duration of each call.

        Args:
            progress: called with the share done and the number of the round, from 1.
        """
        rounds: list[list[float]] = []
        start = time.perf_counter()
        while not _are_enough(len(rounds), time.perf_counter() - start):
            progress(min(len(rounds) / _LEAST_ROUNDS, 1.0), len(rounds) + 1)
            try:
                rounds.append(self._round())
            except (IndexError, RuntimeError):  # values change from round to round
                self._replace_failing_calls()
                rounds.clear()
        # Interference by other programs comes in bursts, which the slower half of the rounds had more of than a usual
        # step. The mean, because it adds up: a step of a thousand ops includes the occasional delays of all of them.
        quiet = sorted(rounds, key=sum)[: -(-len(rounds) // 2)]
        return [statistics.fmean(each) for each in zip(*quiet, strict=True)]

    def _replace_failing_calls(self) -> None:
        """Run once, replacing the calls that fail on their values."""
        for position in range(len(self._calls)):
            self._run_or_rebind(position, _run)

    def _run_or_rebind(self, position: int, measure: Callable[[BoundCall], int]) -> int:
        """The result of `measure` for a call; if the call fails on the present values, it gets its own from now on."""
        op = self._segment.ops[position]
        for other in ALTERNATIVE_FILLINGS:
            try:
                return measure(self._calls[position])
            except (IndexError, RuntimeError):
                self._calls[position] = self._bind(op, other)
        try:
            return measure(self._calls[position])
        except (IndexError, RuntimeError):
            self._leave_out(position)
            return _run(self._calls[position])

    def _leave_out(self, position: int) -> None:
        """Do not make a call; other ops may use its results as indices."""
        results = [
            self._view(tensor) for tensor in self._program.calls[self._segment.ops[position]].results if tensor >= 0
        ]
        integers = [each for each in results if not each.is_floating_point() and not each.is_complex()]
        self._calls[position] = BoundCall(_clear, tuple(integers), {})
        self.failed.add(position)

    def _reading_computed_indices(self) -> Iterator[int]:
        """Positions of calls that read integers which the step computes, from other values than these.

        Memory that a forward pass leaves for the backward one holds no indices, whatever its dtype.
        """
        graph = self._graph
        kept = {
            graph.tensors[call.results[place]].storage
            for call in self._program.calls
            for place in self._backend.undefined.get(call.target, ())
            if call.results[place] >= 0
        }
        for position, op in enumerate(self._segment.ops):
            for tensor in graph.ops[op].inputs:
                info = graph.tensors[tensor]
                dtype: torch.dtype = getattr(torch, info.dtype)
                whole = not dtype.is_floating_point and not dtype.is_complex and dtype is not torch.bool
                if whole and not graph.storages[info.storage].live_in and info.storage not in kept:
                    yield position
                    break

    def _scratch_with_values(self, position: int, values: Filling) -> int:
        """The scratch memory of a call with other values; 0 if it fails on them."""
        try:
            return self._temporary_bytes(self._bind(self._segment.ops[position], values))
        except (IndexError, RuntimeError):
            return 0

    def _temporary_bytes(self, call: BoundCall) -> int:
        return self._backend.scratch_bytes(lambda: _run(call))

    def _round(self) -> list[float]:
        return self._backend.seconds(self._calls)

    def _bind(self, op: int, values: Filling | None = None) -> BoundCall:
        """An op's bound call; if `values` are given, it reads separate memory filled with them."""
        call = self._program.calls[op]
        written = {self._graph.tensors[tensor].storage for tensor in self._graph.ops[op].outputs}

        def tensor_of(tensor: int) -> torch.Tensor:
            own_view = self._view(tensor)
            if values is None or self._graph.tensors[tensor].storage in written:
                return own_view
            return filled(own_view, values)

        args = [self._resolve(value, tensor_of) for value in call.args]
        kwargs = {name: self._resolve(value, tensor_of) for name, value in call.kwargs.items()}
        if self._graph.ops[op].random:
            kwargs["generator"] = self._generator
        return bind(self._backend, call, args, kwargs, [None if t < 0 else self._view(t) for t in call.results])

    def _resolve(self, value: Any, tensor_of: Callable[[int], torch.Tensor]) -> Any:
        if isinstance(value, TensorRef):
            return tensor_of(value.tensor)
        if isinstance(value, ScalarRef):
            return self._numbers[value.name]
        if isinstance(value, list | tuple):
            return type(value)(self._resolve(item, tensor_of) for item in value)
        return value

    def _view(self, tensor: int) -> torch.Tensor:
        return view(self._slab, self._segment, self._graph, tensor)


def _are_enough(rounds: int, seconds: float) -> bool:
    """Whether so many rounds, which took so long together, are enough."""
    if seconds < _SECONDS:
        return rounds >= _MOST_ROUNDS
    return rounds >= (_LEAST_ROUNDS if seconds < _LONG_SECONDS else _LEAST_LONG_ROUNDS)


def _run(call: BoundCall) -> int:
    function, args, kwargs = call
    function(*args, **kwargs)
    return 0


def _clear(*results: torch.Tensor) -> None:
    """Replaces a skipped call."""
    for result in results:
        result.zero_()
