"""Training over many batches by a plan is the ordinary loop: a step each, and the module holds what came of it."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from planner.errors import StowageError
from planner.run import Run, run, same_bits
from planner.step import InferenceStep, TrainStep
from tests.run.test_handle import MANY, stowage_threads
from tests.run.test_stopping import WORDS, assert_as_eager_left_it, words

SIZE, CLASSES = 12, 5


def loss(model: nn.Module, batch: Any) -> Tensor:
    return cross_entropy(model(batch[0]), batch[1])


def trained() -> tuple[nn.Module, torch.optim.Optimizer, Any]:
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(SIZE, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
    return model, optimizer, torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.5)


def loader() -> DataLoader[tuple[Tensor, ...]]:
    numbers = torch.Generator().manual_seed(4)
    xs, ys = torch.randn(48, SIZE, generator=numbers), torch.randint(0, CLASSES, (48,), generator=numbers)
    return DataLoader(TensorDataset(xs, ys), batch_size=8, shuffle=True)  # which draws from PyTorch's generator


def stepped() -> tuple[TrainStep, nn.Module, torch.optim.Optimizer, Any]:
    model, optimizer, scheduler = trained()
    batch = (torch.randn(8, SIZE), torch.randint(0, CLASSES, (8,)))
    return TrainStep(model, batch, loss=loss, optimizer=optimizer, scheduler=scheduler), model, optimizer, scheduler


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor):
        return isinstance(b, Tensor) and same_bits(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    return bool(a == b)


@pytest.mark.parametrize("check", [False, True])
def test_two_epochs_over_a_loader_are_pytorchs_own_loop_to_the_bit(check: bool) -> None:
    model, optimizer, scheduler = trained()
    torch.manual_seed(9)
    expected = []
    for _ in range(2):
        for batch in loader():
            optimizer.zero_grad()
            value = loss(model, batch)
            value.backward()
            optimizer.step()
            scheduler.step()
            expected.append(float(value.detach()))
    drawn = torch.get_rng_state()

    step, ours, our_optimizer, our_scheduler = stepped()
    running = run(step, steps=0, check=check)
    assert running.wait().losses == ()
    torch.manual_seed(9)
    losses = [value for _ in range(2) for value in running.steps(loader())]
    assert losses == expected == list(running.losses)
    assert torch.equal(torch.get_rng_state(), drawn)
    assert equal(dict(ours.state_dict()), dict(model.state_dict()))
    assert equal(our_optimizer.state_dict(), optimizer.state_dict())
    assert our_scheduler.get_last_lr() == scheduler.get_last_lr()
    assert running.result is not None
    assert running.result.mismatches == ()
    assert (running.result.compared > 0) == check
    assert (running.progress.state, running.progress.step, running.progress.steps) == ("done", 12, 12)
    assert stowage_threads() == []


def test_a_state_dict_from_within_the_loop_is_that_of_the_step_before() -> None:
    step, model, optimizer, _ = stepped()
    reference = step.clone()
    batches = list(loader())
    torch.manual_seed(1)
    kept = []
    for _ in run(step, steps=0).steps(batches):
        kept.append((copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict()["state"])))
    torch.manual_seed(1)
    for batch, (weights, states) in zip(batches, kept, strict=True):
        reference.eager(batch)
        assert reference.live is not None
        assert reference.live.optimizer is not None
        assert equal(dict(weights), dict(reference.live.model.state_dict()))
        assert equal(states, reference.live.optimizer.state_dict()["state"])


def test_the_runs_own_steps_come_first() -> None:
    step = words()
    reference, generator = step.clone(), torch.get_rng_state()
    batch = reference.materialize().batch
    running = run(step, budget="100%", steps=2)
    assert len(list(running.steps([batch, batch]))) == 2
    assert len(running.losses) == len(running.wait().losses) == 4
    assert_as_eager_left_it(step, reference, generator, 4)


def endless(batch: Any) -> Iterator[Any]:
    while True:
        yield batch


def loop(running: Run, batch: Any, how: str) -> None:
    for number, _ in enumerate(running.steps(endless(batch)), 1):
        if number == 3:
            if how == "break":
                break
            if how == "raise":
                raise LookupError
            running.cancel()


@pytest.mark.parametrize("how", ["break", "raise", "cancel"])
def test_leaving_the_loop_leaves_the_last_finished_step(how: str) -> None:
    step = words()
    reference, generator = step.clone(), torch.get_rng_state()
    batch = reference.materialize().batch
    running = run(step, budget="100%", steps=0)
    try:
        loop(running, batch, how)
    except LookupError:
        assert how == "raise"
    assert stowage_threads() == []
    assert running.progress.state == ("cancelled" if how == "cancel" else "done")
    assert running.progress.steps is None
    assert_as_eager_left_it(step, reference, generator, 3)
    if how == "cancel":
        with pytest.raises(StowageError, match="begin another one"):
            list(running.steps([batch]))
    else:
        assert len(list(running.steps([batch]))) == 1
        assert step.materialize().steps == 4


def test_a_batch_that_an_op_refuses_leaves_the_step_before_and_one_can_go_on() -> None:
    step = words()
    reference, generator = step.clone(), torch.get_rng_state()
    good = reference.materialize().batch
    bad = (torch.full((6,), WORDS), good[1])
    running = run(step, budget="100%", steps=0)
    losses = []
    with pytest.raises(StowageError, match="out of range"):
        losses.extend(running.steps([good, bad, good]))
    assert running.progress.state == "failed"
    assert isinstance(running.error, StowageError)
    assert_as_eager_left_it(step, reference, generator, 1)
    list(running.steps([good]))
    assert running.error is None
    assert running.progress.state == "done"


def of(batch: Any) -> TrainStep:
    layer = nn.Linear(4, 2)
    return TrainStep(layer, batch, loss=lambda model, b: (model(b["x"]) * b["scale"]).sum() + model(b["y"][0]).sum())


def form(**changes: Any) -> dict[str, Any]:
    return {"x": torch.ones(3, 4), "y": [torch.ones(2, 4)], "scale": 2, **changes}


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (form(x=torch.ones(3, 5)), r"batch/x has shape \(3, 5\) .* captured with \(3, 4\).*fewer rows"),
        (form(y=[torch.ones(2, 4, dtype=torch.float64)]), r"batch/y/0 has dtype torch.float64 .*torch.float32"),
        (form(x=torch.ones(3, 4, device="meta")), r"batch/x is a tensor without data .*give an ordinary tensor"),
        (form(x=torch.ones(3, 4).to_sparse()), r"batch/x is torch.sparse_coo .*give an ordinary tensor"),
        (form(z=torch.ones(1)), r"a batch has a tensor batch/z and the step's own batch has none"),
        (form(y=[]), r"a batch has no tensor batch/y/0 and the step's own batch has one"),
        (torch.ones(3, 4), r"a batch has no tensor batch/"),
    ],
)
def test_a_batch_of_another_form_is_refused_and_the_leaf_is_named(batch: Any, said: str) -> None:
    step = of(form())
    running = run(step, steps=0)
    with pytest.raises(StowageError, match=said):
        list(running.steps([form(), batch]))
    assert len(running.losses) == 1


def test_the_order_of_names_and_the_kind_of_sequence_do_not_matter() -> None:
    step = of(form())
    reference = step.clone()
    batch = OrderedDict([("scale", 2), ("y", (torch.randn(2, 4),)), ("x", torch.randn(3, 4))])
    assert list(run(step, steps=0).steps([batch])) == [float(reference.eager(batch).detach())]


def test_tensors_that_were_one_when_captured_may_be_two() -> None:
    tokens = torch.ones(3, 4)
    step = TrainStep(nn.Linear(4, 4), {"a": tokens, "b": tokens}, loss=lambda m, b: (m(b["a"]) - b["b"]).square().sum())
    reference = step.clone()
    other = torch.randn(3, 4)  # drawn before the capture begins, which must be the only one to draw
    running = run(step, steps=0)
    expected = [float(reference.eager({"a": other, "b": other}).detach())]
    assert list(running.steps([{"a": other, "b": other}])) == expected
    apart = {"a": other, "b": -other}
    assert list(running.steps([apart])) == [float(reference.eager(apart).detach())]


def test_while_a_loop_is_open_the_step_is_taken() -> None:
    step = words()
    batch = step.materialize().batch
    running = run(step, budget="100%", steps=0)
    open_loop = running.steps(endless(batch))
    next(open_loop)
    with pytest.raises(StowageError, match="being run"):
        run(step, budget="100%")
    del open_loop
    assert run(step, budget="100%", steps=1).wait().losses


def test_loops_that_make_no_sense_are_refused() -> None:
    model = nn.Linear(4, 4)
    with pytest.raises(StowageError, match="TrainStep"):
        list(run(InferenceStep(model, torch.ones(2, 4)), steps=0).steps([torch.ones(2, 4)]))
    running = run(words(), budget="1%", steps=0)
    with pytest.raises(StowageError, match="too small"):
        list(running.steps([]))
    running = run(words(), budget="100%", steps=MANY)
    running.cancel()
    with pytest.raises(StowageError):
        list(running.steps([]))


class Numbers(IterableDataset[Tensor]):
    def __iter__(self) -> Iterator[Tensor]:
        yield from torch.ones(6, 4)


def test_a_loader_that_cannot_tell_its_length_is_run_to_its_end() -> None:
    step = TrainStep(nn.Linear(4, 2), torch.ones(2, 4), loss=lambda model, x: model(x).sum())
    running = run(step, steps=0)
    assert len(list(running.steps(DataLoader(Numbers(), batch_size=2)))) == 3
    assert (running.progress.step, running.progress.steps) == (3, None)


def test_a_last_batch_that_is_made_as_large_as_the_others_is_taken() -> None:
    def padded(samples: list[Tensor]) -> Tensor:
        return nn.functional.pad(torch.stack(samples), (0, 0, 0, 3 - len(samples)))

    step = TrainStep(nn.Linear(4, 2), torch.ones(3, 4), loss=lambda model, x: model(x).sum())
    loader = DataLoader(list(torch.randn(8, 4)), batch_size=3, collate_fn=padded)
    assert len(list(run(step, steps=0).steps(loader))) == 3


def test_a_numpy_array_in_a_batch_is_read_anew() -> None:
    def batch(weights: list[float]) -> Any:
        return {"x": torch.ones(3, 4), "w": np.array(weights)}

    step = TrainStep(nn.Linear(4, 2), batch([1.0, 2.0]), loss=lambda model, b: (model(b["x"]) * float(b["w"][1])).sum())
    running = run(step, steps=0, check=True)
    assert len(list(running.steps([batch([1.0, 2.0]), batch([1.0, 3.0])]))) == 2
    assert running.result is not None
    assert running.result.mismatches == ()
    with pytest.raises(StowageError, match="IndexError"):
        list(running.steps([batch([1.0])]))
