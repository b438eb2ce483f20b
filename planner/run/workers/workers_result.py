"""The result of a run on several workers."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from planner.plan import SwapPlan
from planner.run.checks.eager_difference import Difference


@dataclass(frozen=True, eq=False)
class WorkersResult:
    """What a run on several workers did.

    Args:
        name: of the step.
        workers: how many there were.
        transport: between them, `"shared memory"` or `"gloo"`.
        losses: of every step; a step that returns no single number has none.
        outputs: of the last step, the loss first.
        step_seconds: how long each took, on the worker that took the longest.
        budget_bytes: the most that a worker was allowed; None for what its step takes without swaps.
        peak_bytes, planned_peak_bytes: per worker, the memory that it used as measured, and as planned.
        host_bytes: per worker, the size of its host slab.
        bytes_counted: what all workers together received in a step.
        bytes_predicted: the same by their graphs.
        difference: how far the losses and the state are from eager PyTorch's; None if that was not asked for.
        plans: per worker.
        skipped: which steps, from 0, have updated nothing, because the gradient scaler found a gradient that is not
            finite.
    """

    name: str
    workers: int
    transport: str
    losses: tuple[float, ...]
    outputs: tuple[Tensor, ...]
    step_seconds: tuple[float, ...]
    budget_bytes: int | None
    peak_bytes: tuple[int, ...]
    planned_peak_bytes: tuple[int, ...]
    host_bytes: tuple[int, ...]
    bytes_counted: int
    bytes_predicted: int
    difference: Difference | None
    plans: tuple[SwapPlan, ...]
    skipped: tuple[int, ...] = ()
