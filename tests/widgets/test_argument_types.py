"""A model, or anything else that is no graph, plan or result, is refused in a sentence by every figure."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from planner.errors import StowageError
from tests.widgets.steps import by_hand, plan_by_hand
from widgets import figures


def test_a_figure_of_something_else_says_in_a_sentence_what_to_pass_instead() -> None:
    model, graph = torch.nn.Linear(1, 1), by_hand()
    plan = plan_by_hand(graph)
    no_graph = r"^graph must be a Graph, got a Linear; pass the graph that planner\.capture\(step\) returns$"
    no_plan = r"^plan must be a SwapPlan, got a Linear; pass the plan that planner\.plan_swaps\("
    drawn: dict[Callable[..., Any], list[tuple[Any, ...]]] = {
        figures.module_graph: [(model,), (model, 20)],
        figures.dataflow: [(model,)],
        figures.memory_by_kind: [(model,), (model, plan)],
        figures.holders: [(model,), (model, plan)],
        figures.peak_icicle: [(model,), (model, plan)],
        figures.address_map: [(model, plan), (model, model)],
        figures.streams: [(model, plan), (model, model)],
        figures.pareto: [(model, [])],
        figures.compare_methods: [(model, {})],
        figures.partition_splits: [(model, model)],
        figures.level_bytes: [(model, model)],
        figures.worker_memory: [(model, model)],
        figures.tensor_blocks: [(model, model, "x")],
    }
    for figure, calls in drawn.items():
        for arguments in calls:
            with pytest.raises(StowageError, match=no_graph):
                figure(*arguments)
    for figure in (figures.memory_by_kind, figures.holders, figures.peak_icicle, figures.address_map, figures.streams):
        with pytest.raises(StowageError, match=no_plan):
            figure(graph, model)
    with pytest.raises(StowageError, match=no_plan):
        figures.module_graph(graph, plan=model)
    with pytest.raises(StowageError, match=r"^graph must be a Graph, got a SwapPlan; pass the graph that"):
        figures.streams(plan, graph)


@pytest.mark.parametrize(
    ("draw", "sentence"),
    [
        (figures.live_memory, "run must be a Run, got a Linear; pass the run that planner.run(step, plan) returns"),
        (
            figures.snapshot_map,
            "snapshot must be a MemorySnapshot, got a Linear; pass what planner.snapshot.read(",
        ),
        (figures.compare_speeds, "reached must be a dict, got a Linear; pass the speeds by model and way"),
        (figures.compare_peaks, 'peaks are compared by name: give a dict such as {"Adam": step, "SGD": another}'),
        (lambda it: figures.pareto(by_hand(), it), "points must be a list, got a Linear; pass what planner.swap.sweep"),
        (lambda it: figures.compare_methods(by_hand(), it), "sweeps must be a dict, got a Linear; pass a dict such as"),
        (
            lambda it: figures.predicted_and_measured(it, it),
            "plan must be a SwapPlan, got a Linear; pass the plan",
        ),
        (
            lambda it: figures.predicted_and_measured(plan_by_hand(by_hand()), it),
            "result must be a RunResult, got a Linear; pass the result that run.wait() returns",
        ),
    ],
)
def test_a_figure_of_something_else_than_a_graph_says_what_it_takes(draw: Callable[[Any], Any], sentence: str) -> None:
    with pytest.raises(StowageError, match=f"^{re.escape(sentence)}"):
        draw(torch.nn.Linear(1, 1))
