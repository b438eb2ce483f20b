"""A model set up otherwise between two runs is run as it is set up now."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from torch import nn

import planner
from planner.capture import capture
from planner.errors import StowageError
from planner.machine import op_seconds
from planner.profile import machine
from planner.run import run, same_bits
from planner.step import Adam, InferenceStep, TrainStep
from planner.swap import plan_swaps


def net() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))


def live(settings: dict[str, Any], first: bool = False) -> tuple[nn.Sequential, TrainStep]:
    """With a live optimizer, of the first layer alone if that is asked for."""
    model = net()
    parameters = (model[0] if first else model).parameters()
    optimizer = (torch.optim.SGD if "momentum" in settings else torch.optim.Adam)(parameters, **settings)
    loss = lambda model, x: model(x).square().mean()  # noqa: E731
    return model, TrainStep(model, torch.randn(16, 8), loss=loss, optimizer=optimizer)


def eager(model: nn.Module, step: TrainStep, steps: int) -> None:
    """An ordinary loop."""
    optimizer = step.optimizer
    assert isinstance(optimizer, torch.optim.Optimizer)
    assert step.loss is not None
    for _ in range(steps):
        model.zero_grad()
        step.loss(model, step.batch).backward()
        optimizer.step()


def same(ours: nn.Module, theirs: nn.Module) -> bool:
    return all(same_bits(a, b) for a, b in zip(ours.parameters(), theirs.parameters(), strict=True))


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


def attribute(place: int, name: str, value: object) -> Callable[[nn.Sequential], object]:
    return lambda model: setattr(model[place], name, value)


CHANGES["the dropout's probability"] = attribute(1, "p", 0.9), "1.p is now 0.9"
CHANGES["the norm's momentum"] = attribute(2, "momentum", 0.5), "2.momentum is now 0.5"
CHANGES["the norm's eps"] = attribute(2, "eps", 0.5), "2.eps is now 0.5"


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


def test_two_parameters_that_have_come_to_share_memory_are_seen() -> None:
    model, step = made()
    model.append(nn.Linear(1, 8)).append(nn.Linear(8, 1))
    run(step, budget="100%", steps=1).wait()
    model[5].weight.data = model[3].weight.data
    with pytest.raises(StowageError, match="share memory"):
        run(step, budget="100%", steps=1).wait()


SGD: dict[str, Any] = {"lr": 0.1, "momentum": 0.0, "weight_decay": 0.0}
ADAM: dict[str, Any] = {"lr": 0.01}


def assert_followed(
    kind: dict[str, Any], change: Callable[[nn.Sequential, torch.optim.Optimizer], object], steps: int = 1, **more: Any
) -> None:
    """What is changed after some steps counts in two more, as in an ordinary loop."""
    pairs = live(kind, **more), live(kind, **more)
    (ours, step), (theirs, other) = pairs
    run(step, budget="100%", steps=steps).wait()
    eager(theirs, other, steps)
    for model, each in pairs:
        assert isinstance(each.optimizer, torch.optim.Optimizer)
        change(model, each.optimizer)
    assert run(step, budget="100%", steps=2, check=True).wait().mismatches == ()
    eager(theirs, other, 2)
    assert same(ours, theirs)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (SGD, {"momentum": 0.9}),
        (SGD, {"momentum": 0.9, "dampening": 0.3}),
        (SGD, {"weight_decay": 0.1}),
        (SGD, {"maximize": True}),
        (SGD | {"momentum": 0.9}, {"nesterov": True}),
        (SGD | {"momentum": 0.9}, {"momentum": 0.0}),
        (ADAM, {"weight_decay": 0.1}),
        (ADAM, {"maximize": True}),
        (ADAM | {"amsgrad": True}, {"amsgrad": False}),
        (ADAM, {"betas": (0.5, 0.8)}),
    ],
)
def test_what_was_changed_about_an_optimizer_is_followed(before: dict[str, Any], now: dict[str, Any]) -> None:
    assert_followed(before, lambda _, optimizer: optimizer.param_groups[0].update(now))


def test_a_group_added_after_a_run_is_trained() -> None:
    def add(model: nn.Sequential, optimizer: torch.optim.Optimizer) -> None:
        optimizer.add_param_group({"params": list(model[2:].parameters()), "lr": 0.05})

    assert_followed(ADAM, add, first=True)


def test_counts_of_steps_that_were_loaded_between_two_runs_are_followed() -> None:
    def load(_: nn.Sequential, optimizer: torch.optim.Optimizer) -> None:
        state = optimizer.state_dict()
        state["state"][0]["step"] = torch.tensor(40.0)
        optimizer.load_state_dict(state)

    assert_followed(ADAM, load, steps=3)


def test_amsgrad_cannot_be_switched_on_later() -> None:
    _, step = live(ADAM)
    run(step, budget="100%", steps=1).wait()
    assert isinstance(step.optimizer, torch.optim.Optimizer)
    step.optimizer.param_groups[0]["amsgrad"] = True
    with pytest.raises(StowageError, match="amsgrad was switched on after the first step"):
        run(step, budget="100%", steps=1).wait()


@pytest.mark.parametrize("spec", [planner.SGD(lr=0.1, momentum=0.9), planner.Adam(lr=0.1)])
def test_what_is_unfrozen_after_a_run_is_trained(spec: planner.SGD | planner.Adam) -> None:
    """Held against PyTorch's optimizer of all parameters, which leaves out those without a gradient."""
    model, twin = net(), net()
    loss = lambda model, x: model(x).square().mean()  # noqa: E731
    x = torch.randn(16, 8)
    step = TrainStep(model, x, loss=loss, optimizer=spec)
    theirs = spec.build(twin.parameters())
    for frozen in (True, False):
        for each in (model, twin):
            each[0].requires_grad_(not frozen)
        assert run(step, budget="100%", steps=2, check=True).wait().mismatches == ()
        for _ in range(2):
            theirs.zero_grad()
            loss(twin, x).backward()
            theirs.step()
    assert same(model, twin)
    optimizer = step.materialize().optimizer
    assert optimizer is not None
    mine, expected = optimizer.state_dict()["state"], theirs.state_dict()["state"]
    assert mine.keys() == expected.keys()
    assert all(same_bits(value, mine[place][key]) for place in expected for key, value in expected[place].items())


@pytest.mark.parametrize("first", [False, True])
def test_a_run_is_under_the_autocast_of_its_beginning(first: bool) -> None:
    def around(on: bool) -> AbstractContextManager[object]:
        return torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False) if on else nullcontext()

    _, step = made()
    with around(first):
        capture(step)
    with around(not first):
        assert run(step, budget="100%", steps=2, check=True).wait().mismatches == ()


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
