"""Functions that make the model and the batch are called while the run is under way, from random numbers of its own."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensor

from planner.capture import capture
from planner.errors import StowageError
from planner.run import Run, run, same_bits
from planner.step import SGD, InferenceStep, TrainStep


class Gate:
    """A file whose absence holds a function up, while it makes something real."""

    def __init__(self, path: Path) -> None:
        self._path, self.reached = str(path), threading.Event()

    def open(self) -> None:
        Path(self._path).touch()

    def wait(self, tensor: Tensor) -> None:
        if isinstance(tensor, FakeTensor) or tensor.is_meta:
            return  # captured
        self.reached.set()
        until(lambda: os.path.exists(self._path))  # noqa: PTH110


def until(condition: Callable[[], object], seconds: float = 240.0) -> None:
    over = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < over, "it takes too long"
        time.sleep(0.002)


def net() -> nn.Sequential:
    """Draws by many operators, and sets the seed on the way."""
    model = nn.Sequential(nn.Linear(8, 33), nn.Tanh(), nn.Linear(33, 1))
    with torch.no_grad():
        nn.init.trunc_normal_(model[0].weight)
        model[0].bias.copy_(torch.rand_like(model[0].bias) + torch.randn_like(model[0].bias))
        torch.manual_seed(5)
        model[2].weight.copy_(torch.randn(1, 33) * torch.randint(0, 9, (1, 33)) + torch.randperm(33))
        model[2].bias.add_(torch.bernoulli(torch.rand(1)))
    return model


def step_of(model: Callable[[], nn.Module], batch: Callable[[], Tensor] = lambda: torch.randn(4, 8)) -> TrainStep:
    return TrainStep(model, batch, loss=lambda model, x: model(x).square().mean(), optimizer=SGD(0.1), seed=11)


@pytest.mark.parametrize("inference", [False, True])
def test_what_functions_make_is_what_pytorch_makes_from_the_seed(inference: bool) -> None:
    step = InferenceStep(net, lambda: torch.randn(4, 8), seed=11)
    with torch.inference_mode(inference):
        made = step.materialize()
    with torch.random.fork_rng(), torch.inference_mode(inference):
        torch.manual_seed(11)
        expected = net()
        torch.manual_seed(12)
        batch = torch.randn(4, 8)
    assert all(same_bits(a, b) for a, b in zip(made.model.parameters(), expected.parameters(), strict=True))
    assert same_bits(made.batch, batch)


def test_a_capture_draws_nothing_for_what_functions_make_either() -> None:
    drawn = torch.get_rng_state()
    capture(step_of(net, lambda: torch.randn(4, 8) * torch.randn(1).item()))
    assert torch.equal(torch.get_rng_state(), drawn)


def test_random_numbers_drawn_meanwhile_are_those_of_eager_pytorch(tmp_path: Path) -> None:
    gate = Gate(tmp_path / "open")

    def slow() -> nn.Module:
        model = net()
        gate.wait(model[0].weight)
        with torch.no_grad():
            model[0].weight.normal_()
        return model

    step = step_of(slow)
    torch.manual_seed(3)
    expected = torch.rand(5)
    after = torch.get_rng_state()
    torch.manual_seed(3)
    running = run(step, steps=1, check=False)
    assert gate.reached.wait(240)
    drawn = torch.rand(5)
    gate.open()
    running.wait()
    assert torch.equal(drawn, expected)
    assert torch.equal(torch.get_rng_state(), after)
    other = step_of(slow)
    other.materialize()
    other.eager()
    assert all(same_bits(value, other.state()[key]) for key, value in step.state().items())


def stopped(running: Run) -> None:
    running.cancel()
    assert running.progress.doing == "stopping"
    with pytest.raises(StowageError, match="cancelled before it had made a step"):
        running.wait(240)
    assert running.progress.state == "cancelled"


@pytest.mark.parametrize("part", ["model", "batch"])
def test_it_is_stopped_while_a_function_is_at_work(tmp_path: Path, part: str) -> None:
    gate = Gate(tmp_path / "open")

    def model() -> nn.Module:
        made = net()
        if part == "model":
            gate.wait(made[0].weight)
        return made

    def batch() -> Tensor:
        made = torch.randn(4, 8)
        if part == "batch":
            gate.wait(made)
        return made

    step = step_of(model, batch)
    drawn = torch.get_rng_state()
    running = run(step, steps=2)
    assert gate.reached.wait(240)
    assert running.progress.doing.startswith("building the model")
    stopped(running)
    assert step.live is None
    assert torch.equal(torch.get_rng_state(), drawn)
    gate.open()
    assert run(step, steps=2, check=True).wait().mismatches == ()


class Slow(nn.Linear):
    """Waits in eager PyTorch and not while it is captured."""

    def forward(self, x: Tensor) -> Tensor:
        if not isinstance(x, FakeTensor):
            hold_up()
        return super().forward(x)


def hold_up() -> None:
    while os.environ.get("STOWAGE_TEST_SHUT"):
        os.environ["STOWAGE_TEST_REACHED"] = "yes"
        time.sleep(0.002)


@pytest.mark.parametrize("begun", [0, 1])
def test_an_eager_step_beside_it_is_left_in_its_middle_and_the_run_keeps_its_own(
    monkeypatch: pytest.MonkeyPatch, begun: int
) -> None:
    monkeypatch.setenv("STOWAGE_TEST_REACHED", "")
    step = step_of(lambda: nn.Sequential(Slow(8, 8), nn.Tanh(), nn.Linear(8, 1)))
    reference = step_of(step.model)  # type: ignore[arg-type]
    reference.materialize()

    def shut(_: float, doing: str) -> None:
        if doing.startswith(f"step {begun + 1} of"):
            monkeypatch.setenv("STOWAGE_TEST_SHUT", "yes")

    running = run(step, steps=3, check=True, progress=shut)
    until(lambda: os.environ.get("STOWAGE_TEST_REACHED"))
    running.cancel()
    assert len(running.wait(240).step_seconds) == begun + 1
    monkeypatch.delenv("STOWAGE_TEST_SHUT")
    for _ in range(begun + 1):
        reference.eager()
    assert all(same_bits(value, reference.state()[key]) for key, value in step.state().items())
    assert all(not parameter._post_accumulate_grad_hooks for parameter in step.materialize().model.parameters())


def test_a_run_without_a_plan_is_refused_before_its_model_is_made() -> None:
    made = []

    def huge() -> nn.Module:
        layer = nn.Linear(2**19, 2**19, bias=False)
        made.append(type(layer.weight.data))
        return layer

    step = InferenceStep(huge, lambda: torch.ones(1, 2**19))
    with pytest.raises(StowageError, match="more than is free"):
        run(step).wait()
    assert Tensor not in made


def test_the_default_dtype_stays_until_the_model_is_made(tmp_path: Path) -> None:
    step = step_of(net)
    holding, free = threading.Event(), threading.Event()

    def hold(_: float, doing: str) -> None:
        if doing == "building the model":
            holding.set()
            free.wait()

    running = run(step, progress=hold)
    assert holding.wait(240)
    torch.set_default_dtype(torch.float64)
    try:
        free.set()
        with pytest.raises(StowageError, match="the default dtype was"):
            running.wait()
    finally:
        torch.set_default_dtype(torch.float32)
