"""A step prepared for planning on a machine: its graph there, with the duration and the scratch memory of each op."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from planner.cancel import CancelToken, interruptibly
from planner.errors import StowageError
from planner.global_state_lock import global_state_lock
from planner.graph import Graph
from planner.machine import Machine, op_seconds
from planner.profile.attached_machine import is_attached
from planner.profile.machine_by_name import machine as machine_by_name
from planner.profile.measure import measure_ops
from planner.profile.traces.trace_seconds import trace_seconds
from planner.program import backend_of
from planner.progress import Progress, ShowProgress, reporting

if TYPE_CHECKING:
    from planner.step import Step

T = TypeVar("T")

#: Shares of the progress at which the machine is known, and the step captured.
_KNOWN, _CAPTURED = 0.05, 0.3


@dataclass(frozen=True, eq=False)
class PreparedStep:
    """A step on a machine, as `search_swaps` and `plan_swaps` take it.

    Args:
        graph: with the scratch memory that its ops take on the machine: workspaces, or `Graph.outside_bytes`.
        machine: the machine to plan for.
        seconds: durations, shape (ops,).
    """

    graph: Graph
    machine: Machine
    seconds: NDArray[np.float64]


def prepare(
    step: Step | Graph,
    machine: str | Machine,
    *,
    captured_for: str = "cpu",
    progress: ShowProgress = True,
    remeasure: bool = False,
    trace: str | Path | None = None,
    stop: CancelToken | None = None,
) -> PreparedStep:
    """Capture a step and time its ops: measured on the device it is captured for, predicted by the roofline on others.

    Args:
        step: the step, or its graph as `capture` returns it.
        machine: the machine to plan for, or its name.
        captured_for: the type of device whose ops a step is captured with, as the `device` of `capture`.
        progress: True shows progress, False shows nothing; a function is called with the share done, 0 to 1, and a
            status text.
        remeasure: measure again the ops whose costs are cached on disk.
        trace: a file to take op times from in place of the roofline, as in `trace_seconds`.
        stop: checked periodically, also in another thread; None to never cancel.

    Raises:
        StowageError: there is no such machine, a trace is given though ops are measured here, or as `capture`,
            `measure_ops` and `trace_seconds`.
        Cancelled: cancellation was requested.
    """
    with reporting(progress) as report:
        whole = Progress(report, stop)
        if not isinstance(machine, Machine):
            name, known = machine, whole.part(0.0, _KNOWN)
            machine = _interruptibly(lambda: machine_by_name(name, progress=known), stop)
        graph = step if isinstance(step, Graph) else _captured(step, captured_for, whole.part(_KNOWN, _CAPTURED))
        if not is_attached(machine, graph.device):
            times = op_seconds(graph, machine) if trace is None else trace_seconds(trace, graph, machine).seconds
            return PreparedStep(graph, machine, times)
        if trace is not None:
            raise StowageError(f"the op times of {machine.name} are measured here; drop the trace, or plan for a GPU")
        device, measuring = machine, whole.part(_CAPTURED, 1.0)
        # held for many rounds of measuring, each as long as a step
        with global_state_lock(lambda: whole(_CAPTURED, "waiting for another capture or run")):
            measured = _interruptibly(lambda: measure_ops(graph, device, progress=measuring, remeasure=remeasure), stop)
    needed = {op: int(size) for op, size in enumerate(measured.workspace_bytes) if size > 0}
    backend = backend_of(graph.device)
    return PreparedStep(backend.with_scratch(graph, needed, backend.library_bytes()), machine, measured.seconds)


def _captured(step: Step, device: str, progress: Progress) -> Graph:
    from planner.capture import capture  # not to look up a machine

    return capture(step, device=device, progress=progress)


def _interruptibly(work: Callable[[], T], stop: CancelToken | None) -> T:
    return work() if stop is None else interruptibly(work, stop)
