"""When a worker communicates, against its graph and its plan."""

from planner import zoo
from planner.capture import capture
from planner.partition import search_partition, worker_graph
from planner.profile import machine
from planner.swap import plan_swaps
from tests.widgets.steps import by_hand, plan_by_hand
from widgets.info import get_collectives


def test_every_collective_of_a_worker_has_its_time() -> None:
    graph = capture(zoo.load("mlp:layers=1,hidden=16"))
    parts = search_partition(graph, 2, time_limit=None).wait(progress=False)
    own = worker_graph(parts, graph, 1, progress=False)
    plan = plan_swaps(own, machine("v100-16gb"), "100%")
    found = get_collectives(own, plan)
    wanted = {"all_gather", "all_reduce", "reduce_scatter", "all_to_all"}
    named = [op for op in plan.order if own.ops[op].target.split(".")[1] in wanted]
    assert sorted(found.op.tolist()) == sorted(named) != []
    assert (found.spans[:, 1] > found.spans[:, 0]).all()
    assert (found.spans[1:, 0] >= found.spans[:-1, 1] - 1e-12).all()  # one after another
    assert found.spans[-1, 1] <= plan.predicted.seconds
    assert found.summary.startswith(f"{len(named)} collective")


def test_a_whole_step_has_none() -> None:
    graph = by_hand()
    found = get_collectives(graph, plan_by_hand(graph))
    assert (len(found.op), found.summary) == (0, "")
