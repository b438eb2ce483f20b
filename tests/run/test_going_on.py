"""A run goes on where the last one ended: in the model, in the optimizer and in the learning rate's schedule."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from planner.run import run, same_bits
from planner.step import TrainStep


def scheduled() -> TrainStep:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    batch = torch.randn(4, 8)
    return TrainStep(
        model, batch, loss=lambda module, x: module(x).square().mean(), optimizer=optimizer, scheduler=scheduler
    )


def test_two_runs_are_one_long_run_of_eager() -> None:
    step = scheduled()
    reference = step.clone()
    run(step, budget="100%", steps=2).wait()
    result = run(step, budget="100%", steps=2, check=True).wait()
    losses = [float(reference.eager().detach()) for _ in range(4)]
    assert result.mismatches == ()
    assert list(result.losses) == losses[2:]
    expected = reference.state()
    assert all(same_bits(value, expected[key]) for key, value in step.state().items())


class PartlyUsed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.used(x)
        return result


@pytest.mark.parametrize("kind", ["sgd", "momentum", "adam"])
def test_the_optimizer_keeps_state_of_the_parameters_that_eager_keeps_it_of(kind: str) -> None:
    def optimizer(model: nn.Module) -> torch.optim.Optimizer:
        if kind == "adam":
            return torch.optim.Adam(model.parameters())
        return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9 if kind == "momentum" else 0.0)

    torch.manual_seed(0)
    model, twin = PartlyUsed(), PartlyUsed()
    twin.load_state_dict(model.state_dict())
    batch = torch.randn(3, 4)
    ours, theirs = optimizer(model), optimizer(twin)
    step = TrainStep(model, batch, loss=lambda module, x: module(x).square().mean(), optimizer=ours)
    for _ in range(2):
        run(step, budget="100%", steps=2).wait()
    for _ in range(4):
        theirs.zero_grad()
        twin(batch).square().mean().backward()
        theirs.step()
    mine, expected = ours.state_dict()["state"], theirs.state_dict()["state"]
    assert {number: set(state) for number, state in mine.items()} == {n: set(state) for n, state in expected.items()}
    for number, state in expected.items():
        assert all(value is None or same_bits(mine[number][key], value) for key, value in state.items())
