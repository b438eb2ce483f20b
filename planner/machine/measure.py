"""Durations and temporary memory of a graph's ops, measured on the attached CPU: once per signature."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from planner.capture.kernels import Bound
from planner.capture.program import Program
from planner.errors import StowageError
from planner.graph import Graph
from planner.machine.cache import Cost, CostCache, open_cache
from planner.machine.samples import sample
from planner.machine.signatures import Signature, signature
from planner.machine.temporary import temporary_bytes
from planner.machine.types import Machine

Progress = Callable[[float, str], None]

_LEAST_ROUNDS, _MOST_ROUNDS = 9, 100
_SECONDS = 0.02
#: Samples of one signature take turns until together they are this large, so that none finds its data in the caches.
_TURN_BYTES = 96 * 2**20
_MOST_COPIES = 8


@dataclass(frozen=True, eq=False)
class OpMeasurements:
    """What was measured of every op.

    Args:
        seconds: durations, shape (ops,).
        workspace_bytes: temporary memory besides the results, shape (ops,).
    """

    seconds: NDArray[np.float64]
    workspace_bytes: NDArray[np.int64]


def measure_ops(
    graph: Graph, machine: Machine, *, progress: Progress | None = None, cache: bool = True
) -> OpMeasurements:
    """Measure every op of a captured graph on the attached CPU, one measurement per distinct signature.

    Args:
        graph: with its program, as `capture` returns it.
        machine: the attached one.
        progress: told the share that is done, 0 to 1, and what is being measured.
        cache: use and extend the costs kept on disk.

    Raises:
        StowageError: the graph has no program, the machine is not the attached CPU, or the cache cannot be written.
    """
    program = graph.program
    if not isinstance(program, Program):
        raise StowageError("a graph read from a file cannot be measured; capture its model again")
    if machine.device.kind != "cpu":
        raise StowageError(f"op times are measured on the attached CPU, and {machine.name} is not; choose machine cpu")
    signatures = [signature(graph, op) for op in graph.ops]
    kept = open_cache() if cache else CostCache(Path())
    missing = {each.text: place for place, each in reversed(list(enumerate(signatures))) if each.text not in kept}
    if missing:
        if cache:
            kept.save()  # that it cannot be written is better known before the measuring than after it
        _measure_all(graph, program, signatures, missing, kept, progress)
        if cache:
            kept.save()
    costs = [kept[each.text] for each in signatures]
    return OpMeasurements(
        np.array([cost.seconds for cost in costs], np.float64),
        np.array([cost.workspace_bytes for cost in costs], np.int64),
    )


def _measure_all(
    graph: Graph, program: Program, signatures: list[Signature], missing: Mapping[str, int], kept: CostCache,
    progress: Progress | None,
) -> None:  # fmt: skip
    numbers = program.scalars(0)
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        for done, place in enumerate(sorted(missing.values())):
            op, each = graph.ops[place], signatures[place]
            if progress is not None:
                progress(done / len(missing), f"measuring {op.target}")
            copies = min(max(_TURN_BYTES // max(sum(each.buffer_bytes), 1), 1), _MOST_COPIES)
            kept[each.text] = _cost([sample(op, program.calls[place], each, numbers) for _ in range(copies)])


def _cost(samples: Sequence[Bound]) -> Cost:
    """The cost of a call, from samples of it that take turns."""
    function, args, kwargs = samples[0]
    workspace = temporary_bytes(lambda: function(*args, **kwargs))
    for function, args, kwargs in samples:
        function(*args, **kwargs)
    seconds: list[float] = []
    spent = 0.0
    while len(seconds) < _LEAST_ROUNDS or (spent < _SECONDS and len(seconds) < _MOST_ROUNDS):
        function, args, kwargs = samples[len(seconds) % len(samples)]
        start = time.perf_counter()
        function(*args, **kwargs)
        seconds.append(time.perf_counter() - start)
        spent += seconds[-1]
    return Cost(_typical(seconds), workspace)


def _typical(seconds: Sequence[float]) -> float:
    """The median of the faster third: other programs only ever make a call slower, and on a busy machine most calls."""
    return statistics.median(sorted(seconds)[: -(-len(seconds) // 3)])
