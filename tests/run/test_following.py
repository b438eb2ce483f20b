"""What a loop does to model and optimizer between two steps is followed, as eager PyTorch would."""

from __future__ import annotations

import copy
from collections.abc import Callable
from threading import Semaphore
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from planner.errors import StowageError
from planner.run import run, same_bits
from planner.step import TrainStep
from tests.run.test_batches import equal
from tests.run.test_handle import stowage_threads

Body = Callable[[int, nn.Sequential, torch.optim.Optimizer, dict[str, Any]], object]


def made() -> tuple[nn.Sequential, torch.optim.Optimizer, dict[str, Any]]:
    torch.manual_seed(1)
    layers = [nn.Linear(8, 8), nn.Dropout(0.5), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 8)]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    return model, optimizer, {"model": copy.deepcopy(model.state_dict()), "optimizer": None}


def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return (model(x) - 1).square().mean()


def clip(model: nn.Module) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.clamp_(-0.1, 0.1)


def clip_data(model: nn.Module) -> None:
    for parameter in model.parameters():
        parameter.data.clamp_(-0.1, 0.1)


def go_back(number: int, model: nn.Module, optimizer: torch.optim.Optimizer, kept: dict[str, Any]) -> None:
    if number == 0:
        kept.update(model=copy.deepcopy(model.state_dict()), optimizer=copy.deepcopy(optimizer.state_dict()))
    if number == 2:
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])


def replace_layer(model: nn.Sequential, optimizer: torch.optim.Optimizer) -> None:
    torch.manual_seed(7)
    model.append(nn.Linear(8, 8))
    optimizer.add_param_group({"params": list(model[-1].parameters())})


def reset_statistics(model: nn.Sequential) -> None:
    norm = model[2]
    assert isinstance(norm, nn.BatchNorm1d)
    norm.reset_running_stats()


def halve(model: nn.Sequential) -> None:
    vector_to_parameters(0.5 * parameters_to_vector(model.parameters()), model.parameters())


def at(step: int, what: Callable[[nn.Sequential, torch.optim.Optimizer], object]) -> Body:
    return lambda number, model, optimizer, _: what(model, optimizer) if number == step else None


BODIES: dict[str, Body] = {
    "clipped weights": lambda number, model, optimizer, _: clip(model),
    "clipped by .data": lambda number, model, optimizer, _: clip_data(model),
    "clipped in NumPy's memory": at(1, lambda model, _: model[0].weight.detach().numpy().clip(-0.1, 0.1)),
    "converted": at(1, lambda model, _: model.double().float()),
    "from a vector": at(1, lambda model, _: halve(model)),
    "gone back": go_back,
    "only the optimizer's state": at(1, lambda _, optimizer: optimizer.load_state_dict(optimizer.state_dict())),
    "a moment": at(1, lambda model, optimizer: optimizer.state[model[0].weight]["exp_avg"].zero_()),
    "a buffer": at(1, lambda model, _: reset_statistics(model)),
    "frozen": at(1, lambda model, _: model[0].requires_grad_(False)),
    "frozen and unfrozen": lambda number, model, *_: model[0].requires_grad_(number % 2 == 0),
    "evaluation mode": at(1, lambda model, _: model.eval()),
    "a dropout's probability": at(1, lambda model, _: setattr(model[1], "p", 0.1)),
    "a layer more": at(1, replace_layer),
    "weight decay": at(1, lambda _, optimizer: optimizer.param_groups[0].update(weight_decay=0.1)),
    "the learning rate": at(1, lambda _, optimizer: optimizer.param_groups[0].update(lr=0.5)),
    "draws": lambda *_: torch.rand(3),
}  # fmt: skip


@pytest.mark.parametrize(("scheduled", "check"), [(False, True), (True, False)], ids=["checked", "scheduled"])
@pytest.mark.parametrize("name", BODIES)
def test_what_the_loop_does_between_two_steps_is_what_it_does_in_eager(name: str, scheduled: bool, check: bool) -> None:
    def schedule(optimizer: torch.optim.Optimizer) -> Any:
        return torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5) if scheduled else None

    body, batches = BODIES[name], [torch.randn(6, 8) for _ in range(4)]
    twin, theirs, kept = made()
    scheduler, expected = schedule(theirs), []
    torch.manual_seed(3)
    for number, batch in enumerate(batches):
        theirs.zero_grad()
        value = loss(twin, batch)
        value.backward()
        theirs.step()
        if scheduler is not None:
            scheduler.step()
        expected.append(float(value.detach()))
        body(number, twin, theirs, kept)

    model, ours, kept = made()
    step = TrainStep(model, batches[0], loss=loss, optimizer=ours, scheduler=schedule(ours))
    running = run(step, steps=0, check=check)
    running.wait()
    torch.manual_seed(3)
    losses = []
    for number, value in enumerate(running.steps(batches)):
        losses.append(value)
        body(number, model, ours, kept)
    assert losses == expected
    assert equal(dict(model.state_dict()), dict(twin.state_dict()))
    assert equal(ours.state_dict(), theirs.state_dict())
    assert running.result is not None
    assert running.result.mismatches == ()
    assert stowage_threads() == []


@pytest.mark.parametrize("name", ["frozen", "evaluation mode", "a layer more", "weight decay"])
def test_what_has_changed_before_the_loop_is_followed_or_with_a_plan_refused(name: str) -> None:
    def changed(optimizer: torch.optim.Optimizer, model: nn.Sequential) -> None:
        BODIES[name](1, model, optimizer, {})

    batch = torch.randn(6, 8)
    twin, theirs, _ = made()
    changed(theirs, twin)
    torch.manual_seed(3)
    value = loss(twin, batch)
    value.backward()
    theirs.step()

    model, ours, _ = made()
    step = TrainStep(model, batch, loss=loss, optimizer=ours)
    running = run(step, steps=0, check=True)
    plan = running.wait().plan
    assert plan is not None
    planned = run(step, plan, steps=0)
    planned.wait()
    changed(ours, model)
    with pytest.raises(StowageError, match=r"its graph is another one since .* is (now|new)"):
        list(planned.steps([batch]))
    torch.manual_seed(3)
    assert list(running.steps([batch])) == [float(value.detach())]
    assert all(same_bits(a, b) for a, b in zip(model.parameters(), twin.parameters(), strict=True))


def test_a_hook_registered_in_the_loop_is_refused() -> None:
    model, optimizer, _ = made()
    batch = torch.randn(6, 8)
    running = run(TrainStep(model, batch, loss=loss, optimizer=optimizer), steps=0)
    steps = running.steps([batch] * 3)
    next(steps)
    model[0].weight.register_hook(lambda gradient: 2 * gradient)
    with pytest.raises(StowageError, match=r"parameter 0\.weight has a hook"):
        next(steps)
    assert len(running.losses) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, LookupError])
def test_an_end_within_the_check_leaves_weights_and_random_numbers_at_the_same_step(error: type[BaseException]) -> None:
    calls = Semaphore(3)  # the first is the capture, the others are eager PyTorch's steps beside the run's

    def interrupted(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        if not calls.acquire(blocking=False):
            raise error
        return loss(model, x)

    model, optimizer, _ = made()
    batch = torch.randn(6, 8)
    running = run(TrainStep(model, batch, loss=interrupted, optimizer=optimizer), steps=0, check=True, recheck=False)
    running.wait()
    torch.manual_seed(3)
    with pytest.raises(error):
        list(running.steps([batch] * 5))
    drawn = torch.get_rng_state()
    twin, theirs, _ = made()
    torch.manual_seed(3)
    for _ in range(3):
        theirs.zero_grad()
        loss(twin, batch).backward()
        theirs.step()
    assert equal(dict(model.state_dict()), dict(twin.state_dict()))
    assert torch.equal(drawn, torch.get_rng_state())
