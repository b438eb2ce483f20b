"""A run goes on where the last one ended: in the model, in the optimizer and in the learning rate's schedule."""

from __future__ import annotations

import torch
from torch import nn

from planner.capture import TrainStep
from planner.run import run, same_bits


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
    run(step, budget="100%", steps=2)
    result = run(step, budget="100%", steps=2, check=True)
    losses = [float(reference.eager().detach()) for _ in range(4)]
    assert result.mismatches == ()
    assert list(result.losses) == losses[2:]
    expected = reference.state()
    assert all(same_bits(value, expected[key]) for key, value in step.state().items())
