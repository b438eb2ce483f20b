"""Running a step on several workers, each by the plan of its own graph."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import StowageError
from planner.progress import ShowProgress, check_progress
from planner.run.checkpoint.folder import CheckpointFolder
from planner.run.checkpoint.load import folder_for
from planner.run.workers.launch.environment import is_launched
from planner.run.workers.launch.rank_folder import RankFolder
from planner.run.workers.processes.pool import MOST_WORKERS
from planner.run.workers.rank_thread import RankThread, refuse_of_one_host
from planner.run.workers.workers_run import RankRun, WorkersRun
from planner.run.workers.workers_thread import WorkersRequest, WorkersThread
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
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    progress: ShowProgress = True,
) -> WorkersRun:
    """Start making steps on several workers, a process each; returns immediately, and `wait()` returns the result.

    The live model, its buffers and its optimizer get the state once all steps are made, or those before the run is
    cancelled or before a batch cannot be had or does not fit; if a worker fails, nothing is changed. `.steps(loader)`
    trains on more batches with the same workers, and the model includes each step once its loss is there. Sums over
    workers are made in another order than on one device, so numbers differ from eager PyTorch's by rounding; the
    same partition gives the same bits each time, whatever is swapped. Do not change the model until the run has ended.

    In a process that `torchrun` has started, or that is a rank of a process group, no processes are made: this one is
    the worker of its rank, and every rank calls this function with the same arguments, a model with the same values and
    the same batches, whole. What ranks disagree about is refused at all of them before it is computed with. Every rank
    gets the whole state and the result.

    Args:
        step: the step to run.
        partition: how it is split, for the step's graph.
        budget: device bytes of each worker, or text such as `"1GiB"` or `"60%"` of its own peak; without one, all of
            that peak.
        batches: a step is made with each, such as those of a DataLoader; they must be like the step's own batch, which
            is taken if there are none. They are asked for in the run's thread and may draw from PyTorch's generator, as
            eager PyTorch's would; no other code should draw from it meanwhile.
        steps: how many at most; None for all batches, or 3 without any; 0 only prepares for `WorkersRun.steps`.
            Planning a worker takes at most three seconds and, after the first of them, no longer than it could still
            save in these steps.
        check: make the run's own steps in eager PyTorch too, on a copy of the model, and say how far the results are
            apart.
        transport: `"shared memory"`, or `"gloo"` for PyTorch's process group over TCP; None for shared memory where
            there is enough of it, and gloo otherwise. The numbers are the same.
        checkpoint: a folder that the state is written to during the run, by each worker its own part. It is a
            checkpoint of `torch.distributed.checkpoint`, always of one finished step, whatever ends when, and
            `planner.run.load_checkpoint` loads it for any number of workers. Ranks on several hosts need a folder that
            all of them share.
        checkpoint_every: after how many steps it is written; None for as often as that takes at most a twentieth of the
            time. It is also written at the end, and at the end of each loop over `steps`.
        progress: True shows progress while `WorkersRun.wait` or `.steps` waits for the run, False shows nothing; a
            function is called from another thread with the share done, 0 to 1, and a status text.

    Raises:
        StowageError: the arguments are invalid, or the step is already being run. Later errors are raised by `wait()`:
            the partition is not for this step or cannot be computed in parts, a worker's plan does not fit its budget,
            there is too little shared memory, a batch is not like the step's own, less memory is free than the workers
            take, which is a `TooLargeError`, or a worker failed, which is a `WorkerFailedError`.
    """
    from planner.partition import PartitionPlan

    if not isinstance(step, Step):
        raise StowageError(f"{type(step).__name__} is not a step: give a TrainStep or an InferenceStep of the model")
    if not isinstance(partition, PartitionPlan):
        raise StowageError(
            f"{type(partition).__name__} is not a partition: give a PartitionPlan, such as search.best, or what "
            "planner.partition.load_partition reads from a file"
        )
    if batches is not None and not isinstance(batches, Iterable):
        raise StowageError(f"batches must be an iterable of batches, such as a DataLoader, got {batches!r}")
    if steps is not None and (type(steps) is not int or steps < 0):
        raise StowageError(f"steps must be a whole number, at least 1, or 0 to get ready, got {steps!r}")
    if steps is None and batches is None:
        steps = _STEPS
    launched = is_launched()
    if launched:
        refuse_of_one_host(transport=transport)
    elif partition.workers > MOST_WORKERS:
        raise StowageError(f"{partition.workers} workers cannot be run on one machine; take at most {MOST_WORKERS}")
    check_progress(progress)
    if checkpoint_every is not None and (type(checkpoint_every) is not int or checkpoint_every < 1):
        raise StowageError(f"checkpoint_every must be a number of steps, at least 1, got {checkpoint_every!r}")
    if checkpoint is None and checkpoint_every is not None:
        raise StowageError("checkpoint_every needs a folder to write to: give checkpoint too")
    folder: CheckpointFolder | RankFolder | None = None
    if checkpoint is not None:
        path = Path(checkpoint)
        folder = RankFolder(path, step) if launched else folder_for(step, path)
    request = WorkersRequest(
        step, partition, budget, batches, steps, check, transport, folder, checkpoint_every
    )  # fmt: skip
    listener = progress if callable(progress) else None
    if not launched:
        return WorkersRun(WorkersThread(request, listener), progress)
    rank = RankThread(request, listener)
    return RankRun(rank, progress if callable(progress) or rank.is_first else False)
