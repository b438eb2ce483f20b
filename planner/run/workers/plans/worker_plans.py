"""The graphs of a partition's workers and the plan of each, made from the graph of the whole step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from planner.cancel import CancelToken
from planner.errors import StowageError
from planner.global_state_lock import global_state_lock
from planner.graph import Graph, fingerprint
from planner.machine import Link, is_collective, op_seconds
from planner.partition import PartitionPlan, counted_bytes, local_value, validate_workers, whole_value, worker_graph
from planner.plan import SwapPlan, validate
from planner.profile import prepare
from planner.program import COLLECTIVES, communicate_by
from planner.progress import Progress
from planner.run.prepare.found_plan import found_plan
from planner.run.workers.plans.alone import Alone
from planner.run.workers.plans.cores import has_cores_to_spare
from planner.swap import search_swaps

#: How long a plan is searched for, for each different worker.
_PLANNING_SECONDS = 3.0
_GRAPHS = 0.25  # share of the work


@dataclass(frozen=True, eq=False)
class WorkerPlans:
    """What the workers of a partition compute.

    Args:
        partition: how the step is split.
        graph: of the whole step.
        graphs: per worker, with the memory that its ops take here.
        plans: per worker.
    """

    partition: PartitionPlan
    graph: Graph
    graphs: tuple[Graph, ...]
    plans: tuple[SwapPlan, ...]

    @property
    def workers(self) -> range:
        """Their numbers."""
        return range(self.partition.workers)

    @property
    def bytes_predicted(self) -> int:
        """What all workers together receive in a step."""
        return counted_bytes(self.graphs, self.partition.mesh)

    def state_parts(self, live: Mapping[str, Tensor], worker: int) -> dict[str, Tensor]:
        """A worker's parts of the state, as copies.

        Args:
            live: the state by key, whole.
            worker: which worker.
        """
        return {
            key: local_value(live[key].detach(), self.partition, tensor, worker)
            for tensor, key in self.graph.program.state
        }

    def batch_parts(self, leaves: Sequence[Tensor], worker: int) -> list[Tensor]:
        """A worker's parts of a batch, as copies.

        Args:
            leaves: the tensors of the batch, whole.
            worker: which worker.
        """
        pairs = zip(self.graph.program.batch, leaves, strict=True)
        return [local_value(leaf.detach(), self.partition, tensor, worker) for tensor, leaf in pairs]

    def whole_state(self, live: Mapping[str, Tensor], parts: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
        """The state by key; what no worker touches is as it was, and has no place in a worker's memory.

        Args:
            live: the state before, by key.
            parts: per worker, its parts of the state.

        Raises:
            StowageError: workers that should have the same have not.
        """
        found = {}
        for tensor, key in self.graph.program.state:
            if all(key not in part for part in parts):
                continue
            each = [
                part[key] if key in part else local_value(live[key].detach(), self.partition, tensor, worker)
                for worker, part in enumerate(parts)
            ]
            found[key] = whole_value(each, self.partition, tensor, live[key].shape)
        return found


def plan_workers(
    graph: Graph, partition: PartitionPlan, budget: str | int | None, steps: int | None, link: Link,
    progress: Progress, stop: CancelToken,
) -> WorkerPlans:  # fmt: skip
    """Make the graphs of all workers and plan them; workers that are alike share a plan.

    Args:
        graph: of the step.
        partition: how it is split.
        budget: of each worker; None for no swaps.
        steps: that are made; None if that is not known.
        link: what exchanges between the workers are expected to take.
        progress: of this.
        stop: checked periodically.

    Raises:
        StowageError: the partition is not for this graph or cannot be computed in parts, or a worker's plan does not
            fit its budget.
    """
    graphs = worker_graphs(graph, partition, progress.part(0.0, _GRAPHS))
    known: dict[str, SwapPlan] = {}
    plans = []
    progress = progress.part(_GRAPHS, 1.0)
    for worker, each in enumerate(graphs):
        name = fingerprint(each)
        if name not in known:
            here = progress.part(worker / len(graphs), (worker + 1) / len(graphs), f"planning worker {worker}")
            known[name] = plan_worker(each, budget, steps, link, len(graphs), here, stop)
        plans.append(known[name])
    here_graphs = [each.with_workspaces(dict(plan.workspaces)) for each, plan in zip(graphs, plans, strict=True)]
    return WorkerPlans(partition, graph, tuple(here_graphs), tuple(plans))


def worker_graphs(graph: Graph, partition: PartitionPlan, progress: Progress) -> list[Graph]:
    """Make the graphs of all workers.

    Args:
        graph: of the step.
        partition: how it is split.
        progress: of this.

    Raises:
        StowageError: the partition is not for this graph or cannot be computed in parts.
    """
    graphs = []
    for worker in range(partition.workers):
        here = progress.part(worker / partition.workers, (worker + 1) / partition.workers)
        graphs.append(worker_graph(partition, graph, worker, progress=here))  # reports, and so may be ended, op by op
    problems = validate_workers(partition, graph, graphs)
    if problems:
        raise StowageError(f"the workers of this partition do not fit together: {problems[0]}")
    return graphs


def plan_worker(
    graph: Graph, budget: str | int | None, steps: int | None, link: Link, workers_here: int,
    progress: Progress, stop: CancelToken,
) -> SwapPlan:  # fmt: skip
    """Plan one worker's graph, with op times and scratch memory as measured here.

    Args:
        graph: of the worker.
        budget: of the worker; None for no swaps.
        steps: that are made; None if that is not known.
        link: what exchanges between the workers are expected to take.
        workers_here: how many workers share the cores of this host.
        progress: of this.
        stop: checked periodically.

    Raises:
        StowageError: there is no plan within the budget.
    """
    with global_state_lock(stop.check):  # who communicates is set for the whole process
        before = communicate_by(Alone())
        try:
            ready = prepare(graph, graph.device, progress=False, stop=stop)
        finally:
            communicate_by(before)
    needed = {  # what collectives take is known; alone they take nothing
        op.id: (graph if call.target in COLLECTIVES else ready.graph).workspace_bytes(op.id)
        for op, call in zip(graph.ops, graph.program.calls, strict=True)
    }
    known = graph.with_workspaces({op: size for op, size in needed.items() if size})
    machine = replace(ready.machine, peer_link=link, communicates_beside=has_cores_to_spare(workers_here))
    communicates = [is_collective(op) for op in graph.ops]
    search = search_swaps(  # swaps alone: workers take no plans in which ops run again
        known, machine, "100%" if budget is None else budget, method="swap", time_limit=_PLANNING_SECONDS,
        seconds=np.where(communicates, op_seconds(graph, machine), ready.seconds),
    )  # fmt: skip
    plan = found_plan(search, steps, progress)
    problems = validate(plan, known)
    if problems:
        raise StowageError(f"the plan of a worker is not valid: {problems[0]}")
    return plan
