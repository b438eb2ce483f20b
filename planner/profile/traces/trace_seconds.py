"""Op times of a graph, taken from a trace of the same model on another computer."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planner.errors import StowageError
from planner.graph import Graph, Op
from planner.machine import Machine, op_seconds
from planner.profile.traces.traced_calls import TracedCall, traced_calls
from planner.units import format_percent

#: Below this share of its ops, a trace is that of another model.
_LEAST_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class TraceMeasurements:
    """Op times as `search_swaps` and `plan_swaps` take them.

    Args:
        seconds: durations, shape (ops,); those that were not found in the trace are the roofline's.
        measured: which are from the trace, shape (ops,).
    """

    seconds: NDArray[np.float64]
    measured: NDArray[np.bool_]

    @property
    def share(self) -> float:
        """The share of ops whose times are from the trace."""
        return float(self.measured.mean()) if len(self.measured) else 0.0


def trace_seconds(path: str | Path, graph: Graph, machine: Machine) -> TraceMeasurements:
    """Take the op times of a graph from a trace of `torch.profiler`.

    Ops are found by name, and by the shapes and dtypes of their tensors if the trace has them (`record_shapes=True`);
    otherwise by name and order, if every step calls an op of that name as often as the graph. An op that is called
    more often with the same inputs gets the median of its times.

    Args:
        path: what `torch.profiler.profile.export_chrome_trace` wrote, `.json` or `.json.gz`.
        graph: the step that was traced.
        machine: what it was traced on; its roofline is for ops that are not in the trace.

    Raises:
        StowageError: the file cannot be read, or it is a trace of another type of device or of another model: fewer
            than half of the ops are in it.
    """
    traced = traced_calls(path)
    if traced.device != machine.device.kind:
        activity = (
            "trace with ProfilerActivity.CUDA on it" if traced.device == "cpu" else "choose the GPU that it is of"
        )
        raise StowageError(f"{path} has times of a {traced.device} device, and {machine.name} is another; {activity}")
    calls = [call for call in traced.calls if call.seconds > 0]
    found = _by_inputs(graph, calls) if any(call.shapes is not None for call in calls) else _by_order(graph, calls)
    measured = np.array([op.id in found for op in graph.ops], np.bool_)
    result = TraceMeasurements(op_seconds(graph, machine), measured)
    if result.share < _LEAST_SHARE:
        raise StowageError(
            f"{path} has {format_percent(result.share)} of the ops of {graph.name} by name, shapes and types; trace "
            "the same model and batch, with record_shapes=True"
        )
    for op, seconds in found.items():
        result.seconds[op] = seconds
    return result


def _by_inputs(graph: Graph, calls: list[TracedCall]) -> dict[int, float]:
    times: dict[Hashable, list[float]] = defaultdict(list)
    for call in calls:
        if call.shapes is not None:
            times[call.name, call.shapes, call.dtypes if call.dtypes and all(call.dtypes) else None].append(
                call.seconds
            )
    typical = {key: statistics.median(each) for key, each in times.items()}
    found: dict[int, float] = {}
    for op in graph.ops:
        inputs = [graph.tensors[tensor] for tensor in op.inputs]
        shapes = tuple(tensor.shape for tensor in inputs)
        for name in _names(op):
            for dtypes in (tuple(tensor.dtype for tensor in inputs), None):
                if op.id not in found and (name, shapes, dtypes) in typical:
                    found[op.id] = typical[name, shapes, dtypes]
    return found


def _by_order(graph: Graph, calls: list[TracedCall]) -> dict[int, float]:
    times: dict[str, list[float]] = defaultdict(list)
    for call in calls:
        times[call.name].append(call.seconds)
    ops: dict[str, list[int]] = defaultdict(list)
    for op in graph.ops:
        ops[next((name for name in _names(op) if name in times), "")].append(op.id)
    found: dict[int, float] = {}
    for name, same in ops.items():
        if len(times[name]) and len(times[name]) % len(same) == 0:
            for place, op_id in enumerate(same):
                found[op_id] = statistics.median(times[name][place :: len(same)])
    return found


def _names(op: Op) -> tuple[str, ...]:
    """Names that an op may have in a trace: of its operator, and of the one that works in place, or not."""
    namespace, _, rest = op.target.partition(".")
    name = f"{namespace}::{rest.partition('.')[0]}"
    return name, name.removesuffix("_") if name.endswith("_") else f"{name}_"
