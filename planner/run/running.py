"""Running a step by a plan, measured, and compared with eager PyTorch if asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from planner.capture import capture
from planner.capture.step import Step
from planner.errors import StowageError
from planner.graph import Graph, fingerprint
from planner.machine.types import Link
from planner.memory import SwapPlan, Timeline, validate
from planner.run.compare import Twin
from planner.run.cpu import CpuDevice
from planner.run.executor import Executor, StepRecord
from planner.run.kept import Kept

Progress = Callable[[float, str], None]


@dataclass(frozen=True, eq=False)
class RunResult:
    """What a run did.

    Args:
        device: what it ran on.
        losses: of every step, in order; none where the step returns no single number.
        step_seconds: of every step.
        eager_step_seconds: of eager PyTorch's steps beside it, where it was checked.
        predicted_step_seconds: what the plan foresaw.
        budget_bytes, peak_bytes, predicted_peak_bytes: device memory allowed, used as measured, and planned.
        host_bytes: size of the host slab.
        mismatches: names of what differed from eager PyTorch in any bit, by step.
        compared: how many tensors were compared.
        timelines: measured, of every step.
        outputs: what the last step returned, the loss first.
        plan: what was run.
    """

    device: str
    losses: tuple[float, ...]
    step_seconds: tuple[float, ...]
    eager_step_seconds: tuple[float, ...]
    predicted_step_seconds: float
    budget_bytes: int
    peak_bytes: int
    predicted_peak_bytes: int
    host_bytes: int
    mismatches: tuple[str, ...]
    compared: int
    timelines: tuple[Timeline, ...]
    outputs: tuple[Tensor, ...]
    plan: SwapPlan


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
        progress: called with the share done and what is being done.

    Raises:
        StowageError: the plan is not valid for this step, or does not fit on the device, or an op raised.
    """
    if steps < 1:
        raise StowageError(f"{steps} steps cannot be run; ask for at least 1")
    if device != "cpu":
        raise StowageError(f'there is no device "{device}" to run on; choose "cpu"')
    if plan is not None and budget is not None:
        raise StowageError("a plan has its own budget; give a plan or a budget, not both")
    report = progress or _silent
    report(0.0, "capturing the step")
    graph = capture(step)
    link = _link(link_bandwidth)
    if plan is None:
        plan = _planned(graph, "100%" if budget is None else budget, link, report)
    _refuse_invalid(plan, graph, step.change)
    kept = Kept(step)
    try:
        with closing(CpuDevice(plan.peak_bytes, plan.host_bytes, link)) as memory:
            executor = Executor(graph, plan, memory, stress=stress)
            executor.load(step.state())
            twin = Twin(step) if check else None
            losses, timelines = [], []
            for record in _steps(executor, step, steps, kept, twin, report):
                timelines.append(record.timeline)
                outputs = record.outputs
                if outputs[0].numel() == 1:
                    losses.append(float(outputs[0]))
            peak = executor.peak_bytes
    except BaseException:
        kept.restore_generator()
        raise
    finally:
        kept.advance()
    return RunResult(
        device=device,
        losses=tuple(losses),
        step_seconds=tuple(timeline.seconds for timeline in timelines),
        eager_step_seconds=tuple(twin.seconds) if twin else (),
        predicted_step_seconds=plan.predicted.seconds,
        budget_bytes=plan.budget_bytes,
        peak_bytes=peak,
        predicted_peak_bytes=plan.peak_bytes,
        host_bytes=plan.host_bytes,
        mismatches=twin.mismatches if twin else (),
        compared=twin.compared if twin else 0,
        timelines=tuple(timelines),
        outputs=outputs,
        plan=plan,
    )


def _steps(
    executor: Executor, step: Step, steps: int, kept: Kept, twin: Twin | None, report: Progress
) -> Iterator[StepRecord]:
    batch = step.batch_leaves()
    for number in range(steps):
        report(number / steps, f"step {number + 1} of {steps}")
        generator = torch.get_rng_state()
        record = executor.step(batch)
        kept.keep(executor)
        if twin is not None:
            twin.step(number, generator, record.outputs, executor.state())
        yield record
    report(1.0, "done")


def _planned(graph: Graph, budget: str | int, link: Link | None, report: Progress) -> SwapPlan:
    """A plan for this CPU, with op times and temporary memory as they are measured here."""
    from planner.machine import machine, timed
    from planner.swap import plan_swaps

    here = machine("cpu")
    if link is not None:
        here = replace(here, host_link=link)
    report(0.0, "measuring ops")
    ready = timed(graph, here, progress=report)
    report(0.0, "planning")
    return plan_swaps(ready.graph, here, budget, seconds=ready.seconds, progress=report)


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
