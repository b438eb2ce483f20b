"""Running a step on several workers, each by the plan of its own graph."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from planner.cancel import CancelToken
from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph, fingerprint
from planner.partition import PartitionPlan, counted_bytes, local_value, validate_workers, whole_value, worker_graph
from planner.plan import SwapPlan, validate
from planner.profile import prepare
from planner.program import COLLECTIVES, communicate_by
from planner.progress import Progress, ShowProgress, reporting
from planner.run.checks.eager_difference import Difference, EagerSteps
from planner.run.workers.alone import Alone
from planner.run.workers.messages import WorkerJob, packed
from planner.run.workers.pool import MOST_WORKERS, WorkerPool
from planner.step import Step
from planner.swap import search_swaps

#: How long a plan is searched for, for each different worker.
_PLANNING_SECONDS = 3.0
_GRAPHS, _PLANS, _READY = 0.2, 0.5, 0.6  # shares of the work


@dataclass(frozen=True, eq=False)
class WorkersResult:
    """What a run on several workers did.

    Args:
        name: of the step.
        workers: how many there were.
        losses: of every step; a step that returns no single number has none.
        outputs: of the last step, the loss first.
        step_seconds: how long each took, on the worker that took the longest.
        budget_bytes: what each worker was allowed; None for what its step takes without swaps.
        peak_bytes, planned_peak_bytes: per worker, the memory that it used as measured, and as planned.
        host_bytes: per worker, the size of its host slab.
        bytes_counted: what all workers together received in a step.
        bytes_predicted: the same by their graphs.
        difference: how far the losses and the state are from eager PyTorch's; None if that was not asked for.
        plans: per worker.
    """

    name: str
    workers: int
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


def run_workers(
    step: Step,
    partition: PartitionPlan,
    *,
    budget: str | int | None = None,
    steps: int = 3,
    check: bool = False,
    progress: ShowProgress = True,
    stop: CancelToken | None = None,
) -> WorkersResult:
    """Make steps on several workers, a process each; returns when they are made.

    The steps update the live model, its buffers and its optimizer once all of them are made; if a worker fails, nothing
    is changed. Sums over workers are made in another order than on one device, so numbers differ from eager PyTorch's
    by rounding; the same partition gives the same bits each time, whatever is swapped.

    Args:
        step: the step to run.
        partition: how it is split, for the step's graph.
        budget: device bytes of each worker, or text such as `"1GiB"` or `"60%"` of its own peak; without one, nothing
            is swapped.
        steps: how many, at least 1.
        check: make the steps in eager PyTorch too, on a copy of the model, and say how far the results are apart.
        progress: True shows progress, False shows nothing; a function is called with the share done and a status text.
        stop: checked periodically; None to never cancel.

    Raises:
        StowageError: the partition is not for this step or cannot be computed in parts, a worker's plan does not fit
            its budget, or a worker failed, which is a `WorkerFailedError`.
        Cancelled: cancellation was requested.
    """
    if not isinstance(partition, PartitionPlan):
        raise StowageError(
            f"a {type(partition).__name__} is not a partition: give a PartitionPlan, such as search.best"
        )
    if not isinstance(steps, int) or steps < 1:
        raise StowageError(f"steps must be a whole number, at least 1, got {steps!r}")
    if partition.workers > MOST_WORKERS:
        raise StowageError(f"{partition.workers} workers cannot be run on one machine; take at most {MOST_WORKERS}")
    with reporting(progress) as report:
        whole = Progress(report, stop)
        graph = capture(step, progress=whole.part(0.0, _GRAPHS / 2, "capturing the step"))
        graphs = _worker_graphs(partition, graph, whole.part(_GRAPHS / 2, _GRAPHS))
        ready = _plans(graphs, budget, whole.part(_GRAPHS, _PLANS), stop)
        eager = EagerSteps(step) if check else None
        whole(_PLANS, "starting the workers")
        pool = WorkerPool(partition.workers, (lambda: None) if stop is None else stop.check)
        try:
            return _WorkersRun(step, partition, graph, ready, pool).make(steps, budget, eager, whole.part(_READY, 1.0))
        finally:
            pool.close()


def _worker_graphs(partition: PartitionPlan, graph: Graph, progress: Progress) -> list[Graph]:
    graphs = []
    for worker in range(partition.workers):
        progress(worker / partition.workers, f"making the graph of worker {worker}")
        graphs.append(worker_graph(partition, graph, worker))
    problems = validate_workers(partition, graph, graphs)
    if problems:
        raise StowageError(f"the workers of this partition do not fit together: {problems[0]}")
    return graphs


def _plans(
    graphs: Sequence[Graph], budget: str | int | None, progress: Progress, stop: CancelToken | None
) -> list[tuple[Graph, SwapPlan]]:
    """Each worker's graph, with the memory that its ops take here, and its plan; workers that are alike share one."""
    known: dict[str, tuple[Graph, SwapPlan]] = {}
    found = []
    for worker, graph in enumerate(graphs):
        name = fingerprint(graph)
        if name not in known:
            progress(worker / len(graphs), f"planning the memory of worker {worker}")
            known[name] = _planned(graph, budget, stop)
        ready, plan = known[name]
        found.append((graph.with_workspaces({op.id: ready.workspace_bytes(op.id) for op in ready.ops}), plan))
    return found


def _planned(graph: Graph, budget: str | int | None, stop: CancelToken | None) -> tuple[Graph, SwapPlan]:
    before = communicate_by(Alone())
    try:
        ready = prepare(graph, graph.device, progress=False, stop=stop)
    finally:
        communicate_by(before)
    needed = {
        op.id: (graph if call.target in COLLECTIVES else ready.graph).workspace_bytes(op.id)
        for op, call in zip(graph.ops, graph.program.calls, strict=True)
    }
    known = graph.with_workspaces({op: size for op, size in needed.items() if size})
    search = search_swaps(
        known, ready.machine, "100%" if budget is None else budget, seconds=ready.seconds,
        time_limit=_PLANNING_SECONDS,
    )  # fmt: skip
    try:
        plan = search.wait()
    except BaseException:
        search.cancel()
        raise
    problems = validate(plan, known)
    if problems:
        raise StowageError(f"the plan of a worker is not valid: {problems[0]}")
    return known, plan


class _WorkersRun:
    """Workers with their jobs, and what they have done."""

    def __init__(
        self, step: Step, partition: PartitionPlan, graph: Graph, ready: Sequence[tuple[Graph, SwapPlan]],
        pool: WorkerPool,
    ) -> None:  # fmt: skip
        self._step, self._partition, self._graph, self._pool = step, partition, graph, pool
        self._graphs, self._plans = [each for each, _ in ready], [plan for _, plan in ready]
        self._program = graph.program
        calls = [call for each in self._graphs for call in each.program.calls if call.target in COLLECTIVES]
        self._groups = tuple(sorted({str(call.args[-1]) for call in calls}))

    def make(self, steps: int, budget: str | int | None, eager: EagerSteps | None, progress: Progress) -> WorkersResult:
        """Make the steps and bring their state back."""
        self._step.complete()
        live = self._step.state()
        self._pool.ask("prepare", [(packed(self._job(worker, live)),) for worker in range(self._partition.workers)])
        drawn = torch.get_rng_state()
        batch = self._parts_of_batch()
        outputs: list[Tensor] = []
        seconds: list[float] = []
        replies: list[dict[str, Any]] = []
        for number in range(steps):
            progress(number / steps, f"step {number + 1} of {steps}")
            numbers = dict(self._program.scalars(number))
            replies = self._pool.ask("step", [(numbers, drawn, part) for part in batch])
            drawn = replies[0]["drawn"]
            outputs.append(replies[0]["outputs"][0])
            seconds.append(max(reply["seconds"] for reply in replies))
        progress(1.0, "bringing the state back")
        parts = self._pool.ask("state", [()] * self._partition.workers)
        state = {
            key: whole_value([part[key] for part in parts], self._partition, tensor, live[key].shape)
            for tensor, key in self._program.state
        }
        difference = None if eager is None else eager.difference(outputs, state)
        self._write_back(live, state, drawn, steps)
        return WorkersResult(
            self._graph.name,
            self._partition.workers,
            tuple(float(one) for one in outputs if one.numel() == 1),
            replies[0]["outputs"],
            tuple(seconds),
            None if budget is None else max(plan.budget_bytes for plan in self._plans),
            tuple(int(reply["peak_bytes"]) for reply in replies),
            tuple(plan.peak_bytes for plan in self._plans),
            tuple(plan.host_bytes for plan in self._plans),
            sum(int(reply["received_bytes"]) for reply in replies),
            counted_bytes(self._graphs, self._partition.mesh),
            difference,
            tuple(self._plans),
        )  # fmt: skip

    def _job(self, worker: int, live: Mapping[str, Tensor]) -> WorkerJob:
        state = {
            key: local_value(live[key].detach(), self._partition, tensor, worker) for tensor, key in self._program.state
        }
        threads = max(1, (os.cpu_count() or 1) // self._partition.workers)
        return WorkerJob(
            self._graphs[worker], self._plans[worker], self._partition.mesh, worker, self._groups, state, threads
        )

    def _parts_of_batch(self) -> list[list[Tensor]]:
        leaves = self._step.batch_leaves()
        return [
            [local_value(leaf.detach(), self._partition, tensor, worker)
             for tensor, leaf in zip(self._program.batch, leaves, strict=True)]
            for worker in range(self._partition.workers)
        ]  # fmt: skip

    def _write_back(self, live: Mapping[str, Tensor], state: Mapping[str, Tensor], drawn: Tensor, steps: int) -> None:
        with torch.no_grad():
            for key, value in state.items():
                live[key].copy_(value)
        torch.set_rng_state(drawn)
        self._step.advance(steps)
        self._step.settle()
