"""Running a step by a plan, measured, and compared with eager PyTorch if asked for."""

from __future__ import annotations

from numbers import Real
from typing import Literal

from planner.capture.step import Step
from planner.errors import StowageError
from planner.machine.types import Link
from planner.plan import SwapPlan
from planner.progress import Progress, check_progress
from planner.run.handle import Run
from planner.run.preparing import Asked


def run(
    step: Step,
    plan: SwapPlan | None = None,
    *,
    budget: str | int | None = None,
    steps: int = 3,
    device: str = "cpu",
    check: bool | Literal["first"] = "first",
    recheck: bool | int = True,
    stress: bool = False,
    link_bandwidth: float | Link | None = None,
    remeasure: bool = False,
    progress: Progress = True,
) -> Run:
    """Begin to make steps by a plan; returns at once, and `wait()` gives the result.

    The result is left in the live model, its buffers and its optimizer. However the run ends, they are as the last
    finished step left them, and so is PyTorch's generator, unless somebody else has drawn from it or seeded it since.
    All is done in another thread, which leaves PyTorch's generator alone except for a check's eager steps; functions
    that make the step's model or batch are called there too, once there is memory for what they make.
    A plan keeps no gradients, so `grad` of every parameter is None after a training step.
    The run starts from that generator as it is now, under the autocast, gradient mode and number of threads of now.
    Leave the model alone until the run has ended.

    Args:
        step: what to run.
        plan: made for the step's graph; without one, it is planned here with measured op times.
        budget: device bytes, or text such as `"8GiB"` or `"50%"`; without plan and budget, what the step takes.
        steps: how many; 0 gets ready for `Run.steps`.
        device: `"cpu"`.
        check: run eager PyTorch beside every step, from the same random numbers, and compare all bits; nothing else
            should draw from PyTorch's generator meanwhile. `"first"` does so for the first two steps and ends the run
            with an error if any bit differs; it is left out where memory is short, or where steps draw random numbers
            in another thread, and `RunResult.checked` says so. `False` leaves it out.
        recheck: before the steps 2, 4, 8, 16, ... capture the step again and compare it call by call with what is
            run, which finds what it depends on and no guard sees; a number asks for every so many steps, `False` for
            never. `RunResult.recheck_seconds` says what it cost.
        stress: delay all streams at random and poison memory before anyone may rely on it.
        link_bandwidth: bytes per second of each direction of the link to imitate, or a link; None for none.
        remeasure: measure op times anew that were measured before, also by other programs, and kept on disk.
        progress: True shows how far the run is while `Run.wait` or `Run.steps` waits for it, False shows nothing; a
            function is called from another thread with the share done, 0 to 1, and what is being done.

    Raises:
        StowageError: what is asked for cannot be, or the step is being run. What goes wrong later, `wait()` raises; a
            `TooLargeError` where less memory is free than the run takes.
    """
    if not isinstance(step, Step):
        raise StowageError(f"a {type(step).__name__} cannot be run: give a TrainStep or an InferenceStep")
    if plan is not None and not isinstance(plan, SwapPlan):
        raise StowageError(f"a {type(plan).__name__} is not a plan: give a SwapPlan; load_plan reads one from a file")
    if not isinstance(steps, int) or steps < 0:
        raise StowageError(f"steps must be a whole number, at least 1, or 0 to get ready, got {steps!r}")
    if device != "cpu":
        raise StowageError(f'there is no device "{device}" to run on; choose "cpu"')
    if plan is not None and budget is not None:
        raise StowageError("a plan has its own budget; give a plan or a budget, not both")
    if plan is not None and remeasure:
        raise StowageError("a plan has its own op times; give a plan or ask for measuring anew, not both")
    if check not in (True, False, "first"):
        raise StowageError(f'check must be True, False or "first", got {check!r}')
    if not isinstance(recheck, int) or recheck < 0:
        raise StowageError(f"recheck must be True, False or a number of steps, got {recheck!r}")
    check_progress(progress)
    often = None if recheck is True else int(recheck)
    asked = Asked(step, plan, budget, _link(link_bandwidth), steps, device, check, stress, remeasure, often)
    return Run(asked, progress)


def _link(bandwidth: float | Link | None) -> Link | None:
    if bandwidth is None or isinstance(bandwidth, Link):
        return bandwidth
    if not isinstance(bandwidth, Real) or not bandwidth > 0:
        raise StowageError(f"a link cannot carry {bandwidth} bytes per second; give a bandwidth above 0")
    return Link(bandwidth=bandwidth, duplex_bandwidth=2 * bandwidth)
