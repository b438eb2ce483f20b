"""Running a step on several workers, each by the plan of its own graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from planner.cancel import CancelToken
from planner.errors import StowageError
from planner.progress import Progress, ShowProgress, reporting
from planner.run.checks.ownership_lock import OwnershipLock
from planner.run.workers.processes.pool import MOST_WORKERS
from planner.run.workers.workers_result import WorkersResult
from planner.step import Step

if TYPE_CHECKING:
    from planner.partition import PartitionPlan

#: Without batches.
_STEPS = 3


def run_workers(
    step: Step,
    partition: PartitionPlan,
    *,
    budget: str | int | None = None,
    batches: Iterable[Any] | None = None,
    steps: int | None = None,
    check: bool = False,
    transport: str | None = None,
    progress: ShowProgress = True,
    stop: CancelToken | None = None,
) -> WorkersResult:
    """Make steps on several workers, a process each; returns when they are made.

    The steps update the live model, its buffers and its optimizer once all of them are made; if a worker fails or the
    run is cancelled, nothing is changed. If a batch cannot be had or does not fit, the steps before it are kept. Sums
    over workers are made in another order than on one device, so numbers differ from eager PyTorch's by rounding; the
    same partition gives the same bits each time, whatever is swapped.

    Args:
        step: the step to run.
        partition: how it is split, for the step's graph.
        budget: device bytes of each worker, or text such as `"1GiB"` or `"60%"` of its own peak; without one, nothing
            is swapped.
        batches: a step is made with each, such as those of a DataLoader; they must be like the step's own batch, which
            is taken if there are none. They may draw from PyTorch's generator, as eager PyTorch's would.
        steps: how many at most, at least 1; None for all batches, or 3 without any.
        check: make the steps in eager PyTorch too, on a copy of the model, and say how far the results are apart.
        transport: `"shared memory"`, or `"gloo"` for PyTorch's process group over TCP; None for shared memory where
            there is enough of it, and gloo otherwise. The numbers are the same.
        progress: True shows progress, False shows nothing; a function is called with the share done and a status text.
        stop: checked periodically; None to never cancel.

    Raises:
        StowageError: the partition is not for this step or cannot be computed in parts, a worker's plan does not fit
            its budget, there is no such transport or too little shared memory for it, the step is already being run,
            a batch is not like the step's own, less memory is free than the workers take, which is a `TooLargeError`,
            or a worker failed, which is a `WorkerFailedError`.
        Cancelled: cancellation was requested.
    """
    from planner.partition import PartitionPlan
    from planner.run.workers.workers_run import WorkersRun

    if not isinstance(partition, PartitionPlan):
        raise StowageError(
            f"a {type(partition).__name__} is not a partition: give a PartitionPlan, such as search.best"
        )
    if batches is not None and not isinstance(batches, Iterable):
        raise StowageError(f"batches must be an iterable of batches, such as a DataLoader, got {batches!r}")
    if steps is not None and (type(steps) is not int or steps < 1):
        raise StowageError(f"steps must be a whole number, at least 1, got {steps!r}")
    if steps is None and batches is None:
        steps = _STEPS
    if partition.workers > MOST_WORKERS:
        raise StowageError(f"{partition.workers} workers cannot be run on one machine; take at most {MOST_WORKERS}")
    stop = CancelToken() if stop is None else stop
    owned = OwnershipLock(step, stop)
    for other in owned.make(stop):
        other.ended.wait()
    try:
        with reporting(progress) as report:
            return WorkersRun(step, partition, transport, stop).make(
                batches, steps, budget, Progress(report, stop), check=check
            )
    finally:
        owned.end()
