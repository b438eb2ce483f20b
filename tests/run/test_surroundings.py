"""A run works in another thread, and under what PyTorch keeps for the one that called: its bits are eager's there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import pytest
import torch
from torch import Tensor, nn

from planner.errors import StowageError
from planner.run import run, same_bits
from planner.step import InferenceStep, TrainStep
from tests.effort import combinations
from tests.run.steps import convolutions, gpt, mlp, normalisations
from tests.run.test_handle import Gate


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def autocast() -> AbstractContextManager[object]:
    # with its cache, eager PyTorch goes on with the casts of the first step's weights for as long as the block lasts
    return torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False)


@pytest.mark.parametrize(
    ("make", "surroundings"),
    combinations(
        [mlp, convolutions, gpt, normalisations], [nullcontext, lambda: threads(2), autocast, lambda: threads(3)]
    ),
)
def test_a_run_has_the_bits_of_eager_on_the_main_thread(make: object, surroundings: object) -> None:
    assert callable(make)
    assert callable(surroundings)
    step = make()
    other = step.clone()
    with surroundings():
        torch.manual_seed(11)
        losses = [float(other.eager().detach()) for _ in range(2)]
        drawn = torch.get_rng_state()
        torch.manual_seed(11)
        result = run(step, budget="100%", steps=2, check=True).wait()
    assert result.mismatches == ()
    assert list(result.losses) == losses
    assert torch.equal(torch.get_rng_state(), drawn)
    expected = other.state()
    assert [key for key, value in step.state().items() if not same_bits(value, expected[key])] == []


def test_a_thread_with_other_settings_than_the_process_is_followed_and_changes_nothing() -> None:
    other = threading.Thread(target=lambda: torch.set_num_threads(2))  # from now on what new threads start with
    assert torch.get_num_threads() == 1
    other.start()
    other.join()
    found = []
    seen = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    run(convolutions(), steps=1, progress=lambda share, doing: found.append(torch.get_num_threads())).wait()
    seen.start()
    seen.join()
    torch.set_num_threads(1)
    assert set(found[:-1]) == {1}
    assert found[-1] == 2


def test_without_gradients_neither_trains() -> None:
    step = mlp()
    with torch.no_grad(), pytest.raises(StowageError):
        run(step).wait()
    assert run(step, steps=1, check=True).wait().mismatches == ()


def test_inference_in_inference_mode() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
    inputs = torch.randn(3, 8)
    with torch.inference_mode():
        result = run(InferenceStep(model, inputs), budget="100%", check=True).wait()
    assert result.mismatches == ()


def test_who_draws_in_the_meantime_disturbs_nothing_and_is_not_disturbed() -> None:
    step = gpt()
    other = step.clone()
    torch.manual_seed(3)
    losses = [float(other.eager().detach()) for _ in range(4)]
    gate = Gate("step 3 of")
    torch.manual_seed(3)
    running = run(step, budget="100%", steps=4, progress=gate)
    gate.reached.wait()
    torch.manual_seed(8)
    drawn = torch.rand(5)
    gate.open.set()
    assert list(running.wait().losses) == losses
    more = torch.rand(5)
    torch.manual_seed(8)
    assert torch.equal(torch.cat([drawn, more]), torch.cat([torch.rand(5), torch.rand(5)]))


class Noise(nn.Module):
    """Draws by operators that know no generator but PyTorch's, and by some that do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer(x) + torch.randn(4, 8) + torch.rand_like(x)
        x = nn.functional.dropout(x, 0.5) + torch.randint(3, (4, 8)) + torch.normal(0.0, 1.0, (4, 8))
        return (x * torch.bernoulli(torch.full_like(x, 0.5))).square().mean() + torch.poisson(x.detach().abs()).sum()


def test_every_kind_of_draw_gives_eagers_numbers() -> None:
    step = TrainStep(Noise, lambda: torch.randn(4, 8), loss=lambda model, x: model(x))
    other = step.clone()
    torch.manual_seed(3)
    losses = [float(other.eager().detach()) for _ in range(3)]
    after = torch.rand(5)
    torch.manual_seed(3)
    assert list(run(step, budget="100%", check=True).wait().losses) == losses
    assert torch.equal(torch.rand(5), after)


def test_who_draws_while_a_model_is_captured_measured_and_run_draws_as_if_nothing_went_on() -> None:
    step = TrainStep(
        lambda: nn.Sequential(*[nn.Linear(64, 64) for _ in range(8)], nn.Dropout()),
        lambda: torch.randn(16, 64),
        loss=lambda model, x: (model(x) * torch.rand_like(x)).square().mean(),
    )
    torch.manual_seed(5)
    running = run(step, steps=20, remeasure=True)
    drawn = []
    while running.progress.state == "running":
        drawn.append(torch.rand(3))
    running.wait()
    torch.manual_seed(5)
    assert torch.equal(torch.stack(drawn), torch.stack([torch.rand(3) for _ in drawn]))


def test_what_pytorch_would_call_is_refused_by_the_one_who_asks_for_a_run() -> None:
    with (
        torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor),
        pytest.raises(StowageError, match="saved_tensors_hooks are entered"),
    ):
        run(mlp(), steps=1)


def test_no_step_is_made_while_anomalies_are_looked_for() -> None:
    step = mlp()
    going = run(step, steps=0)
    going.wait()
    before = {key: value.clone() for key, value in step.state().items()}
    with torch.autograd.detect_anomaly(), pytest.raises(StowageError, match="leave detect_anomaly"):
        next(iter(going.steps([step.materialize().batch])))
    assert all(same_bits(value, before[key]) for key, value in step.state().items())


def test_autocast_around_the_steps_that_keeps_its_casts_is_refused_with_what_to_write() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(StowageError, match=r"autocast=torch\.bfloat16"):
        run(mlp(), steps=1).wait()
