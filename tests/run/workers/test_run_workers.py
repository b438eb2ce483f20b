"""Steps on several workers, in processes: eager's numbers but for rounding, the bytes predicted, the planned memory."""

import math
import os
import signal
import sys
import threading
import time
import types

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader
from worker_processes import worker_processes

import planner
from planner.capture import capture
from planner.errors import StowageError
from planner.partition import PartitionPlan, search_partition
from planner.run import WorkerFailedError, run_workers
from planner.run.workers.plans import cores
from planner.step import SGD, AdamW, InferenceStep, TrainStep
from tests.effort import combinations
from tests.run.workers.steps import (
    assert_close,
    classifier,
    loader,
    partition,
    same,
    scaled_cross_entropy,
    state_of,
    until,
)


def convolutions(optimizer=None):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1, groups=2),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32, 4),
    )  # fmt: skip
    batch = torch.randn(8, 3, 8, 8, dtype=torch.float64), torch.randint(4, (8,))
    return TrainStep(
        model.double(), batch, loss=lambda model, batch: nn.functional.cross_entropy(model(batch[0]), batch[1]),
        optimizer=optimizer,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("make", "workers"), combinations([lambda: classifier(AdamW(lr=1e-2)), convolutions, classifier], [2, 3, 4])
)
def test_steps_are_those_of_eager_but_for_rounding(make, workers):
    step = make()
    result = run_workers(step, partition(step, workers), steps=2, check=True, progress=False).wait()
    assert result.difference.is_rounding, result.difference
    assert result.difference.relative < 1e-11
    assert result.bytes_counted == result.bytes_predicted > 0
    assert result.peak_bytes == result.planned_peak_bytes
    eager = make()
    losses = [float(eager.eager()) for _ in range(2)]
    assert result.losses == pytest.approx(losses, rel=1e-12)
    for key, value in step.state().items():
        torch.testing.assert_close(value, eager.state()[key], rtol=1e-9, atol=1e-11)
    assert float(step.eager()) == pytest.approx(float(eager.eager()), rel=1e-11)  # who goes on alone


def test_the_same_partition_gives_the_same_bits_whatever_is_swapped():
    found = []
    for budget in (None, None, "70%"):
        step = classifier()
        result = run_workers(step, partition(step, 2), budget=budget, steps=3, progress=False).wait()
        found.append((result, state_of(step)))
    (first, bits), (again, bits_again), (swapped, bits_swapped) = found
    assert first.losses == again.losses == swapped.losses
    assert same(bits, bits_again)
    assert same(bits, bits_swapped)
    assert max(swapped.peak_bytes) <= swapped.budget_bytes < max(first.peak_bytes)
    assert all(plan.swap_outs for plan in swapped.plans)


@pytest.mark.parametrize(
    ("workers", "dtype", "settings"),
    [(2, torch.float64, {"clip_norm": 0.05, "micro_batches": 2}), (3, torch.float32, {"autocast": torch.bfloat16})],
)
def test_clipping_micro_batches_and_mixed_precision_are_those_of_eager(workers, dtype, settings):
    step = classifier(AdamW(lr=1e-2), dtype=dtype, **settings)
    result = run_workers(step, partition(step, workers), check=True, progress=False).wait()
    assert result.difference.is_rounding, result.difference
    assert result.bytes_counted == result.bytes_predicted
    assert result.peak_bytes == result.planned_peak_bytes


def test_gradient_scaling_skips_the_steps_that_eager_skips():
    """In the first and the third step the loss is infinite."""

    def scaled(optimizer):
        step = classifier(optimizer, scaler=torch.amp.GradScaler("cpu", growth_interval=2), clip_norm=0.5)
        step.batch = (*step.batch, torch.ones(()))
        return step

    for optimizer in (AdamW(lr=1e-2), SGD(lr=0.1, momentum=0.9, dampening=0.5)):
        step, eager = scaled(optimizer), scaled(optimizer)
        factors = [torch.tensor(one) for one in (math.inf, 1.0, math.inf, 1.0, 1.0)]
        batches = [(*batch, factor) for batch, factor in zip(loader(5), factors, strict=True)]
        parts = partition(step, 2)
        result = run_workers(step, parts, batches=batches[:3], progress=False).wait()
        run = run_workers(step, parts, steps=0, progress=False)
        losses = [*result.losses, *run.steps(batches[3:])]
        assert result.skipped == (0, 2)
        run.close()
        assert losses == pytest.approx([float(eager.eager(batch)) for batch in batches], rel=1e-9)
        assert result.bytes_counted == result.bytes_predicted
        assert result.peak_bytes == result.planned_peak_bytes
        assert step.scaler.state_dict() == eager.scaler.state_dict()
        assert step.scaler.get_scale() == 2.0**15
        assert_close(step, eager)


def test_dropout_draws_what_one_process_would_draw():
    step, eager = classifier(dropout=0.4), classifier(dropout=0.4)
    parts = partition(step, 3)
    torch.manual_seed(11)
    losses = [float(eager.eager()) for _ in range(2)]
    after = torch.get_rng_state()
    torch.manual_seed(11)
    result = run_workers(step, parts, steps=2, progress=False).wait()
    assert result.losses == pytest.approx(losses, rel=1e-12)
    assert torch.equal(torch.get_rng_state(), after)


class Checkpointed(nn.Sequential):
    def forward(self, x):
        return checkpoint(super().forward, x, use_reentrant=False)


def test_dropout_in_a_checkpoint_draws_on_every_worker_what_one_process_would_draw():
    step, eager = classifier(dropout=0.4), classifier(dropout=0.4)
    for one in (step, eager):
        one.model[2] = Checkpointed(nn.Dropout(0.4), nn.Linear(40, 40).double(), nn.GELU(), nn.Dropout(0.2))
    eager.model.load_state_dict(step.model.state_dict())
    graph = capture(step, progress=False)
    assert len([op for op in graph.ops if op.draws_as >= 0]) == 2
    torch.manual_seed(11)
    losses = [float(eager.eager()) for _ in range(3)]
    after = torch.get_rng_state()
    for workers in (2, 3):
        copy = step.clone()
        torch.manual_seed(11)
        result = run_workers(copy, partition(copy, workers), budget="90%", steps=3, progress=False).wait()
        assert result.losses == pytest.approx(losses, rel=1e-12)
        assert torch.equal(torch.get_rng_state(), after)
        assert_close(copy, eager)


@pytest.mark.parametrize(
    ("image", "weight"), [(0, 1), (1, 2), (2, 3), (3, "replicated"), ("replicated", 0)], ids=str
)  # fmt: skip
def test_a_convolution_is_right_however_its_image_and_its_weight_are_placed(image, weight):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 6, 1), nn.Conv2d(6, 10, 3, stride=2, padding=3, dilation=2, groups=2)).double()
    step = TrainStep(
        model, torch.randn(5, 3, 13, 11, dtype=torch.float64), loss=lambda model, x: model(x).square().mean(),
        optimizer=SGD(lr=0.1, momentum=0.9),
    )  # fmt: skip
    pins = {"0/convolution": image, "1.weight": weight}
    parts = search_partition(capture(step), 2, pins=pins, evaluations=1).wait(progress=False)
    result = run_workers(step, parts, steps=1, check=True, progress=False).wait()
    assert result.difference.is_rounding
    assert result.bytes_counted == result.bytes_predicted


def test_a_schedule_of_learning_rates_goes_on():
    def scheduled():
        torch.manual_seed(0)
        model = nn.Linear(8, 4).double()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        return TrainStep(
            model, (torch.randn(6, 8, dtype=torch.float64),), loss=lambda model, batch: model(batch[0]).square().sum(),
            optimizer=optimizer, scheduler=torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.1),
        )  # fmt: skip

    step, eager = scheduled(), scheduled()
    result = run_workers(step, partition(step, 2), steps=3, progress=False).wait()
    assert result.losses == pytest.approx([float(eager.eager()) for _ in range(3)], rel=1e-12)


def test_a_data_loader_is_trained_on_as_eager_pytorch_would():
    step, eager = classifier(dropout=0.3), classifier(dropout=0.3)
    parts = partition(step, 2)
    torch.manual_seed(11)
    losses = [float(eager.eager(batch)) for batch in loader()]
    after = torch.get_rng_state()
    torch.manual_seed(11)
    result = run_workers(step, parts, batches=loader(), check=True, progress=False).wait()
    assert result.losses == pytest.approx(losses, rel=1e-12)
    assert result.difference.is_rounding
    assert torch.equal(torch.get_rng_state(), after)
    for key, value in step.state().items():
        torch.testing.assert_close(value, eager.state()[key], rtol=1e-9, atol=1e-11)


def test_collectives_run_beside_ops_where_workers_have_cores_to_spare_and_leave_the_same_bits(monkeypatch):
    states, plans = [], []
    for here in (2, 4):
        monkeypatch.setattr(cores, "cores", lambda here=here: here)
        step = planner.zoo.load("gpt:layers=1,hidden=32,heads=2,sequence=16,batch=4")
        plans.append(run_workers(step, partition(step, 2), steps=3, progress=False).wait().plans)
        states.append(state_of(step))
    assert [any(plan.communications for plan in each) for each in plans] == [False, True]
    assert same(*states)


def test_a_model_with_tied_weights_is_trained_on_batches():
    def tied():
        torch.manual_seed(0)
        first, second, last = nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 6)
        second.weight = first.weight
        return TrainStep(
            nn.Sequential(first, nn.Tanh(), second, nn.Tanh(), last).double(), next(iter(loader())),
            loss=scaled_cross_entropy, optimizer=SGD(lr=0.1, momentum=0.9),
        )  # fmt: skip

    step, eager = tied(), tied()
    result = run_workers(step, partition(step, 2), batches=loader(), progress=False).wait()
    assert result.losses == pytest.approx([float(eager.eager(batch)) for batch in loader()], rel=1e-12)
    assert_close(step, eager)


def test_no_more_steps_are_made_than_asked_for_and_none_without_batches():
    step = classifier()
    parts = partition(step, 2)
    ragged = DataLoader(loader().dataset[:30], batch_size=12)
    assert len(run_workers(step, parts, batches=ragged, steps=2, progress=False).wait().losses) == 2
    run = run_workers(step, parts, steps=0, progress=False)
    run.wait()
    for refused in (run_workers(step, parts, batches=ragged, progress=False).wait, lambda: next(run.steps(ragged))):
        with pytest.raises(StowageError, match=r"last batch of this loader has 6 of 12 samples.*drop_last=True"):
            refused()
    with pytest.raises(StowageError, match="there are no batches: give at least one"):
        run_workers(step, parts, batches=[], progress=False).wait()
    with pytest.raises(StowageError, match="batches must be an iterable of batches, such as a DataLoader, got 5"):
        run_workers(step, parts, batches=5, progress=False)
    run.close()  # what was raised keeps this frame alive, and with it the handle


def test_a_loader_may_fill_the_same_tensors_again():
    def filled():
        images, labels = (part.clone() for part in next(iter(loader())))
        for new_images, new_labels in loader():
            images.copy_(new_images)
            labels.copy_(new_labels)
            yield images, labels

    step = classifier()
    result = run_workers(step, partition(step, 2), batches=filled(), check=True, progress=False).wait()
    assert result.difference.is_rounding


def test_the_steps_before_a_batch_that_cannot_be_had_are_kept():
    def batches(fault):
        yield from list(loader(2))
        yield fault()

    def broken():
        raise OSError("the disk is gone")

    def short():
        return tuple(part[:5] for part in next(iter(loader())))

    def scaled():
        return *next(iter(loader())), 2.0

    faults = [
        (short, StowageError, r"has shape \(5, 12\)"), (broken, OSError, "the disk is gone"),
        (scaled, StowageError, "batch 3 leads to other calls than the step's own"),
    ]  # fmt: skip
    for fault, error, said in faults:
        step, eager = classifier(), classifier()
        with pytest.raises(error, match=said):
            run_workers(step, partition(step, 2), batches=batches(fault), progress=False).wait()
        for batch in loader(2):
            eager.eager(batch)
        for key, value in step.state().items():
            torch.testing.assert_close(value, eager.state()[key], rtol=1e-9, atol=1e-11)


def test_learning_rates_that_change_between_batches_are_followed_and_a_changed_model_is_refused():
    def made():
        torch.manual_seed(0)
        model = nn.Linear(12, 6).double()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        return TrainStep(
            model, next(iter(loader())), optimizer=optimizer,
            loss=lambda model, batch: nn.functional.cross_entropy(model(batch[0]), batch[1]),
        )  # fmt: skip

    def slower(step):
        for batch in loader():
            yield batch
            step.materialize().optimizer.param_groups[0]["lr"] *= 0.5

    def shifted(step):
        for batch in loader():
            yield batch
            step.materialize().model.bias.data[0] += 1

    step, eager = made(), made()
    parts = partition(step, 2)
    losses = [float(eager.eager(batch)) for batch in slower(eager)]
    result = run_workers(step, parts, batches=slower(step), progress=False).wait()
    assert result.losses == pytest.approx(losses, rel=1e-12)
    with pytest.raises(StowageError, match="the model or its optimizer was changed before step 2"):
        run_workers(step, parts, batches=shifted(step), progress=False).wait()


class Masked(nn.Module):
    """Looks at its mask, and does without where that is all ones."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(12, 40), nn.Linear(40, 6)

    def forward(self, rows, mask):
        hidden = self.first(rows).relu()
        return self.last(hidden if mask.all() else hidden * mask.unsqueeze(1))


def masked(zeros, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mask = torch.ones(12, dtype=torch.bool)
    mask[:zeros] = False
    rows = torch.randn(12, 12, dtype=torch.float64, generator=generator)
    return rows, torch.randint(6, (12,), generator=generator), mask


def looking():
    def cross_entropy(model, batch):
        rows, labels, mask = batch
        return nn.functional.cross_entropy(model(rows, mask), labels)

    torch.manual_seed(0)
    return TrainStep(Masked().double(), masked(3), loss=cross_entropy, optimizer=AdamW(lr=1e-2))


def test_a_model_that_looks_at_its_batch_is_run_as_long_as_it_sees_the_same():
    step, eager, seen = looking(), looking(), [masked(3, seed=1), masked(7, seed=2)]
    parts = partition(step, 2)
    for _ in range(2):
        result = run_workers(step, parts, batches=seen, check=True, progress=False).wait()
        assert result.losses == pytest.approx([float(eager.eager(batch)) for batch in seen], rel=1e-12)
        assert result.difference.is_rounding
    assert_close(step, eager)
    with pytest.raises(StowageError, match="batch 2 leads to other calls than the step's own"):
        run_workers(step, parts, batches=[masked(1), masked(0)], progress=False).wait()
    run = run_workers(step, parts, steps=0, progress=False)
    with pytest.raises(StowageError, match="the partition plan is for another graph"):
        list(run.steps([masked(1), masked(0)]))


def test_gradients_of_an_earlier_eager_step_are_gone_as_after_any_run():
    step = classifier()
    step.eager()
    run_workers(step, partition(step, 2), steps=1, progress=False).wait()
    assert all(parameter.grad is None for parameter in step.materialize().model.parameters())


def test_state_that_no_op_touches_stays():
    step = classifier()
    step.materialize().model.register_buffer("unread", torch.arange(3.0))
    result = run_workers(step, partition(step, 2), steps=2, check=True, progress=False).wait()
    assert result.difference.is_rounding
    assert step.materialize().model.unread.tolist() == [0.0, 1.0, 2.0]


class OnceChanged(nn.Module):
    """Notes its first call in a Python variable, and every call if it counts them."""

    def __init__(self, most):
        super().__init__()
        self.linear, self.calls, self.most = nn.Linear(6, 4), 0, most

    def forward(self, x):
        self.calls = min(self.calls + 1, self.most)
        return self.linear(x)


def counting(most, **options):
    torch.manual_seed(0)
    return TrainStep(
        OnceChanged(most).double(), torch.randn(8, 6, dtype=torch.float64),
        loss=lambda model, x: model(x).square().mean(), optimizer=SGD(lr=0.1), **options,
    )  # fmt: skip


def test_a_python_variable_that_the_first_step_alone_changes_is_left_as_eager_leaves_it():
    step = counting(1)
    result = run_workers(step, partition(step, 2), steps=3, check=True, progress=False).wait()
    assert result.difference.is_rounding
    assert step.materialize().model.calls == 1


def test_steps_that_each_change_a_python_variable_are_made_one_at_a_time():
    step = counting(9, recapture=True)
    parts = partition(step, 2)
    with pytest.raises(StowageError, match="make one step at a time"):
        run_workers(step, parts, steps=2, progress=False).wait()
    assert step.materialize().model.calls == 0
    run_workers(step, parts, steps=1, progress=False).wait()
    assert step.materialize().model.calls == 1


def test_default_dtypes_are_those_of_the_process_that_asks():
    torch.manual_seed(0)
    step = TrainStep(
        nn.Linear(6, 4).double(), torch.randn(8, 6, dtype=torch.float64),
        loss=lambda model, x: ((model(x) > 0) * 0.1).sum() + model(x).square().sum(), optimizer=SGD(lr=0.1),
    )  # fmt: skip
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        difference = run_workers(step, partition(step, 2), steps=1, check=True, progress=False).wait().difference
    finally:
        torch.set_default_dtype(before)
    assert difference.is_rounding
    assert difference.relative < 1e-14


def test_a_step_that_computes_its_loss_in_less_precision_is_held_against_that():
    def loss(model, batch):
        return nn.functional.cross_entropy(model(batch[0]).bfloat16().float(), batch[1])

    step = classifier()
    step = TrainStep(step.materialize().model, step.materialize().batch, loss=loss, optimizer=SGD(lr=0.1))
    difference = run_workers(step, partition(step, 3), steps=1, check=True, progress=False).wait().difference
    assert difference.is_rounding
    assert 1e-12 < difference.noise < 0.1


def test_a_step_that_is_being_run_is_refused():
    step = classifier()
    parts, run = partition(step, 2), planner.run(step, steps=100_000, check=False, progress=False)
    with pytest.raises(StowageError, match="this step is being run"):
        run_workers(step, parts, progress=False).wait()
    run.cancel()


def test_modules_that_only_the_process_that_asks_has_imported_do_no_harm():
    rest = dict(sys.modules)  # pickle takes the first module that has a memory format in it: here one of the user's
    sys.modules.clear()
    sys.modules.update({"of_the_user": types.SimpleNamespace(torch=torch), **rest})
    try:
        step = classifier()
        result = run_workers(step, partition(step, 2), steps=1, progress=False).wait()
    finally:
        del sys.modules["of_the_user"]
    assert result.losses == pytest.approx([float(classifier().eager())], rel=1e-12)


def test_inference_is_run_too():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).double()
    step = InferenceStep(model, (torch.randn(6, 8, dtype=torch.float64),))
    result = run_workers(step, partition(step, 2), steps=1, check=True, progress=False).wait()
    torch.testing.assert_close(result.outputs[0], model(*step.batch_leaves()), rtol=1e-13, atol=1e-13)
    assert result.losses == ()
    assert result.difference.is_rounding


def when_steps_are_made(action, steps=5):
    """Progress that acts once, in another thread, when so many steps are made; where that fails, the run fails too."""
    acted, failures = threading.Event(), []

    def act():
        try:
            action()
        except Exception as error:
            failures.append(error)

    def progress(_share, doing):
        if failures:
            raise failures.pop()
        if doing.startswith(f"step {steps} ") and not acted.is_set():
            acted.set()
            threading.Thread(target=act).start()

    return progress


@pytest.mark.parametrize(
    ("sent", "said"),
    [(signal.SIGKILL, "worker 1 has ended unexpectedly"), (signal.SIGSTOP, "worker 1 has not answered for")],
)
def test_a_worker_that_is_killed_or_stopped_is_named_ends_all_and_changes_nothing(sent, said):
    step = classifier(rows=60_000)  # more than a socket holds: it is stopped while it is sent its part of the batch
    parts, before, ended = partition(step, 3), state_of(step), []

    def act():
        assert until(lambda: len(worker_processes()) == 3)  # those of an earlier run may still be about to end
        ended.append(time.monotonic())  # before, since the run may end at once
        os.kill(worker_processes()[1], sent)

    with pytest.raises(WorkerFailedError, match=said):
        run_workers(step, parts, steps=100_000, progress=when_steps_are_made(act)).wait()
    assert time.monotonic() - ended[0] < 10
    assert same(before, state_of(step))
    time.sleep(0.2)
    assert worker_processes() == []


class Rows(nn.Module):
    """Rows of a table, by the numbers that it is given."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(8, 6))

    def forward(self, numbers):
        return self.table[numbers].square().mean()


class Labelled(nn.Linear):
    """The loss of rows of numbers 0 to 7 as labels."""

    def __init__(self):
        super().__init__(4, 8)
        self.register_buffer("rows", torch.randn(8, 4))

    def forward(self, labels):
        return nn.functional.cross_entropy(super().forward(self.rows), labels)


@pytest.mark.parametrize(
    ("model", "pins", "wrong"),
    [
        (Rows, {"table": 0}, 8),
        (Rows, {"table": 0}, -9),
        (Labelled, {"nll_loss_forward": "c", "nll_loss_backward": "c"}, 8),
    ],
)
def test_a_number_beyond_a_table_or_the_classes_fails_as_in_eager_though_no_worker_has_all_of_them(model, pins, wrong):
    step = TrainStep(model(), torch.arange(8), loss=lambda model, numbers: model(numbers), optimizer=SGD(lr=0.1))
    parts = search_partition(capture(step), 2, pins=pins, evaluations=1).wait(progress=False)
    numbers = torch.tensor([0, 1, 2, 3, 4, 5, 6, wrong])
    with pytest.raises(IndexError):
        step.clone().eager(numbers)
    with pytest.raises(WorkerFailedError, match="raised IndexError in the forward pass of step 2"):
        run_workers(step, parts, batches=[torch.arange(8), numbers], steps=2, progress=False).wait()


def test_what_cannot_be_run_is_refused_before_a_worker_is_started():
    step = classifier()
    parts = partition(step, 2)
    with pytest.raises(StowageError, match="for another graph"):
        run_workers(convolutions(), parts, progress=False).wait()
    with pytest.raises(StowageError, match="give a PartitionPlan"):
        run_workers(step, search_partition(capture(step), 2), progress=False)
    with pytest.raises(StowageError, match="steps must be a whole number, at least 1, or 0 to get ready, got -1"):
        run_workers(step, parts, steps=-1, progress=False)
    with pytest.raises(StowageError, match="at least"):
        run_workers(step, parts, budget=100, progress=False).wait()
    with pytest.raises(StowageError, match="65 workers cannot be run on one machine; take at most 64"):
        run_workers(step, PartitionPlan("", (65,), (), (), ()), progress=False)
    assert worker_processes() == []


@pytest.mark.parametrize(
    ("shape", "cut"),
    [((24, 12), (slice(2, 14),)), ((12, 16), (slice(None), slice(2, 14))), ((24, 12), (slice(None, None, 2),))],
)
def test_a_batch_that_is_a_slice_is_divided_as_any_other(shape, cut):
    whole = classifier().materialize()
    batch = torch.randn(shape, dtype=torch.float64)[cut], whole.batch[1]
    step = TrainStep(whole.model, batch, loss=scaled_cross_entropy, optimizer=SGD(lr=0.1))
    parts = partition(step, 2)
    result = run_workers(step, parts, steps=2, check=True, progress=False).wait()
    assert result.difference.is_rounding, result.difference
    assert result.bytes_counted == result.bytes_predicted == parts.bytes_moved
    assert result.peak_bytes == result.planned_peak_bytes
