"""A run on several workers: their graphs and plans, their steps, and the state that comes back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from planner.cancel import CancelToken
from planner.capture import capture
from planner.errors import StowageError
from planner.global_state_lock import global_state_lock
from planner.graph import Graph, fingerprint
from planner.memory import step_peak
from planner.partition import PartitionPlan, counted_bytes, local_value, validate_workers, whole_value, worker_graph
from planner.plan import SwapPlan, validate
from planner.profile import prepare
from planner.program import COLLECTIVES, communicate_by
from planner.progress import Progress
from planner.run.checks.eager_difference import EagerSteps
from planner.run.checks.state_writeback import StateWriteback
from planner.run.prepare.footprint import Footprint, footprint, refuse_footprint
from planner.run.prepare.plan_run import found_plan
from planner.run.workers.batch_feed import BatchFeed
from planner.run.workers.plans.alone import Alone
from planner.run.workers.processes.messages import WorkerJob, packed
from planner.run.workers.processes.pool import ForkServer, WorkerPool
from planner.run.workers.processes.process_settings import ProcessSettings
from planner.run.workers.workers_result import WorkersResult
from planner.step import Step
from planner.swap import search_swaps

#: How long a plan is searched for, for each different worker.
_PLANNING_SECONDS = 3.0
_CAPTURED, _GRAPHS, _PLANS, _READY = 0.1, 0.2, 0.5, 0.6  # shares of the work


class WorkersRun:
    """Workers with their jobs, and what they have done.

    Args:
        step: the step; its live model is updated at the end.
        partition: how it is split.
        transport: between the workers, as for `run_workers`.
        stop: checked periodically.
    """

    def __init__(self, step: Step, partition: PartitionPlan, transport: str | None, stop: CancelToken) -> None:
        self._step, self._partition, self._transport, self._stop = step, partition, transport, stop
        self._workers = range(partition.workers)

    def make(
        self, batches: Iterable[Any] | None, steps: int | None, budget: str | int | None, progress: Progress, *,
        check: bool,
    ) -> WorkersResult:  # fmt: skip
        """Make steps and bring their state back; as `run_workers`."""
        ForkServer.shared()  # gets ready while the plans are made
        with global_state_lock(self._stop.check):
            graph = capture(self._step, progress=progress.part(0.0, _CAPTURED, "capturing the step"))
        graphs = self._graphs(graph, progress.part(_CAPTURED, _GRAPHS))
        graphs, plans = self._planned(graphs, budget, progress.part(_GRAPHS, _PLANS))
        refuse_footprint(
            self._footprint(graph, graphs, plans, check, watched=batches is not None),
            graph.name,
            "the workers' device memory",
        )
        progress(_PLANS, "building the model")
        generator = torch.Generator()
        generator.set_state(torch.get_rng_state())
        writeback = StateWriteback(self._step, generator, graph.program.effects, shared=True)
        live = writeback.live()
        self._refuse_other_steps(graph, writeback, live, steps)
        feed = BatchFeed(self._step, graph, batches, steps, self._stop, keeps=check)
        eager = EagerSteps(self._step, graph) if check else None
        progress(_PLANS, "starting the workers")
        losses: list[float] = []
        outputs: list[Tensor] = []
        seconds: list[float] = []
        pool = WorkerPool(len(self._workers), self._transport, self._stop.check)
        try:
            jobs = ((packed(job),) for job in self._jobs(graph, graphs, plans, live))
            pool.ask("prepare", jobs)
            for replies in self._steps(pool, graph, generator, feed, progress.part(_READY, 1.0)):
                last, first = replies, replies[0]["outputs"][0]
                losses += [float(first)] if first.numel() == 1 else []
                outputs += [first] if check else []
                seconds.append(max(reply["seconds"] for reply in replies))
            if not seconds:
                raise feed.error or StowageError("there are no batches: give at least one")
            parts = pool.ask("state", ((),) * len(self._workers))
        finally:
            pool.close()
        state = self._whole_state(graph, live, parts)
        difference = None if eager is None else eager.difference(feed.given, outputs, state)
        generator.set_state(torch.get_rng_state() if feed.draws else last[0]["drawn"])
        writeback.keep(state, steps=len(seconds))
        writeback.settle()
        if feed.error is not None:
            raise feed.error
        return WorkersResult(
            graph.name,
            len(self._workers),
            pool.transport,
            tuple(losses),
            last[0]["outputs"],
            tuple(seconds),
            None if budget is None else max(plan.budget_bytes for plan in plans),
            tuple(int(reply["peak_bytes"]) for reply in last),
            tuple(plan.peak_bytes for plan in plans),
            tuple(plan.host_bytes for plan in plans),
            sum(int(reply["received_bytes"]) for reply in last),
            counted_bytes(graphs, self._partition.mesh),
            difference,
            tuple(plans),
        )  # fmt: skip

    def _graphs(self, graph: Graph, progress: Progress) -> list[Graph]:
        graphs = []
        for worker in self._workers:
            progress(worker / len(self._workers), f"making the graph of worker {worker}")
            graphs.append(worker_graph(self._partition, graph, worker))
        problems = validate_workers(self._partition, graph, graphs)
        if problems:
            raise StowageError(f"the workers of this partition do not fit together: {problems[0]}")
        return graphs

    def _planned(
        self, graphs: Sequence[Graph], budget: str | int | None, progress: Progress
    ) -> tuple[list[Graph], list[SwapPlan]]:
        """The graphs with the memory that their ops take here, and their plans; workers that are alike share one."""
        known: dict[str, SwapPlan] = {}
        plans = []
        for worker, graph in enumerate(graphs):
            name = fingerprint(graph)
            if name not in known:
                here = progress.part(worker / len(graphs), (worker + 1) / len(graphs), f"planning worker {worker}")
                known[name] = self._plan(graph, budget, here)
            plans.append(known[name])
        return [graph.with_workspaces(dict(plan.workspaces)) for graph, plan in zip(graphs, plans, strict=True)], plans

    def _plan(self, graph: Graph, budget: str | int | None, progress: Progress) -> SwapPlan:
        before = communicate_by(Alone())
        try:
            ready = prepare(graph, graph.device, progress=False, stop=self._stop)
        finally:
            communicate_by(before)
        needed = {  # what collectives take is known; alone they take nothing
            op.id: (graph if call.target in COLLECTIVES else ready.graph).workspace_bytes(op.id)
            for op, call in zip(graph.ops, graph.program.calls, strict=True)
        }
        known = graph.with_workspaces({op: size for op, size in needed.items() if size})
        search = search_swaps(
            known, ready.machine, "100%" if budget is None else budget, seconds=ready.seconds,
            time_limit=_PLANNING_SECONDS,
        )  # fmt: skip
        plan = found_plan(search, progress)
        problems = validate(plan, known)
        if problems:
            raise StowageError(f"the plan of a worker is not valid: {problems[0]}")
        return plan

    def _footprint(
        self, graph: Graph, graphs: Sequence[Graph], plans: Sequence[SwapPlan], check: bool, *, watched: bool
    ) -> Footprint:
        """What the run takes here: each worker's parts of the state are sent to it, and copied into its arena."""
        copied = sum(storage.bytes for storage in graph.storages if storage.persistent) if watched else 0
        sent = sum(storage.bytes for each in graphs for storage in each.storages if storage.persistent)
        return Footprint(
            footprint(graph, None, self._step, checked=False).model,
            sum(plan.peak_bytes for plan in plans) + 2 * sent + copied,
            sum(plan.host_bytes for plan in plans),
            2 * step_peak(graph) if check else 0,  # as it is, and with its state moved
        )

    def _refuse_other_steps(
        self, graph: Graph, writeback: StateWriteback, live: dict[str, Tensor], steps: int | None
    ) -> None:
        """Refuse steps that are not all like the first, which writes to Python variables."""
        effects = graph.program.effects
        if effects is None or steps == 1:
            return
        writeback.note_variables()
        try:
            effects.apply(live, {}, ())
            with global_state_lock(self._stop.check):
                second = capture(self._step, progress=False)
        finally:
            writeback.take_back_variables()
        if second.program.effects is not None or fingerprint(second) != fingerprint(graph):
            raise StowageError(
                f"{graph.name} changes Python variables in every step, and workers run steps that are alike; make one "
                "step at a time (steps=1), or leave the variables alone"
            )

    def _whole_state(
        self, graph: Graph, live: Mapping[str, Tensor], parts: Sequence[Mapping[str, Tensor]]
    ) -> dict[str, Tensor]:
        """The state by key; what no worker touches is as it was, and has no place in a worker's memory."""
        found = {}
        for tensor, key in graph.program.state:
            if all(key not in part for part in parts):
                continue
            each = [
                part[key] if key in part else local_value(live[key].detach(), self._partition, tensor, worker)
                for worker, part in enumerate(parts)
            ]
            found[key] = whole_value(each, self._partition, tensor, live[key].shape)
        return found

    def _jobs(
        self, graph: Graph, graphs: Sequence[Graph], plans: Sequence[SwapPlan], live: Mapping[str, Tensor]
    ) -> Iterator[WorkerJob]:
        threads, settings = max(1, (os.cpu_count() or 1) // len(self._workers)), ProcessSettings.current()
        for worker in self._workers:
            state = {
                key: local_value(live[key].detach(), self._partition, tensor, worker)
                for tensor, key in graph.program.state
            }
            yield WorkerJob(graphs[worker], plans[worker], self._partition.mesh, worker, state, threads, settings)

    def _steps(
        self, pool: WorkerPool, graph: Graph, generator: torch.Generator, feed: BatchFeed, progress: Progress
    ) -> Iterator[list[dict[str, Any]]]:
        """Make the steps; yields what each worker replies."""
        drawn, of = generator.get_state(), "" if feed.count is None else f" of {feed.count}"
        for number, leaves in enumerate(feed):
            progress(number / feed.count if feed.count else 0.0, f"step {number + 1}{of}")
            batch = list(zip(graph.program.batch, leaves, strict=True))
            parts = [
                [local_value(leaf.detach(), self._partition, tensor, worker) for tensor, leaf in batch]
                for worker in self._workers
            ]
            if feed.draws:
                drawn = torch.get_rng_state()
            numbers = dict(graph.program.scalars(number))
            replies = pool.ask("step", ((numbers, drawn, part) for part in parts))
            drawn = replies[0]["drawn"]
            if feed.draws:
                with global_state_lock(self._stop.check):
                    torch.set_rng_state(drawn)
            yield replies
        progress(1.0, "bringing the state back")
