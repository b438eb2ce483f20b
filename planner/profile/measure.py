"""Durations and scratch memory of a graph's ops, measured on the attached device: once per signature."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from planner.errors import StowageError
from planner.graph import Graph
from planner.machine import Machine, op_seconds
from planner.profile.attached_machine import is_attached
from planner.profile.cache import Cost, CostCache, open_cache
from planner.profile.segment_benchmark import SegmentBenchmark
from planner.profile.segments import Segment, segments
from planner.profile.signatures import signature
from planner.program import Program, backend_of
from planner.progress import Progress, ShowProgress, reporting

_MOST_BYTES = 4 * 2**30
_LEAST_BYTES = 64  # granularity of PyTorch's allocations


@dataclass(frozen=True, eq=False)
class OpMeasurements:
    """Measurements of every op.

    Args:
        seconds: durations, shape (ops,).
        workspace_bytes: scratch memory in addition to the results, shape (ops,).
    """

    seconds: NDArray[np.float64]
    workspace_bytes: NDArray[np.int64]


def measure_ops(
    graph: Graph, machine: Machine, *, progress: ShowProgress = True, cache: bool = True, remeasure: bool = False
) -> OpMeasurements:
    """Measure every op of a graph on the device that it was captured for, one measurement per distinct signature.

    An op that fails on all synthetic values gets its time from the roofline. Scratch memory is rounded up to the
    granularity of PyTorch's allocator, since a few bytes of it may depend on values.

    Args:
        graph: with its program, as `capture` returns it.
        machine: the attached one.
        progress: True shows progress, False shows nothing; a function is called with the share done, 0 to 1, and a
            status text.
        cache: use and extend the costs cached on disk (`planner machines` shows where).
        remeasure: measure everything again and cache the new costs.

    Raises:
        StowageError: the graph has no program, the machine is not that device, an op does not fit in memory, or
            the cache cannot be written.
    """
    program = graph.program
    if not isinstance(program, Program):
        raise StowageError("a graph read from a file cannot be measured; capture its model again")
    if not is_attached(machine, graph.device):
        raise StowageError(
            f"op times are measured on the attached {graph.device}, not {machine.name}; choose machine "
            f"{'cpu' if graph.device == 'cpu' else 'auto'}"
        )
    signatures = [signature(graph, op) for op in graph.ops]
    cost_cache = open_cache(graph.device) if cache else CostCache(Path())
    missing = {key for key in signatures if remeasure or key not in cost_cache}
    if missing:
        if cache:
            cost_cache.save()  # find out before measuring, not after, if it cannot be written
        with reporting(progress) as report:
            report(0.0, "measuring ops")
            for key, cost in _measure(graph, program, machine, signatures, missing, report):
                cost_cache[key] = cost
        if cache:
            cost_cache.save()
    costs = [cost_cache[key] for key in signatures]
    return OpMeasurements(
        np.array([cost.seconds for cost in costs], np.float64),
        np.array([-(-cost.workspace_bytes // _LEAST_BYTES) * _LEAST_BYTES for cost in costs], np.int64),
    )


def forget_ops(graph: Graph) -> None:
    """Drop the cached costs of a graph's ops, which are measured again when the next plan needs them.

    Raises:
        StowageError: the cache cannot be written.
    """
    open_cache(graph.device).forget(signature(graph, op) for op in graph.ops)


def _measure(
    graph: Graph, program: Program, machine: Machine, signatures: Sequence[str], missing: set[str], progress: Progress
) -> Iterator[tuple[str, Cost]]:
    """The missing signatures and their costs; each is measured in the first segment that contains it."""
    scalar_values = program.scalars(0)
    available = backend_of(graph.device).free_bytes()
    measured: set[str] = set()
    for segment in segments(graph, min(_MOST_BYTES, available // 3)):
        wanted = [signatures[op] in missing and signatures[op] not in measured for op in segment.ops]
        if not any(wanted):
            continue
        if segment.bytes > available:
            raise StowageError(
                f"{graph.ops[segment.ops[0]].name} needs {segment.bytes} bytes and {available} are free, so it cannot "
                "be measured here; plan for a preset, or choose a smaller batch"
            )
        measured.update(signatures[op] for op, requested in zip(segment.ops, wanted, strict=True) if requested)
        first, stop, total = segment.ops[0], segment.ops[-1] + 1, len(graph.ops)
        doing = f"measuring ops {first} to {stop} of {total}: running them once"
        part = progress.part(first / total, stop / total, doing)
        yield from _costs(segment, graph, program, machine, scalar_values, signatures, wanted, part)


def _costs(
    segment: Segment, graph: Graph, program: Program, machine: Machine, scalar_values: Mapping[str, float],
    signatures: Sequence[str], wanted: Sequence[bool], progress: Progress,
) -> Iterator[tuple[str, Cost]]:  # fmt: skip
    with torch.inference_mode():
        benchmark = SegmentBenchmark(segment, graph, program, scalar_values)
        ops = f"measuring ops {segment.ops[0]} to {segment.ops[-1] + 1} of {len(graph.ops)}"
        progress(0.0, f"{ops}: their scratch memory")
        workspaces = benchmark.scratch_bytes(wanted)
        seconds = benchmark.seconds(lambda share, number: progress(share, f"{ops}: round {number}"))
    if benchmark.failed:
        predicted = op_seconds(graph, machine)
        for position in benchmark.failed:
            seconds[position] = predicted[segment.ops[position]]
            workspaces[position] = _estimated_scratch(graph, program, segment.ops[position])
    positions: dict[str, list[int]] = {}
    for position, (op, requested) in enumerate(zip(segment.ops, wanted, strict=True)):
        if requested:
            positions.setdefault(signatures[op], []).append(position)
    for key, occurrences in positions.items():
        # the mean, so that the times of the step's ops add up to the step's time
        yield key, Cost(statistics.fmean(seconds[p] for p in occurrences), max(workspaces[p] for p in occurrences))


def _estimated_scratch(graph: Graph, program: Program, op: int) -> int:
    """Scratch memory of an op that fails on all synthetic values: estimated from twice the bytes of its operands."""
    touched = {*graph.reads[op], *graph.writes[op]}
    return program.temporaries.get(op, 0) + 2 * sum(graph.storages[storage].bytes for storage in touched)
