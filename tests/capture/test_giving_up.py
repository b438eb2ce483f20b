"""A capture can be given up at any time: whoever follows its progress raises, and all is as before."""

import pytest
import torch
from torch import nn

from planner.capture import capture
from planner.run import run, same_bits
from planner.step import TrainStep
from tests.capture.interpreter import differences


class Endless(torch.autograd.Function):
    """Its gradient is never done, unless it was told otherwise."""

    over = False

    @staticmethod
    def forward(_, x):
        return x * 2

    @staticmethod
    def backward(_, gradient):
        while not Endless.over:
            gradient = gradient + 1
        return gradient


class Model(nn.Module):
    def __init__(self, where):
        super().__init__()
        self.layer, self.where = nn.Linear(4, 4), where

    def forward(self, x):
        x = self.layer(x)
        while self.where == "forward" and not Endless.over:
            x = x + 1
        return Endless.apply(x) if self.where == "backward" else x


class Enough(BaseException):
    pass


@pytest.fixture(params=["forward", "backward"])
def step(request, monkeypatch):
    monkeypatch.setattr(Endless, "over", False)
    return TrainStep(Model(request.param), torch.randn(3, 4), loss=lambda model, x: model(x).square().mean())


def test_it_ends_within_the_step_and_leaves_model_and_generator_as_they_were(step):
    said = []

    def progress(share, doing):
        said.append((share, doing))
        if doing.endswith(" ops"):
            raise Enough

    before = {name: value.clone() for name, value in step.model.state_dict().items()}
    generator = torch.get_rng_state()
    with pytest.raises(Enough):
        capture(step, progress=progress)
    assert [share for share, _ in said] == sorted(share for share, _ in said)
    assert all(same_bits(value, before[name]) for name, value in step.model.state_dict().items())
    assert all(type(parameter) is nn.Parameter and parameter.grad is None for parameter in step.model.parameters())
    assert torch.equal(torch.get_rng_state(), generator)
    Endless.over = True
    assert differences(step) == []


def test_a_run_that_is_cancelled_in_a_capture_without_end_ends(step):
    running = run(step, budget="100%")
    while not running.progress.doing.endswith(" ops"):
        pass
    running.cancel()
    with pytest.raises(Exception, match="cancelled before it had made a step"):
        running.wait()
    Endless.over = True
    assert run(step, budget="100%", check=True).wait().mismatches == ()
