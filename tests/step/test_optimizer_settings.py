"""What an optimizer was made or changed to be: equal to what PyTorch makes of it, or refused in a sentence."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from planner import StowageError
from planner.capture import capture
from planner.run import run, same_bits
from planner.step import SGD, TrainStep
from tests.capture.models import Perceptron, cross_entropy, vectors


def step_with(make):
    torch.manual_seed(0)
    model = Perceptron()
    return TrainStep(model, vectors(), loss=cross_entropy, optimizer=make(model.parameters()))


def by_hand(make, steps):
    torch.manual_seed(0)
    model = Perceptron()
    optimizer, batch = make(model.parameters()), vectors()
    for _ in range(steps):
        optimizer.zero_grad()
        cross_entropy(model, batch).backward()
        optimizer.step()
    return model


def sgd(parameters, **changed):
    optimizer = torch.optim.SGD(parameters, lr=0.1, foreach=False)
    optimizer.param_groups[0].update(changed)
    return optimizer


def adam(parameters, **changed):
    optimizer = torch.optim.Adam(parameters, lr=0.1, foreach=False)
    optimizer.param_groups[0].update(changed)
    return optimizer


def scheduled(parameters):
    optimizer = sgd(parameters)
    torch.optim.lr_scheduler.StepLR(optimizer, 1)
    return optimizer


EQUAL = {
    "a scheduler around step": scheduled,
    "NumPy's double": lambda p: adam(p, lr=np.float64(0.1), betas=(np.float64(0.9), np.float64(0.99))),
    "learning rate as a tensor": lambda p: torch.optim.AdamW(p, lr=torch.tensor(0.1), weight_decay=0.1, foreach=False),
    "whole numbers": lambda p: adam(p, betas=(0, 0), weight_decay=1),
    "what no optimizer reads": lambda p: sgd(p, name="head", lr_scale=2),
    "one group without decoupling": lambda p: torch.optim.AdamW(
        [{"params": list(p), "decoupled_weight_decay": False}], weight_decay=0.1, foreach=False
    ),
}


@pytest.mark.parametrize("make", EQUAL.values(), ids=EQUAL)
def test_what_is_taken_over_is_equal(make):
    step = step_with(make)
    run(step, steps=3).wait()
    expected = by_hand(make, 3)
    assert all(map(same_bits, step.model.parameters(), expected.parameters()))
    assert all(parameter.grad is None for parameter in step.model.parameters()), "a plan keeps no gradients"


def replaced(parameters):
    optimizer = sgd(parameters)
    once = optimizer.step
    optimizer.step = lambda: (once(), once())
    return optimizer


def counted_by_hand(parameters):
    optimizer = adam(list(parameters))
    for parameter in optimizer.param_groups[0]["params"]:
        zeros = torch.zeros_like(parameter)
        optimizer.state[parameter] = {"step": 3, "exp_avg": zeros, "exp_avg_sq": zeros.clone()}
    return optimizer


class Doubled(torch.optim.SGD):
    def step(self, closure=None):
        super().step()
        super().step()


REFUSED = {
    "step": (replaced, "the optimizer's step was replaced by another function"),
    "subclass": (lambda p: Doubled(p, lr=0.1), "the optimizer Doubled cannot be captured"),
    "betas": (
        lambda p: torch.optim.Adam(p, betas=(torch.tensor(0.9), torch.tensor(0.99)), foreach=False),
        r"param_groups\[0\]\['betas'\] holds a Tensor: give a plain number",
    ),
    "eps": (lambda p: adam(p, eps=torch.tensor(1e-8)), r"\['eps'\] holds a Tensor: give a plain number"),
    "momentum": (lambda p: sgd(p, momentum=torch.tensor(0.9)), r"\['momentum'\] holds a Tensor: give a plain number"),
    "weight decay": (
        lambda p: sgd(p, weight_decay=np.float32(0.1)),
        r"\['weight_decay'\] holds a float32: give a plain",
    ),
    "learning rate": (
        lambda p: sgd(p, lr=torch.tensor(0.1, requires_grad=True)),
        r"\['lr'\] is a Tensor: give a number",
    ),
    "another's settings": (lambda p: sgd(p, betas=(0.9, 0.9)), "has betas, which this kind of optimizer does not read"),
    "state by hand": (counted_by_hand, "keeps an int as step, where torch.optim keeps a tensor"),
}


@pytest.mark.parametrize(("make", "says"), REFUSED.values(), ids=REFUSED)
def test_what_is_not_taken_over_is_refused(make, says):
    with pytest.raises(StowageError, match=says):
        capture(step_with(make))


def test_a_setting_that_is_gone_is_named():
    step = step_with(sgd)
    del step.optimizer.param_groups[0]["weight_decay"]
    with pytest.raises(StowageError, match=r"param_groups\[0\] has no weight_decay: put it in"):
        capture(step)


class Scaled(nn.Module):
    """Its gradient is its buffer: all -0.0 at first."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(4, 8))
        self.register_buffer("scale", torch.tensor(-0.0))

    def forward(self, x):
        del x
        return self.weight * self.scale


def summed(model, batch):
    return model(batch).sum()


def dampened(step_by):
    """The weight after two steps with gradients of -0.0 and two others."""
    model = Scaled()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, dampening=0.5, foreach=False)
    step = TrainStep(model, torch.zeros(1), loss=summed, optimizer=optimizer)
    for number in range(4):
        if number == 2:
            model.scale.fill_(1.0)
        step_by(number, step, optimizer)
    return model.weight.detach()


def eagerly(number, step, optimizer):
    del number
    optimizer.zero_grad()
    summed(step.model, None).backward()
    optimizer.step()


WAYS = {
    "by runs": lambda number, step, optimizer: run(step, steps=1, check=True).wait(),
    "by eager steps": lambda number, step, optimizer: step.eager(),
    "by hand, then by runs": lambda number, step, optimizer: (
        eagerly(number, step, optimizer) if number < 2 else run(step, steps=1, check=True).wait()
    ),
}


@pytest.mark.parametrize("step_by", WAYS.values(), ids=WAYS)
def test_momentum_of_negative_zeros_is_momentum(step_by):
    assert same_bits(dampened(step_by), dampened(eagerly))


def test_a_copy_knows_that_momentum_has_not_begun():
    step = TrainStep(Scaled(), torch.zeros(1), loss=summed, optimizer=SGD(lr=0.1, momentum=0.9, dampening=0.5))
    step.materialize().model.scale.fill_(1.0)
    copy = step.clone()
    assert same_bits(step.eager(), copy.eager())
    assert all(same_bits(value, copy.state()[key]) for key, value in step.state().items())
