"""A model set up otherwise between two runs is run as it is set up now."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from planner.capture import Adam, InferenceStep, TrainStep, capture
from planner.errors import StowageError
from planner.machine import machine, op_seconds
from planner.run import run
from planner.swap import plan_swaps


def made() -> tuple[nn.Sequential, TrainStep]:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.BatchNorm1d(8), nn.Linear(8, 1))
    loss = lambda model, x: model(x).square().mean()  # noqa: E731
    return model, TrainStep(model, torch.randn(16, 8), loss=loss, optimizer=Adam(1e-2))


CHANGES: dict[str, tuple[Callable[[nn.Sequential], object], str]] = {
    "evaluation mode": (lambda model: model.eval(), "model.training is now False"),
    "one module in evaluation mode": (lambda model: model[1].eval(), "1.training is now False"),
    "a parameter frozen": (lambda model: model[0].weight.requires_grad_(False), "0.weight.requires_grad is now False"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_run_follows_what_was_changed(name: str) -> None:
    model, step = made()
    run(step, budget="100%", steps=1).wait()
    CHANGES[name][0](model)
    assert run(step, budget="100%", steps=2, check=True).wait().mismatches == ()
    model.train().requires_grad_(True)
    assert run(step, budget="100%", steps=2, check=True).wait().mismatches == ()


@pytest.mark.parametrize("name", CHANGES)
def test_a_plan_from_before_a_change_is_refused_and_the_change_is_named(name: str) -> None:
    model, step = made()
    here = machine("laptop")
    plan = plan_swaps(capture(step), here, "100%", seconds=op_seconds(capture(step), here))
    change, words = CHANGES[name]
    change(model)
    with pytest.raises(StowageError, match=words):
        run(step, plan).wait()


def test_a_parameter_in_the_place_of_another_is_refused() -> None:
    model, step = made()
    run(step, budget="100%", steps=1).wait()
    model[0].weight = nn.Parameter(torch.randn(8, 8))
    with pytest.raises(StowageError, match="TrainStep, anew"):
        run(step, budget="100%", steps=1).wait()


def test_nothing_is_captured_again_where_nothing_has_changed() -> None:
    _, step = made()
    graph = capture(step)
    run(step, budget="100%", steps=1, check=True).wait()
    assert capture(step) is graph
    model = nn.Linear(4, 4)
    inference = InferenceStep(model, torch.ones(2, 4))
    graph = capture(inference)
    model.eval()  # it infers in evaluation mode in any case
    assert capture(inference) is graph


def test_a_model_made_by_a_function_is_captured_once() -> None:
    step = TrainStep(lambda: nn.Linear(4, 3), lambda: torch.ones(2, 4),
                     loss=lambda model, x: model(x).sum())  # fmt: skip
    graph = capture(step)
    step.materialize()
    assert capture(step) is graph
