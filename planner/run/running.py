"""Running a step by a plan, measured, and compared with eager PyTorch if asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import torch

from planner.capture import capture
from planner.capture.step import Step
from planner.errors import StowageError
from planner.graph import Graph, fingerprint
from planner.machine.types import Link
from planner.memory import SwapPlan, validate
from planner.run.compare import Twin
from planner.run.cpu import CpuDevice
from planner.run.executor import Executor, StepRecord
from planner.run.kept import Kept
from planner.run.result import Done, RunResult, Stopped

#: A run is not kept waiting for a better plan for longer than this.
_PLANNING_SECONDS = 10.0

Progress = Callable[[float, str], None]


def run(
    step: Step,
    plan: SwapPlan | None = None,
    *,
    budget: str | int | None = None,
    steps: int = 3,
    device: str = "cpu",
    check: bool = False,
    stress: bool = False,
    link_bandwidth: float | Link | None = None,
    remeasure: bool = False,
    progress: Progress | None = None,
) -> RunResult:
    """Make steps by a plan and leave the result in the live model, its buffers and its optimizer.

    If anything goes wrong, or Ctrl-C ends it, they and PyTorch's generator are as the last finished step left them.

    Args:
        step: what to run.
        plan: made for the step's graph; without one, it is planned here with measured op times.
        budget: device bytes, or text such as `"8GiB"` or `"50%"`; without plan and budget, what the step takes.
        steps: how many.
        device: `"cpu"`.
        check: run eager PyTorch beside it on a copy, from the same random numbers, and compare all bits.
        stress: delay all streams at random and poison memory before anyone may rely on it.
        link_bandwidth: bytes per second of each direction of the link to imitate, or a link; None for none.
        remeasure: measure op times anew that were measured before, also by other programs, and kept on disk.
        progress: called with the share done and what is being done.

    Raises:
        StowageError: the plan is not valid for this step, or does not fit on the device, or an op raised.
        Stopped: Ctrl-C ended it after at least one step; it is a KeyboardInterrupt and holds what was done.
    """
    if steps < 1:
        raise StowageError(f"{steps} steps cannot be run; ask for at least 1")
    if device != "cpu":
        raise StowageError(f'there is no device "{device}" to run on; choose "cpu"')
    if plan is not None and budget is not None:
        raise StowageError("a plan has its own budget; give a plan or a budget, not both")
    if plan is not None and remeasure:
        raise StowageError("a plan has its own op times; give a plan or ask for measuring anew, not both")
    report = progress or _silent
    report(0.0, "capturing the step")
    graph = capture(step, progress=report)
    link = _link(link_bandwidth)
    if plan is None:
        plan = _planned(graph, "100%" if budget is None else budget, link, remeasure, report)
    _refuse_invalid(plan, graph, step.change)
    kept = Kept(step)
    try:
        with closing(CpuDevice(plan.peak_bytes, plan.host_bytes, link)) as memory:
            executor = Executor(graph, plan, memory, stress=stress)
            executor.load(step.state())
            twin = Twin(step) if check else None
            done = Done(device, plan, executor, twin)
            try:
                for record in _steps(executor, step, steps, kept, twin, report):
                    done.add(record)
            except KeyboardInterrupt as stop:
                if not done.timelines:
                    raise
                raise Stopped(done.result(), steps) from stop
            return done.result()
    except BaseException:
        kept.restore_generator()
        raise
    finally:
        kept.advance()


def _steps(
    executor: Executor, step: Step, steps: int, kept: Kept, twin: Twin | None, report: Progress
) -> Iterator[StepRecord]:
    batch = step.batch_leaves()
    for number in range(steps):
        report(number / steps, f"step {number + 1} of {steps}")
        generator = torch.get_rng_state()
        record = executor.step(batch)
        kept.keep(executor)
        yield record
        if twin is not None:
            twin.step(number, generator, record.outputs, executor.state())
    report(1.0, "done")


def _planned(graph: Graph, budget: str | int, link: Link | None, remeasure: bool, report: Progress) -> SwapPlan:
    """A plan for this CPU, with op times and temporary memory as they are measured here."""
    from planner.machine import machine, timed
    from planner.swap import plan_swaps

    here = machine("cpu")
    if link is not None:
        here = replace(here, host_link=link)
    report(0.0, "measuring ops")
    ready = timed(graph, here, progress=report, remeasure=remeasure)
    report(0.0, "planning")
    return plan_swaps(ready.graph, here, budget, seconds=ready.seconds, time_limit=_PLANNING_SECONDS, progress=report)


def _refuse_invalid(plan: SwapPlan, graph: Graph, change: str) -> None:
    if plan.graph != fingerprint(graph):
        since = f" since {change}" if change else ""
        raise StowageError(
            f"this plan is not for {graph.name}: its graph is another one{since}; plan again for this step"
        )
    problems = validate(plan, graph.with_workspaces(dict(plan.workspaces)))
    if problems:
        raise StowageError(f"this plan is not valid: {problems[0].rstrip('.')}; plan again")


def _link(bandwidth: float | Link | None) -> Link | None:
    if bandwidth is None or isinstance(bandwidth, Link):
        return bandwidth
    if not bandwidth > 0:
        raise StowageError(f"a link cannot carry {bandwidth} bytes per second; give a bandwidth above 0")
    return Link(bandwidth=bandwidth, duplex_bandwidth=2 * bandwidth)


def _silent(share: float, doing: str) -> None:
    """Report to nobody."""
