"""Running a step by a plan, measured, and optionally compared with eager PyTorch."""

from __future__ import annotations

from numbers import Real
from typing import Literal

from planner.errors import StowageError, given_type
from planner.machine import Link
from planner.plan import SwapPlan
from planner.program import backend_of
from planner.progress import ShowProgress, check_progress
from planner.run.devices.registry import DEVICES
from planner.run.handle import Run
from planner.run.prepare.plan_run import RunRequest
from planner.step import Step


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
    progress: ShowProgress = True,
) -> Run:
    """Start making steps by a plan; returns immediately, and `wait()` returns the result.

    The steps update the live model, its buffers and its optimizer. However the run ends, these have their state after
    the last finished step, and so has PyTorch's generator, unless other code has drawn from it or seeded it since.
    The work is done in another thread, which does not use PyTorch's generator except for the eager steps of a check;
    functions that make the step's model or batch are called there too, once there is memory for what they make.
    A plan keeps no gradients, so `grad` of every parameter is None after a training step.
    The run starts from the generator's present state, with the present autocast, gradient mode and number of threads.
    Do not change the model until the run has ended.

    Args:
        step: the step to run.
        plan: made for the step's graph; without one, a plan is made here with measured op times.
        budget: device bytes, or text such as `"8GiB"` or `"50%"`; without plan and budget, the step's own peak. On a
            GPU, the arena, the temporary memory of ops and what libraries keep are within it, and while steps are made
            PyTorch's allocator refuses this process more than that and a little for its rounding.
        steps: number of steps; 0 only prepares for `Run.steps`. Planning takes at most ten seconds and, after the first
            of them, no longer than it could still save in these steps.
        device: `"cpu"`, or `"cuda"` for the current GPU, which holds the plan's memory alone: a model on the host stays
            there, and is updated when the run ends, or after every step of `Run.steps`. Dropout has the GPU's default
            generator in the run's state for the moment of its call: no other thread may draw on the GPU meanwhile.
        check: make every step in eager PyTorch too, from the same random numbers, and compare all bits; no other code
            should draw from PyTorch's generator meanwhile. `"first"` does so for the first two steps and ends the run
            with an error if any bit differs; it is skipped if memory is short, or if steps draw random numbers in
            another thread, as `RunResult.checked` reports. `False` skips it.
        recheck: before the steps 2, 4, 8, 16, ... capture the step again and compare it call by call with what is
            run, which finds dependencies that no guard detects; a number sets a fixed interval in steps, `False`
            disables it. `RunResult.recheck_seconds` reports the time it took.
        stress: delay all streams at random and poison memory before it is valid.
        link_bandwidth: bytes per second of each direction of the link to imitate, or a link; None for none.
        remeasure: measure op times again even if they are cached on disk, also by other programs.
        progress: True shows progress while `Run.wait` or `Run.steps` waits for the run, False shows nothing; a
            function is called from another thread with the share done, 0 to 1, and a status text.

    Raises:
        StowageError: the arguments are invalid, or the step is already being run. Later errors are raised by `wait()`;
            a `TooLargeError` if less memory is free than the run takes.
    """
    if not isinstance(step, Step):
        raise StowageError(f"{given_type(step)} cannot be run: give a TrainStep or an InferenceStep")
    if plan is not None and not isinstance(plan, SwapPlan):
        raise StowageError(f"{given_type(plan)} is not a plan: give a SwapPlan; load_plan reads one from a file")
    if not isinstance(steps, int) or steps < 0:
        raise StowageError(f"steps must be a whole number, at least 1, or 0 to get ready, got {steps!r}")
    if device not in DEVICES:
        known = " or ".join(f'"{name}"' for name in DEVICES)
        raise StowageError(f'there is no device "{device}" to run on; choose {known}')
    if missing := backend_of(device).missing():
        raise StowageError(f"steps cannot be run on {device} here, because {missing}")
    if link_bandwidth is not None and device != "cpu":
        raise StowageError("a GPU copies at the pace of its own link: leave link_bandwidth out")
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
    request = RunRequest(step, plan, budget, _link(link_bandwidth), steps, device, check, stress, remeasure, often)
    return Run(request, progress)


def _link(bandwidth: float | Link | None) -> Link | None:
    if bandwidth is None or isinstance(bandwidth, Link):
        return bandwidth
    if not isinstance(bandwidth, Real) or not bandwidth > 0:
        raise StowageError(f"a link cannot carry {bandwidth} bytes per second; give a bandwidth above 0")
    return Link(bandwidth=bandwidth, duplex_bandwidth=2 * bandwidth)
