"""A batch with fewer rows, as the last of an epoch, is trained on by a plan of its own in the same run and budget."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from planner.capture import capture
from planner.errors import StowageError
from planner.program import Outputs
from planner.run import run, same_bits
from planner.step import Adam, TrainStep
from tests.run.steps import planned

ROWS, CLASSES = 8, 5


def loss(model: nn.Module, batch: Any) -> Tensor:
    return cross_entropy(model(batch[0]), batch[1])


def trained() -> tuple[nn.Module, torch.optim.Optimizer, Any]:
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, CLASSES))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, foreach=False)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)


def rows(count: int) -> tuple[Tensor, Tensor]:
    return torch.randn(count, 12), torch.randint(0, CLASSES, (count,))


def stepped(kind: type[TrainStep] = TrainStep) -> TrainStep:
    model, optimizer, scheduler = trained()
    return kind(model, rows(ROWS), loss=loss, optimizer=optimizer, scheduler=scheduler)


def loader() -> DataLoader[tuple[Tensor, ...]]:
    torch.manual_seed(4)
    return DataLoader(TensorDataset(*rows(2 * ROWS + 3)), batch_size=ROWS, shuffle=True)


@pytest.mark.parametrize("check", [True, "first", False])
def test_epochs_that_end_in_a_smaller_batch_are_pytorchs_own_loop_to_the_bit(check: Any) -> None:
    model, optimizer, scheduler = trained()
    data = loader()
    torch.manual_seed(9)
    expected = []
    for batch in (batch for _ in range(2) for batch in data):
        optimizer.zero_grad()
        value = loss(model, batch)
        value.backward()
        optimizer.step()
        scheduler.step()
        expected.append(float(value.detach()))

    step = stepped()
    running = run(step, budget="95%", steps=0, check=check)
    running.wait()
    torch.manual_seed(9)
    assert [value for _ in range(2) for value in running.steps(data)] == expected
    ours = step.materialize().model.state_dict()
    assert all(same_bits(ours[name], value) for name, value in model.state_dict().items())
    result = running.result
    assert result is not None
    assert result.mismatches == ()
    assert result.captures == 2
    if check == "first":
        assert result.checked == "the first 2 steps, and the first 2 of each smaller batch"
        assert len(result.eager_step_seconds) == 4


def test_sizes_that_were_there_before_are_neither_captured_nor_planned_again() -> None:
    said = list[str]()
    running = run(stepped(), steps=0, check=False, progress=lambda _, doing: said.append(doing))
    running.wait()
    for size in (8, 3, 8, 5):
        assert len(list(running.steps([rows(size)]))) == 1
    assert any(doing == "planning for a smaller batch" for doing in said)
    said.clear()
    list(running.steps([rows(size) for size in (3, 8, 5, 3)]))
    assert not any("planning" in doing for doing in said)
    assert running.result is not None
    assert running.result.captures == 3


@contextmanager
def without_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def slabs() -> int:
    """How many arenas and host slabs there are; the states of generators are smaller."""
    found = [one for one in gc.get_objects() if type(one) is Tensor and one.dtype is torch.uint8]
    return sum(one._base is None and one.numel() > 2**14 for one in found)


def test_both_plans_keep_the_budget_and_the_memory_of_one_is_freed_before_the_other_takes_its_own() -> None:
    torch.manual_seed(0)
    layers = [layer for _ in range(6) for layer in (nn.Linear(64, 64), nn.Tanh())]
    model = nn.Sequential(nn.Linear(12, 64), *layers, nn.Linear(64, CLASSES))
    step = TrainStep(model, rows(512), loss=loss, optimizer=Adam())
    plan = planned(step, "80%")
    running = run(step, plan, steps=0)
    running.wait()
    with without_collection():
        before = slabs()
        for _ in running.steps([rows(512), rows(500), rows(512), rows(500)]):
            assert slabs() - before <= 2
    result = running.result
    assert result is not None
    assert running.plan is result.plan is plan
    assert result.peak_bytes <= result.budget_bytes == plan.budget_bytes
    assert len(result.step_seconds) == 4
    assert [len(timeline.compute) for timeline in result.timelines] == [len(plan.order)] * 2, "those by this plan"
    assert running.timelines == result.timelines
    assert len(running.step_timelines) == 4
    assert running.timeline is running.step_timelines[-1]


class Meddler(TrainStep):
    """Eager PyTorch that makes another number of a smaller batch."""

    def compute(self, batch: Any = None) -> Outputs:
        made = super().compute(batch)
        if batch is not None and len(batch[0]) < ROWS:
            self.state()["model/0.weight"].view(torch.int32)[3, 4] ^= 1
        return made


def test_the_first_steps_of_a_smaller_batch_are_checked_too() -> None:
    step = stepped(Meddler)
    running = run(step, steps=0)
    with pytest.raises(StowageError, match=r"step 4 differs from eager PyTorch's in 1 of .*model/0\.weight"):
        list(running.steps([rows(8), rows(8), rows(8), rows(3)]))


def test_a_batch_that_differs_in_more_than_fewer_rows_is_refused() -> None:
    running = run(stepped(), steps=0)
    x, y = rows(5)
    cases = [
        (rows(9), r"batch/0 has shape \(9, 12\) .*\(8, 12\): only a batch with fewer rows .*the largest batch"),
        ((x[:, :6], y), r"batch/0 has shape \(5, 6\)"),
        ((x, y[:4]), r"batch/0 has shape \(5, 12\)"),
        ((x[:0], y[:0]), r"batch/0 has shape \(0, 12\)"),
        ((x.double(), y), r"batch/0 has dtype torch.float64"),
        ((x, y, x), r"a batch has a tensor batch/2 and the step's own batch has none"),
    ]
    for batch, said in cases:
        with pytest.raises(StowageError, match=said):
            list(running.steps([batch]))
    assert running.losses == ()


def test_a_smaller_batch_that_the_model_does_not_take_leaves_the_step_before_and_one_can_go_on() -> None:
    torch.manual_seed(0)
    layer = nn.Linear(12, 4)
    step = TrainStep(layer, rows(8), loss=lambda model, batch: model(batch[0]).view(8, 4).square().mean())
    reference, batches = step.clone(), [rows(8), rows(8)]
    running = run(step, steps=0)
    with pytest.raises(StowageError, match=r"in the loss at test_smaller_batches.py:\d+, in aten.view"):
        list(running.steps([batches[0], rows(3), batches[1]]))
    list(running.steps(batches[1:]))
    for batch in batches:
        reference.eager(batch)
    assert same_bits(step.state()["model/weight"], reference.state()["model/weight"])


def test_what_a_loss_returns_beside_its_value_has_as_many_rows() -> None:
    model, optimizer, _ = trained()
    step = TrainStep(
        model, rows(8), loss=lambda model, batch: (loss(model, batch), batch[0].square()), optimizer=optimizer
    )
    capture(step)
    running = run(step, steps=0)
    list(running.steps([rows(8), rows(3)]))
    assert [len(extra) for extra in running.extras] == [8, 3]
