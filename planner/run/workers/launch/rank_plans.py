"""The plans of a launch: every rank makes the graphs of all workers and plans its own, and they are held together."""

from __future__ import annotations

import json

from planner.cancel import CancelToken
from planner.errors import StowageError
from planner.graph import Graph, fingerprint
from planner.partition import PartitionPlan, validate_workers
from planner.plan import plan_from_json, plan_to_json
from planner.progress import Progress
from planner.run.workers.communication.transports import GLOO, exchange_link
from planner.run.workers.launch.agreement import Fact, digest_of_text, refuse_differences
from planner.run.workers.launch.ranks import Ranks
from planner.run.workers.plans.worker_plans import WorkerPlans, plan_worker, worker_graphs

_GRAPHS = 0.25  # share of the work
_SAME_STEP = "build the same model, loss, batch shapes and optimizer on all ranks"


def plan_ranks(
    ranks: Ranks, local_ranks: int, graph: Graph, partition: PartitionPlan, budget: str | int | None,
    steps: int | None, progress: Progress, stop: CancelToken,
) -> WorkerPlans:  # fmt: skip
    """Make the graphs of all workers and the plan of this rank's, and learn those of the others.

    Each rank measures its ops and plans on its own host, so plans of isomorphic workers may differ; that they come to
    the same collectives in the same order is proven for these plans.

    Args:
        ranks: all of them.
        local_ranks: how many of them are on this host.
        graph: of the whole step, captured here.
        partition: how it is split, for as many workers as there are ranks.
        budget: of this rank's worker; None for no swaps.
        steps: that are made; None if that is not known.
        progress: of this.
        stop: checked periodically.

    Raises:
        StowageError: a rank has captured another step, the partition is not for it or cannot be computed in parts, or
            the plan does not fit its budget.
    """
    keys = json.dumps([key for _, key in graph.program.state])
    refuse_differences(
        ranks,
        [Fact("step", fingerprint(graph), _SAME_STEP), Fact("names of the state", digest_of_text(keys), _SAME_STEP)],
    )
    graphs = worker_graphs(graph, partition, progress.part(0.0, _GRAPHS))
    names = [Fact(f"graph of worker {worker}", fingerprint(each), _SAME_STEP) for worker, each in enumerate(graphs)]
    refuse_differences(ranks, names)
    work = progress.part(_GRAPHS, 1.0, f"planning worker {ranks.rank}")
    own = plan_worker(graphs[ranks.rank], budget, steps, exchange_link(GLOO), local_ranks, work, stop)
    plans = [plan_from_json(text) for text in ranks.share(plan_to_json(own))]
    problems = validate_workers(partition, graph, graphs, [plan.order for plan in plans])
    if problems:
        raise StowageError(f"the plans of these workers do not fit together: {problems[0]}")
    here = [each.with_workspaces(dict(plan.workspaces)) for each, plan in zip(graphs, plans, strict=True)]
    return WorkerPlans(partition, graph, tuple(here), tuple(plans))
