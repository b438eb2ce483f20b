"""A model, or anything else that is no plan or result, is refused in a sentence by every figure."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from planner.errors import StowageError
from planner.graph import Graph
from tests.widgets.steps import by_hand, plan_by_hand
from widgets import figures, info

NO_PLAN = "a Linear is not a plan of swaps; pass what planner.plan_swaps(graph, machine, budget) returns"


@pytest.mark.parametrize(
    "draw", [figures.memory_by_kind, figures.holders, figures.peak_icicle, figures.address_map, figures.streams]
)
def test_a_figure_of_a_plan_says_where_plans_come_from(draw: Callable[[Graph, Any], Any]) -> None:
    with pytest.raises(StowageError, match=f"^{re.escape(NO_PLAN)}$"):
        draw(by_hand(), torch.nn.Linear(1, 1))


@pytest.mark.parametrize(
    ("draw", "sentence"),
    [
        (lambda it: figures.module_graph(by_hand(), it), NO_PLAN),
        (figures.live_memory, "a Linear is not a run; pass what planner.run(step, plan) returns"),
        (
            figures.snapshot_map,
            "a Linear is not a snapshot; pass what planner.snapshot.read(path) returns",
        ),
        (figures.compare_speeds, "a Linear is not a dict; pass the speeds by model and way"),
        (figures.compare_peaks, 'peaks are compared by name: give a dict such as {"Adam": step, "SGD": another}'),
        (
            lambda it: figures.pareto(by_hand(), it),
            "a Linear is not a list of points; pass what planner.swap.sweep(graph, machine) returns",
        ),
        (
            lambda it: figures.compare_methods(by_hand(), it),
            'a Linear is not a dict; pass what planner.swap.sweep returns by method, as in {"joint": points}',
        ),
        (
            lambda it: figures.predicted_and_measured(it, it),
            NO_PLAN,
        ),
        (
            lambda it: figures.predicted_and_measured(plan_by_hand(by_hand()), it),
            "a Linear is not a result of a run; pass what run.wait() returns",
        ),
    ],
)
def test_a_figure_of_something_else_says_what_to_pass_instead(draw: Callable[[Any], Any], sentence: str) -> None:
    with pytest.raises(StowageError, match=f"^{re.escape(sentence)}$"):
        draw(torch.nn.Linear(1, 1))


OF_A_GRAPH = [
    name
    for name, one in vars(info).items()
    if name.startswith("get_") and next(iter(inspect.signature(one).parameters)) == "graph"
]


@pytest.mark.parametrize("name", OF_A_GRAPH)
def test_what_is_no_graph_is_refused(name: str) -> None:
    function = getattr(info, name)
    others = [one for one in list(inspect.signature(function).parameters.values())[1:] if one.default is one.empty]
    for given, said in ((None, "None"), (3, "an int")):
        with pytest.raises(StowageError, match=f"^{said} is not a graph; pass what planner.capture"):
            function(given, *(None for _ in others))
