"""A run on workers is a handle: it returns at once, is looked at, cancelled, trained with, and leaves no process."""

import gc
import os
import signal
import threading
import warnings

import pytest
import torch
from torch import nn
from worker_processes import worker_processes

from planner.errors import StowageError
from planner.run import Stopped, WorkerFailedError, run, run_workers
from planner.step import AdamW, InferenceStep, TrainStep
from tests.run.workers.steps import assert_close, classifier, loader, partition, same, state_of, until

MANY = 100_000


class Gate:
    """A progress callback that holds a run up where it says a word."""

    def __init__(self, word):
        self.reached, self.open = threading.Event(), threading.Event()
        self._word = word

    def __call__(self, _share, doing):
        if doing.startswith(self._word):
            self.reached.set()
            self.open.wait()


def no_processes():
    return until(lambda: not worker_processes())


def test_it_returns_before_anything_is_done_and_can_be_looked_at_while_steps_are_made():
    step = classifier()
    parts, before = partition(step, 2), state_of(step)
    gate, later = Gate("capturing"), Gate("step 3 of")
    run = run_workers(step, parts, steps=3, progress=lambda *each: (gate(*each), later(*each)))
    assert gate.reached.wait(30)
    assert (run.progress.state, run.progress.step, run.progress.steps) == ("running", 0, 3)
    assert (run.plans, run.result, run.losses, run.worker_steps) == (None, None, (), ())
    assert repr(run) == "<WorkersRun of Sequential on 2 workers: running, 0 of 3 steps made, capturing the step>"
    gate.open.set()
    assert later.reached.wait(60)
    assert run.progress.step == len(run.losses) == len(run.worker_steps) == 2
    assert len(run.wait(seconds=0).losses) == 2
    assert same(before, state_of(step))
    later.open.set()
    result = run.wait()
    progress = run.progress
    assert (progress.state, progress.step, progress.share) == ("done", 3, 1.0)
    assert run.losses == result.losses
    assert run.step_seconds == result.step_seconds == tuple(max(each.seconds) for each in run.worker_steps)
    assert {sum(each.received_bytes) for each in run.worker_steps} == {result.bytes_predicted}
    assert run.worker_steps[-1].peak_bytes == result.peak_bytes
    assert run.plans == result.plans
    assert no_processes()


def test_cancelling_lets_the_step_end_and_keeps_what_was_made():
    step, eager = classifier(dropout=0.4), classifier(dropout=0.4)
    parts = partition(step, 2)
    torch.manual_seed(11)
    run = run_workers(step, parts, steps=MANY, progress=False)
    assert until(lambda: run.progress.step >= 3)
    run.cancel()
    run.cancel()
    result = run.wait()
    assert run.progress.state == "cancelled"
    made = len(result.losses)
    assert 3 <= made < MANY
    after = torch.get_rng_state()
    torch.manual_seed(11)
    for _ in range(made):
        eager.eager()
    assert_close(step, eager)
    assert torch.equal(torch.get_rng_state(), after)
    assert no_processes()
    with pytest.raises(StowageError, match=r"was cancelled; begin another one with planner\.run_workers"):
        next(run.steps(loader()))


def test_control_c_while_waiting_keeps_what_was_made():
    step, eager = classifier(), classifier()
    acted = threading.Event()

    def press(_share, doing):
        if doing.startswith("step 3 of") and not acted.is_set():
            acted.set()
            os.kill(os.getpid(), signal.SIGINT)
            assert until(lambda: run.progress.doing == "stopping")

    parts = partition(step, 2)
    run = run_workers(step, parts, steps=5, progress=press)
    with pytest.raises(Stopped, match="stopped after 2 of 5 steps") as stopped:
        run.wait()
    for _ in stopped.value.result.losses:
        eager.eager()
    assert_close(step, eager)


@pytest.mark.parametrize("moment", ["capturing", "planning", "starting", "step 1 of"])
def test_cancelled_before_its_first_step_a_run_has_changed_nothing(moment):
    step = classifier()
    gate, parts, before = Gate(moment), partition(step, 2), state_of(step)
    run = run_workers(step, parts, progress=gate)
    assert gate.reached.wait(60)
    run.cancel()
    gate.open.set()
    with pytest.raises(StowageError, match="cancelled before it had made a step"):
        run.wait()
    assert same(before, state_of(step))
    assert no_processes()


def test_a_run_that_is_forgotten_ends_and_the_step_can_be_run_again():
    step = classifier()
    parts = partition(step, 2)
    runs = [run_workers(step, parts, steps=MANY, progress=False)]
    assert until(lambda: runs[0].progress.step >= 1)
    runs.clear()
    gc.collect()
    assert no_processes()
    assert run_workers(step, parts, steps=1, progress=False).wait().losses


def test_batches_are_trained_on_as_eager_pytorch_would_and_the_model_includes_each_step():
    step, eager = classifier(AdamW(lr=1e-2), dropout=0.3), classifier(AdamW(lr=1e-2), dropout=0.3)
    run = run_workers(step, partition(step, 2), steps=0, progress=False)
    assert run.wait().losses == ()
    processes = worker_processes()
    assert len(processes) == 2
    for _ in range(2):
        torch.manual_seed(11)
        losses = []
        for batch in loader(3):
            losses.append((float(eager.eager(batch)), state_of(eager)))
        after = torch.get_rng_state()
        torch.manual_seed(11)
        for loss, (expected, state) in zip(run.steps(loader(3)), losses, strict=True):
            assert loss == pytest.approx(expected, rel=1e-12)
            for key, value in step.state().items():
                torch.testing.assert_close(value, state[key], rtol=1e-9, atol=1e-11)
        assert torch.equal(torch.get_rng_state(), after)
    assert_close(step, eager)
    assert worker_processes() == processes
    assert (run.progress.state, run.progress.step) == ("done", 6)
    run.close()
    assert no_processes()


def test_what_is_changed_between_two_steps_is_followed():
    def trained(step, steps):
        losses = []
        for number, loss in enumerate(steps):
            losses.append(float(loss))
            with torch.no_grad():
                step.materialize().model[0].weight.mul_(0.9)
            if number == 1:
                step.materialize().model[3].bias.data.fill_(0.5)
        return losses

    step, eager = classifier(), classifier()
    batches = list(loader(4))
    run = run_workers(step, partition(step, 2), steps=1, progress=False)
    run.wait()
    eager.eager()
    expected = trained(eager, (eager.eager(batch) for batch in batches))
    assert trained(step, run.steps(batches)) == pytest.approx(expected, rel=1e-11)
    assert_close(step, eager)
    step.materialize().model[2].p = 0.5
    with pytest.raises(StowageError, match="for another graph"):
        next(run.steps(batches))


def test_a_loop_that_is_left_early_has_made_the_steps_whose_losses_came():
    step, eager = classifier(), classifier()
    run = run_workers(step, partition(step, 2), steps=0, progress=False)
    batches = list(loader(3))
    for _ in run.steps(batches):
        break
    eager.eager(batches[0])
    assert_close(step, eager)
    with pytest.raises(StowageError, match=r"has shape \(5, 12\)"):
        list(run.steps([batches[1], tuple(part[:5] for part in batches[0])]))
    eager.eager(batches[1])
    assert_close(step, eager)
    del run
    gc.collect()
    assert no_processes()


def test_a_worker_that_is_killed_between_steps_is_named_and_others_take_over():
    step, eager = classifier(), classifier()
    run = run_workers(step, partition(step, 2), steps=0, progress=False)
    batches = list(loader(3))
    steps = run.steps(batches)
    next(steps)
    os.kill(worker_processes()[1], signal.SIGKILL)
    with pytest.raises(WorkerFailedError, match="worker 1 has ended unexpectedly; all workers were ended"):
        next(steps)
    eager.eager(batches[0])
    assert_close(step, eager)
    assert len(list(run.steps(batches[1:]))) == 2
    eager.eager(batches[1])
    eager.eager(batches[2])
    assert_close(step, eager)


def test_what_has_no_loss_has_no_steps():
    step = InferenceStep(nn.Linear(8, 4), (torch.randn(6, 8),))
    run = run_workers(step, partition(step, 2), steps=0, progress=False)
    with pytest.raises(StowageError, match="make a TrainStep of the model"):
        next(run.steps([torch.randn(6, 8)]))


def stepped_by(scheduler, losses):
    """The losses of a loop that steps a scheduler after each, as PyTorch's users do."""
    found = []
    for loss in losses:
        found.append(float(loss))
        scheduler.step()
    return found


@pytest.mark.parametrize(
    "begin",
    [
        lambda step: run(step, steps=0, check=False, progress=False),
        lambda step: run_workers(step, partition(step, 2), steps=0, progress=False),
    ],
    ids=["one device", "workers"],
)
def test_a_scheduler_that_is_stepped_in_a_loop_finds_an_optimizer_that_has_made_steps(begin):
    step, eager = scheduled(), scheduled()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler = torch.optim.lr_scheduler.StepLR(step.torch_optimizer, 1, 0.5)
        going = begin(step)
        losses = stepped_by(scheduler, going.steps([step.batch] * 3))
    scheduler = torch.optim.lr_scheduler.StepLR(eager.torch_optimizer, 1, 0.5)
    assert losses == pytest.approx(stepped_by(scheduler, (eager.eager() for _ in range(3))), rel=1e-12)
    assert_close(step, eager)


def scheduled():
    torch.manual_seed(0)
    step = classifier()
    model = step.materialize().model
    return TrainStep(model, step.batch, loss=step.loss, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))


def test_a_run_is_cancelled_in_the_middle_of_making_a_workers_graph():
    step, shares = classifier(), []
    reached, cancelled = threading.Event(), threading.Event()

    def progress(share, doing):
        if doing == "making the graph of worker 0":
            shares.append(share)
            if len(shares) == 3:
                reached.set()
                cancelled.wait()

    run = run_workers(step, partition(step, 2), progress=progress)
    assert reached.wait(60)
    run.cancel()
    cancelled.set()
    with pytest.raises(StowageError, match="the run was cancelled before it had made a step"):
        run.wait()
    assert len(shares) == 3
