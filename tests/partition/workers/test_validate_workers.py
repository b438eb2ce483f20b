"""Worker graphs that do not fit together are found out, each in a sentence."""

from dataclasses import replace

import pytest

from planner import search_swaps
from planner.errors import StowageError
from planner.partition import optimize, validate_workers, worker_graph
from planner.partition.plan import PartitionPlan
from planner.plan import validate
from planner.profile import machine
from tests.effort import combinations
from tests.partition.workers.conftest import ADAM, CONV, GPT, RNN


def graphs_of(coarse, mesh):
    plan = PartitionPlan.of(optimize(coarse, mesh))
    return plan, [worker_graph(plan, coarse.graph, worker) for worker in range(plan.workers)]


@pytest.mark.parametrize(("step", "mesh"), combinations([ADAM, GPT, RNN, CONV], [(3,), (2, 2), (2, 3)]))
def test_what_is_made_fits_together(coarse_graphs, step, mesh):
    coarse = coarse_graphs[step]
    plan, workers = graphs_of(coarse, mesh)
    assert validate_workers(plan, coarse.graph, workers) == []


def test_swaps_within_a_worker_keep_the_order_of_collectives(coarse_graphs):
    coarse = coarse_graphs[GPT]
    plan, workers = graphs_of(coarse, (2, 2))
    device = machine("v100-16gb")
    swaps = [search_swaps(each, device, "70%", time_limit=1.0).wait(progress=False) for each in workers]
    assert all(swap.swap_outs and swap.swap_ins for swap in swaps)
    assert all(validate(swap, each) == [] for swap, each in zip(swaps, workers, strict=True))
    assert validate_workers(plan, coarse.graph, workers, [swap.order for swap in swaps]) == []


def changed(graph, kernel, change, number=0):
    """A graph of which one collective has other arguments."""
    calls = list(graph.program.calls)
    places = [place for place, call in enumerate(calls) if str(call.target).startswith(f"stowage.{kernel}")]
    call = calls[places[number]]
    calls[places[number]] = replace(call, args=change(call.args))
    return replace(graph, program=replace(graph.program, calls=tuple(calls)))


def swapped(graph):
    """An order in which a worker comes to its first two collectives the other way round."""
    order = list(range(len(graph.ops)))
    first, second = [n for n, call in enumerate(graph.program.calls) if str(call.target).startswith("stowage.")][:2]
    order[first], order[second] = order[second], order[first]
    return order


PLANTED = {
    "another group": ("all_gather", lambda args: (*args[:-1], "1"), "wait for others that never come"),
    "another part": (
        "all_gather",
        lambda args: (args[0], args[1], tuple(reversed((args[2][0] + 1, *args[2][1:]))), args[3]),
        "the parts are not those that the others gather",
    ),
    "another rank": (
        "reduce_scatter",
        lambda args: (*args[:3], 1 - args[3], args[4]),
        "the parts are not those that the others keep",
    ),
    "another reduction": ("all_reduce", lambda args: (*args[:2], "max", *args[3:]), "in different ways"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_worker_that_means_something_else_is_found_out(coarse_graphs, name):
    kernel, change, sentence = PLANTED[name]
    coarse = coarse_graphs[CONV]
    plan, workers = graphs_of(coarse, (2,) if name != "another group" else (2, 2))
    workers[0] = changed(workers[0], kernel, change)
    problems = validate_workers(plan, coarse.graph, workers)
    assert any(sentence in problem for problem in problems), problems


def test_a_worker_that_comes_to_collectives_in_another_order_is_found_out(coarse_graphs):
    coarse = coarse_graphs[GPT]
    plan, workers = graphs_of(coarse, (2,))
    orders = [swapped(workers[0]), range(len(workers[1].ops))]
    assert validate_workers(plan, coarse.graph, workers, orders)


def test_workers_of_another_number_or_of_other_parts_are_found_out(coarse_graphs):
    coarse = coarse_graphs[ADAM]
    plan, workers = graphs_of(coarse, (3,))
    with pytest.raises(StowageError, match="the partition is for 3 workers, and 2 are given"):
        validate_workers(plan, coarse.graph, workers[:2])
    same = [workers[0]] * 3  # uneven parts: the first worker's is the smallest
    assert any("the workers' parts of" in problem for problem in validate_workers(plan, coarse.graph, same))
