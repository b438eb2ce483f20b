"""A run that is stopped, by an op that raises or by Ctrl-C, leaves the last finished step behind."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout

from planner.capture import AdamW, InferenceStep, TrainStep
from planner.errors import StowageError
from planner.run import run, same_bits
from planner.run.interrupts import uninterrupted

WORDS = 12


class Words(nn.Module):
    """Draws random numbers, and keeps a running statistic."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.norm, self.scores = nn.Embedding(WORDS, 8), nn.BatchNorm1d(8), nn.Linear(8, WORDS)

    def forward(self, words: Tensor) -> Tensor:
        return self.scores(dropout(self.norm(self.table(words)), 0.25))


def words() -> TrainStep:
    torch.manual_seed(3)
    return TrainStep(
        Words,
        lambda: (torch.randint(0, WORDS, (6,)), torch.randint(0, WORDS, (6,))),
        loss=lambda model, batch: cross_entropy(model(batch[0]), batch[1]),
        optimizer=AdamW(lr=lambda step: 0.1 / (step + 1)),
    )


def assert_as_eager_left_it(step: TrainStep, reference: TrainStep, generator: Tensor, steps: int) -> None:
    """So many eager steps from the same start give the same state, random numbers and, going on, the same again."""
    after = torch.get_rng_state()
    torch.set_rng_state(generator)
    for _ in range(steps):
        reference.eager()
    assert torch.equal(after, torch.get_rng_state())
    expected = reference.state()
    assert all(same_bits(value, expected[key]) for key, value in step.state().items())
    assert step.materialize().steps == reference.materialize().steps == steps


@pytest.mark.parametrize("good_steps", [0, 1, 3])
@pytest.mark.parametrize("check", [False, True])
def test_an_op_that_raises_is_named_and_the_steps_before_it_stay(good_steps: int, check: bool) -> None:
    step = words()
    reference, generator = step.clone(), torch.get_rng_state()

    def spoil(share: float, doing: str) -> None:
        if doing.startswith(f"step {good_steps + 1} of"):
            step.batch_leaves()[0][4] = WORDS

    with pytest.raises(StowageError) as stopped:
        run(step, budget="100%", steps=good_steps + 2, check=check, progress=spoil).wait()
    sentence = str(stopped.value)
    for said in ("aten.embedding", "module table (Embedding)", "IndexError", "out of range", "eager"):
        assert said in sentence
    assert f"step {good_steps + 1}" in sentence
    assert "\n" not in sentence
    assert isinstance(stopped.value.__cause__, IndexError)
    assert_as_eager_left_it(step, reference, generator, good_steps)


@pytest.mark.parametrize("done", [0, 2])
def test_control_c_leaves_the_last_finished_step(done: int) -> None:
    step = words()
    reference, generator = step.clone(), torch.get_rng_state()
    waits, running = threading.Event(), []

    def press(share: float, doing: str) -> None:
        waits.wait()
        if doing.startswith(f"step {done + 1} of"):
            os.kill(os.getpid(), signal.SIGINT)
            while running[0].progress.doing != "stopping":
                time.sleep(0.001)

    running.append(run(step, budget="100%", steps=5, progress=press))
    waits.set()
    with pytest.raises(KeyboardInterrupt) as stopped:
        running[0].wait()
    if done:
        assert str(stopped.value) == f"stopped after {done} of 5 steps"
        assert len(stopped.value.result.losses) == done
    assert running[0].progress.state == "cancelled"
    assert_as_eager_left_it(step, reference, generator, done)
    result = run(step, budget="100%", steps=2, check=True).wait()
    assert result.mismatches == ()


@pytest.mark.parametrize("seconds", [0.0005, 0.003, 0.01, 0.02, 0.05])
def test_control_c_at_any_moment_leaves_whole_steps(seconds: float) -> None:
    step = words()
    reference, generator = step.clone(), torch.get_rng_state()
    main = threading.get_ident()
    pressing = threading.Timer(seconds, lambda: signal.pthread_kill(main, signal.SIGINT))

    def report(share: float, doing: str) -> None:
        if doing.startswith("step 1 of"):
            pressing.start()

    with pytest.raises(KeyboardInterrupt):
        run(step, budget="100%", steps=100_000, progress=report).wait()
    assert_as_eager_left_it(step, reference, generator, step.materialize().steps)


def test_measuring_is_left_in_the_middle_of_a_round_of_ops() -> None:
    layers = [nn.Linear(512, 512) for _ in range(60)]
    step = InferenceStep(nn.Sequential(*layers), torch.zeros(2048, 512))
    began = time.perf_counter()
    step.eager()
    whole = time.perf_counter() - began
    asked = []

    def press(share: float, doing: str) -> None:
        if doing.startswith("measuring ops") and not asked:
            threading.Timer(whole / 4, lambda: (asked.append(time.perf_counter()), running.cancel())).start()

    running = run(step, budget="100%", remeasure=True, progress=press)
    with pytest.raises(StowageError, match="cancelled before"):
        running.wait()
    ended = time.perf_counter()
    assert running.progress.state == "cancelled"
    assert ended - asked[0] < whole / 2, "it went on to the end of the round"


def test_control_c_waits_for_what_must_be_whole() -> None:
    done = []

    @uninterrupted()
    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all of it"]
