"""Random ops draw eager's numbers in whatever order a plan runs them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph
from planner.plan import validate
from planner.profile import prepare
from planner.run import run
from planner.run.executor.executor import reordered
from planner.step import TrainStep
from tests.run.plans import resident_plan
from tests.run.steps import branches, gpt


def backwards_order(graph: Graph) -> list[int]:
    """A legal order that runs the op captured last first, wherever two are free."""
    waiting = {op.id: set(graph.dependencies[op.id]) for op in graph.ops}
    order: list[int] = []
    while waiting:
        op = max(op for op, before in waiting.items() if not before)
        order.append(op)
        del waiting[op]
        for before in waiting.values():
            before.discard(op)
    return order


@pytest.mark.parametrize("stress", [False, True])
def test_branches_that_change_places_keep_their_dropout(stress: bool) -> None:
    step = branches()
    graph = prepare(step, "cpu").graph
    plan = resident_plan(graph, backwards_order(graph))
    assert validate(plan, graph) == []
    assert reordered(graph, plan)
    result = run(step, plan, steps=3, check=True, stress=stress).wait()
    assert result.mismatches == ()


def test_captured_order_needs_no_pins() -> None:
    graph = capture(gpt())
    assert not reordered(graph, resident_plan(graph))
    assert sum(op.random for op in graph.ops) > 3


class Weighted(nn.Module):
    """How many numbers a multinomial or Poisson draw takes depends on what it draws from."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rates = self.layer(x).exp()
        return (self.layer(x) * torch.poisson(rates.detach()) + nn.functional.dropout(x, 0.5)).sum()


class Sloped(nn.Module):
    """A slope is drawn for each value below 0."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        slopes = nn.functional.rrelu(self.layer(x), training=True)
        return (slopes + nn.functional.dropout(x, 0.5)).sum()


@pytest.mark.parametrize("build", [Weighted, Sloped])
def test_draws_that_depend_on_values_are_not_moved(build: type[nn.Module]) -> None:
    step = TrainStep(build, lambda: torch.randn(4, 8), loss=lambda model, batch: model(batch))
    assert run(step, steps=2, check=True).wait().mismatches == ()
    graph = prepare(step, "cpu").graph
    plan = resident_plan(graph, backwards_order(graph))
    assert reordered(graph, plan)
    with pytest.raises(StowageError, match="captured order"):
        run(step, plan).wait()
