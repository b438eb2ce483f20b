"""Gradient scaling is `torch.amp.GradScaler`'s to the bit, in steps with an overflow too, which update nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import nn
from torch.amp.grad_scaler import GradScaler
from torch.optim.lr_scheduler import StepLR

import planner
from planner.capture import capture
from planner.errors import StowageError
from planner.run import run, same_bits
from planner.step import AdamW, TrainStep
from tests.effort import combinations
from tests.run.steps import planned

Optimizer = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]
#: So large that gradients overflow in the first steps, and so few steps that the scale grows again.
SETTINGS = {"init_scale": 2.0**21, "growth_interval": 2}
ALWAYS_TOO_LARGE = {"init_scale": 2.0**60}
OPTIMIZERS: dict[str, Optimizer] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "dampened": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, dampening=0.3),
    "adam with decay": lambda parameters: torch.optim.Adam(parameters, lr=0.01, weight_decay=0.01),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
    "amsgrad": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, amsgrad=True, maximize=True),
}


def made_model(optimizer: str) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 8)
    )
    return model, OPTIMIZERS[optimizer](model.parameters())


def made_batches(count: int = 6) -> list[tuple[torch.Tensor, torch.Tensor]]:
    torch.manual_seed(1)
    return [(torch.randn(32, 64), torch.randn(32, 8)) for _ in range(count)]


def loss(model: nn.Module, batch: Any) -> torch.Tensor:
    found: torch.Tensor = (model(batch[0]).to(batch[1].dtype) - batch[1]).square().mean()
    return found


def step_of(model: nn.Module, optimizer: Any, scaler: Any, **options: Any) -> TrainStep:
    settings = {"loss": loss, "autocast": torch.float16} | options
    return TrainStep(model, made_batches(1)[0], optimizer=optimizer, scaler=scaler, **settings)


def eager(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: GradScaler,
    batches: Iterable[Any],
    *,
    clip_norm: float | None = None,
    micro_batches: int = 1,
    after: Callable[[int], object] = lambda number: None,
) -> list[float]:
    """A training loop as PyTorch's documentation writes it."""
    for group in optimizer.param_groups:
        group["foreach"] = False
    losses = []
    for number, batch in enumerate(batches):
        optimizer.zero_grad()
        total = torch.zeros(())
        for part in zip(*(tensor.chunk(micro_batches) for tensor in batch), strict=True):
            with torch.autocast("cpu", torch.float16):
                share = loss(model, part)
            share = share / micro_batches if micro_batches > 1 else share
            scaler.scale(share).backward()
            total = total + share.detach()
        if clip_norm is not None:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), clip_norm, foreach=False)
        scaler.step(optimizer)
        scaler.update()
        losses.append(float(total))
        after(number)
    return losses


def assert_alike(
    model: nn.Module, optimizer: torch.optim.Optimizer, other: nn.Module, theirs: torch.optim.Optimizer
) -> None:
    """Parameters and optimizer states have the same bits, and there are as many of them."""
    for ours, eagers in zip(model.parameters(), other.parameters(), strict=True):
        assert same_bits(ours, eagers)
        assert optimizer.state[ours].keys() == theirs.state[eagers].keys()
        assert all(same_bits(optimizer.state[ours][name], value) for name, value in theirs.state[eagers].items())


@pytest.mark.parametrize(("name", "check"), combinations(list(OPTIMIZERS), [None, False, True]))
def test_steps_with_an_overflow_have_the_bits_of_the_eager_loop(name: str, check: bool | None) -> None:
    (model, optimizer), (other, theirs) = made_model(name), made_model(name)
    scaler, eagers = GradScaler("cpu", **SETTINGS), GradScaler("cpu", **SETTINGS)
    step = step_of(model, optimizer, scaler)
    options = {} if check is None else {"check": check}
    handle = run(step, planned(step, "60%"), steps=0, **options)
    scales = []
    assert [*handle.steps(made_batches())] == eager(
        other, theirs, eagers, made_batches(), after=lambda _: scales.append(eagers.get_scale())
    )
    result = handle.wait()
    assert result.mismatches == ()
    assert result.plan.swap_ins
    assert 0 in result.skipped
    assert len(result.skipped) < 6
    assert max(scales) > min(scales)
    assert scaler.state_dict() == eagers.state_dict()
    assert_alike(model, optimizer, other, theirs)


@pytest.mark.parametrize(
    "options", [{"clip_norm": 0.05}, {"micro_batches": 2}, {"clip_norm": 0.05, "micro_batches": 4}]
)
def test_gradients_are_unscaled_after_all_micro_batches_and_before_clipping(options: dict[str, Any]) -> None:
    (model, optimizer), (other, theirs) = made_model("adamw"), made_model("adamw")
    scaler, eagers = GradScaler("cpu", **SETTINGS), GradScaler("cpu", **SETTINGS)
    step = step_of(model, optimizer, scaler, **options)
    result = run(step, planned(step, "70%"), steps=6, check=True, stress=True).wait()
    assert result.mismatches == ()
    assert [*result.losses] == eager(other, theirs, eagers, made_batches(1) * 6, **options)
    assert scaler.state_dict() == eagers.state_dict()
    assert_alike(model, optimizer, other, theirs)


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("name", ["dampened", "adamw"])
def test_an_optimizer_that_was_never_stepped_has_no_state(name: str, check: bool) -> None:
    model, optimizer = made_model(name)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    scaler = GradScaler("cpu", **ALWAYS_TOO_LARGE)
    result = run(step_of(model, optimizer, scaler), steps=3, check=check).wait()
    assert result.skipped == (0, 1, 2)
    assert result.mismatches == ()
    assert not optimizer.state
    assert all(same_bits(value, before[key]) for key, value in model.state_dict().items())
    assert scaler.get_scale() == 2.0**57


def test_a_schedule_and_what_is_changed_between_steps_are_followed() -> None:
    (model, optimizer), (other, theirs) = made_model("dampened"), made_model("dampened")
    scaler, eagers = GradScaler("cpu", **SETTINGS), GradScaler("cpu", **SETTINGS)
    schedule, theirs_schedule = StepLR(optimizer, 2, 0.5), StepLR(theirs, 2, 0.5)

    def change(scaler: GradScaler, number: int) -> None:
        if number == 3:
            scaler.update(2.0**23)
        if number == 4:
            scaler.set_growth_interval(1)
            scaler.set_backoff_factor(0.25)

    def after(number: int) -> None:
        theirs_schedule.step()
        change(eagers, number)

    handle = run(step_of(model, optimizer, scaler, scheduler=schedule), budget="70%", steps=0, check=False)
    losses = []
    for number, value in enumerate(handle.steps(made_batches(8))):
        losses.append(value)
        change(scaler, number)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        assert losses == eager(other, theirs, eagers, made_batches(8), after=after)
    assert scaler.state_dict() == eagers.state_dict()
    assert optimizer.param_groups[0]["lr"] == theirs.param_groups[0]["lr"]
    assert_alike(model, optimizer, other, theirs)


def test_training_goes_on_from_a_saved_scaler_with_the_same_bits() -> None:
    (model, optimizer), (other, theirs) = made_model("adamw"), made_model("adamw")
    scaler, eagers = GradScaler("cpu", **SETTINGS), GradScaler("cpu", **SETTINGS)
    step = step_of(model, optimizer, scaler)
    first = run(step, planned(step, "80%"), steps=0)
    losses = [*first.steps(made_batches()[:3])]
    again, resumed = made_model("adamw")
    again.load_state_dict(model.state_dict())
    resumed.load_state_dict(optimizer.state_dict())
    loaded = GradScaler("cpu")
    loaded.load_state_dict(scaler.state_dict())
    step = step_of(again, resumed, loaded)
    second = run(step, planned(step, "80%"), steps=0)
    losses += second.steps(made_batches()[3:])
    assert losses == eager(other, theirs, eagers, made_batches())
    assert loaded.state_dict() == eagers.state_dict()
    assert_alike(again, resumed, other, theirs)


def test_a_model_that_is_made_by_a_function_is_captured_without_memory_and_run() -> None:
    step = step_of(
        lambda: made_model("sgd")[0], AdamW(lr=lambda number: 1e-3 * (number + 1)), GradScaler("cpu", **SETTINGS)
    )
    graph = capture(step)
    assert step.live is None
    assert {key for _, key in graph.program.state if key.startswith("scaler/")} == {
        "scaler/scale", "scaler/growth_tracker",
    }  # fmt: skip
    assert run(step, steps=5, check=True).wait().mismatches == ()
    assert step.clone().scaler.state_dict() == step.scaler.state_dict()


def test_each_gradient_is_unscaled_by_a_call_of_its_own_so_that_it_may_leave_the_device() -> None:
    model, optimizer = made_model("adamw")
    graph = capture(step_of(model, optimizer, GradScaler("cpu")))
    calls = [op for op in graph.ops if op.target == "aten._amp_foreach_non_finite_check_and_unscale_.default"]
    assert len(calls) == 8
    gradients = sum(storage.bytes for storage in graph.storages if storage.name.endswith(".grad"))
    most = max(sum(graph.storages[storage].bytes for storage in graph.reads[op.id]) for op in calls)
    assert most < 0.7 * gradients


def test_the_scale_is_in_single_precision_whatever_the_default_is() -> None:
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        step = step_of(*made_model("adamw"), GradScaler("cpu", **SETTINGS), autocast=None)
        assert step.state()["optimizer/0.weight/step"].dtype is torch.float64
        assert run(step, steps=3, check=True).wait().mismatches == ()
    finally:
        torch.set_default_dtype(default)


def test_an_eager_step_that_is_broken_off_leaves_the_scaler_ready_for_the_next() -> None:
    step = step_of(*made_model("adamw"), GradScaler("cpu"), clip_norm=1.0)
    with patch.object(nn.utils, "clip_grad_norm_", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        step.eager()
    assert run(step, steps=1, check=True).wait().mismatches == ()


def test_a_disabled_scaler_is_none() -> None:
    model, optimizer = made_model("sgd")
    step, plain = (step_of(model, optimizer, one) for one in (GradScaler("cpu", enabled=False), None))
    assert step.scaler is None
    assert planner.graph.fingerprint(capture(step)) == planner.graph.fingerprint(capture(plain))


@pytest.mark.parametrize(
    ("scaler", "words"),
    [
        (GradScaler, 'the scaler is a class GradScaler: pass a gradient scaler, such as torch.amp.GradScaler("cpu")'),
        (65536.0, "the scaler is a float: pass a gradient scaler, such as"),
        (type("Mine", (GradScaler,), {})("cpu"), "the scaler is a Mine, whose own code a plan would not run"),
    ],
    ids=["a class", "a number", "of another class"],
)
def test_what_is_no_scaler_of_torch_is_refused(scaler: object, words: str) -> None:
    with pytest.raises(StowageError) as caught:
        step_of(*made_model("sgd"), scaler)
    assert words in str(caught.value)


def test_parameters_whose_gradients_torch_does_not_unscale_are_refused() -> None:
    model, optimizer = made_model("sgd")
    step = step_of(model.half(), optimizer, GradScaler("cpu"), loss=lambda model, batch: model(batch[0].half()).sum())
    with pytest.raises(
        StowageError, match=r"0\.weight and so its gradient is in float16, .* keep parameters in float32"
    ):
        capture(step)
    model = nn.ParameterList([nn.Parameter(torch.randn(3, dtype=torch.complex64))])
    step = step_of(model, planner.SGD(), GradScaler("cpu"), loss=lambda model, _: model[0].abs().sum(), autocast=None)
    with pytest.raises(StowageError, match=r"0 and so its gradient is complex"):
        capture(step)


def test_a_step_without_a_gradient_to_unscale_is_refused() -> None:
    model, optimizer = made_model("sgd")
    step = step_of(model, optimizer, GradScaler("cpu"), loss=lambda _, batch: batch[0].clone().requires_grad_().sum())
    with pytest.raises(StowageError, match="no parameter of the optimizer gets a gradient"):
        capture(step)


@pytest.mark.parametrize("used", [False, True])
def test_a_loss_that_uses_the_scaler_itself_is_refused(used: bool) -> None:
    model, optimizer = made_model("sgd")
    scaler = GradScaler("cpu")
    if used:
        scaler.scale(torch.zeros(()))
    step = step_of(model, optimizer, scaler, loss=lambda model, batch: scaler.scale(loss(model, batch)))
    with pytest.raises(StowageError, match="the loss uses the scaler that TrainStep is given"):
        capture(step)


def test_a_scaler_in_the_middle_of_an_iteration_is_refused() -> None:
    model, optimizer = made_model("sgd")
    scaler = GradScaler("cpu")
    scaler.scale(loss(model, made_batches(1)[0])).backward()
    scaler.unscale_(optimizer)
    step = step_of(model, optimizer, scaler)
    with pytest.raises(StowageError, match=r"call scaler\.step\(optimizer\) and scaler\.update\(\) first"):
        run(step, steps=1).wait()
    scaler.step(optimizer)
    scaler.update()
    assert len(run(step, steps=1).wait().losses) == 1
