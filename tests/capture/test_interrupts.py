"""Ctrl-C while a step is captured: at once in the user's code, never inside PyTorch's, which C++ may have called."""

import heapq
import operator
import signal
import sys
from functools import partial
from queue import SimpleQueue

import pytest
import torch
from torch import nn

from planner.capture import capture
from planner.run import same_bits
from planner.step import TrainStep
from tests.capture.interpreter import differences

press = partial(signal.raise_signal, signal.SIGINT)


def in_pytorch(*acts):
    """Call functions written in C from a loop of PyTorch's, so that its code is what they interrupt."""
    nn.ModuleList(map(operator.call, acts))


class Log(SimpleQueue):
    """What was done, which a capture does not set back as it does a list."""

    def read(self):
        return [self.get_nowait() for _ in range(self.qsize())]


class Acting(torch.autograd.Function):
    act = staticmethod(lambda _: None)

    @staticmethod
    def forward(_, x):
        return x * 2

    @staticmethod
    def backward(_, gradient):
        Acting.act(gradient)
        return gradient * 2


class Model(nn.Module):
    """Acts in the middle of its forward or backward pass."""

    def __init__(self, where):
        super().__init__()
        self.layer, self.where = nn.Linear(4, 4), where

    def forward(self, x):
        x = self.layer(x)
        if self.where == "forward":
            Acting.act(x)
        return Acting.apply(x)


def acting(where):
    return TrainStep(Model(where), torch.randn(3, 4), loss=lambda model, x: model(x).square().mean())


@pytest.fixture(params=["forward", "backward"])
def interrupted(request, monkeypatch):
    """Capture a step that acts, and check that it is interrupted and leaves everything as before."""

    def check(act):
        monkeypatch.setattr(Acting, "act", act)
        step = acting(request.param)
        before = {name: value.clone() for name, value in step.model.state_dict().items()}
        profiler = sys.getprofile()
        with pytest.raises(KeyboardInterrupt):
            capture(step, progress=False)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert sys.getprofile() is profiler
        assert all(same_bits(value, before[name]) for name, value in step.model.state_dict().items())
        monkeypatch.setattr(Acting, "act", lambda _: None)
        assert differences(step) == []

    return check


def test_it_is_raised_at_once_in_the_users_code(interrupted):
    done = Log()

    def act(_):
        press()
        done.put("more")

    interrupted(act)
    assert done.read() == []


def test_it_is_raised_at_once_in_pythons_library_called_by_the_users_code(interrupted):
    done = Log()

    def act(_):
        list(heapq.merge(map(operator.call, [press, partial(done.put, "more")])))

    interrupted(act)
    assert done.read() == []


def test_within_pytorch_it_waits_until_the_users_code_goes_on(interrupted):
    done = Log()

    def act(_):
        in_pytorch(press, partial(done.put, "the rest of PyTorch's"))
        done.put("the user's")

    interrupted(act)
    assert done.read() == ["the rest of PyTorch's"]


def test_under_a_profiler_it_waits_for_the_end_of_an_op(interrupted):
    done = Log()

    def act(x):
        in_pytorch(press, partial(done.put, "the rest of PyTorch's"))
        done.put("the user's")
        x = x + 1
        done.put("after an op")

    sys.setprofile(lambda *_: None)
    try:
        interrupted(act)
    finally:
        sys.setprofile(None)
    assert done.read() == ["the rest of PyTorch's", "the user's"]


def test_a_second_one_does_not_wait(interrupted):
    done = Log()

    def act(_):
        in_pytorch(press, press, partial(done.put, "the rest of PyTorch's"))

    interrupted(act)
    assert done.read() == []


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_a_handler_that_does_not_raise_is_called_and_the_capture_goes_on(where, monkeypatch):
    heard = Log()
    monkeypatch.setattr(Acting, "act", lambda _: in_pytorch(press, partial(heard.put, "the rest of PyTorch's")))
    before = signal.signal(signal.SIGINT, lambda *_: heard.put("the handler"))
    try:
        assert capture(acting(where), progress=False).ops
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard.read()[:2] == ["the rest of PyTorch's", "the handler"]


def test_it_is_ignored_where_the_program_ignores_it(monkeypatch):
    monkeypatch.setattr(Acting, "act", lambda _: press())
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert capture(acting("forward"), progress=False).ops
    finally:
        signal.signal(signal.SIGINT, before)
