"""A run is a handle: it returns at once, can be looked at, waited for and cancelled, and leaves no thread behind."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace

import psutil
import pytest
import torch
from torch import Tensor, nn

from planner.capture import capture
from planner.errors import StowageError
from planner.machine import Link, op_seconds
from planner.plan import validate
from planner.profile import machine
from planner.progress import Progress
from planner.run import Run, run, same_bits
from planner.run.prepare.found_plan import found_plan
from planner.step import InferenceStep, TrainStep
from planner.swap import plan_swaps, search_swaps
from tests.run.steps import branches, convolutions, gpt
from tests.run.test_stopping import WORDS, assert_as_eager_left_it, words

MANY = 1_000_000


def stowage_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("stowage")]


def until(condition: Callable[[], object]) -> None:
    while not condition():
        time.sleep(0.002)


def without_threads() -> bool:
    """Whether the run's threads end, soon enough for a test to see it."""
    for _ in range(2000):
        if not stowage_threads():
            return True
        time.sleep(0.005)
    return False


class Gate:
    """A progress callback that holds a run up where it says a word."""

    def __init__(self, word: str) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        self._word = word

    def __call__(self, share: float, doing: str) -> None:
        if doing.startswith(self._word):
            self.reached.set()
            self.open.wait()


def test_it_returns_before_anything_is_done_and_ends_with_the_result() -> None:
    gate = Gate("capturing")
    running = run(gpt(), budget="100%", steps=2, check=True, progress=gate)
    gate.reached.wait()
    assert (running.progress.state, running.progress.step, running.progress.steps) == ("running", 0, 2)
    assert (running.plan, running.result, running.losses, running.timeline) == (None, None, (), None)
    gate.open.set()
    result = running.wait()
    assert result.mismatches == ()
    progress = running.progress
    assert (progress.state, progress.step, progress.steps, progress.share) == ("done", 2, 2, 1.0)
    assert running.losses == result.losses
    assert running.step_seconds == result.step_seconds
    assert running.timelines == result.timelines
    assert running.timeline is result.timelines[-1]
    assert running.plan is result.plan
    assert running.error is None
    assert validate(result.plan, capture(gpt()).with_workspaces(dict(result.plan.workspaces))) == []
    assert progress.seconds == running.progress.seconds >= sum(result.step_seconds)
    with pytest.raises(FrozenInstanceError):
        progress.step = 3  # type: ignore[misc]


def test_steps_can_be_seen_while_others_are_made() -> None:
    gate = Gate("step 3 of")
    running = run(branches(), steps=4, progress=gate)
    gate.reached.wait()
    assert running.progress.step == len(running.losses) == len(running.timelines) == 2
    assert running.progress.doing == "step 3 of 4"
    seen = running.result
    assert seen is not None
    assert seen.losses == running.losses
    gate.open.set()
    assert running.wait().losses[:2] == seen.losses


def test_waiting_for_a_while_gives_what_there_is_or_says_that_there_is_nothing() -> None:
    gate = Gate("step 2 of")
    running = run(branches(), steps=2, progress=gate)
    gate.reached.wait()
    assert len(running.wait(seconds=0).losses) == 1
    gate.open.set()
    assert len(running.wait(seconds=100).losses) == 2
    gate = Gate("capturing")
    running = run(branches(), progress=gate)
    with pytest.raises(StowageError, match="no step is finished after 0 seconds"):
        running.wait(seconds=0)
    gate.open.set()
    running.wait()


def test_its_progress_is_one_whole_from_the_capture_to_the_last_step() -> None:
    step, told = branches(), list[tuple[float, str]]()
    first = run(step, budget="60%", steps=4, remeasure=True, progress=lambda *each: told.append(each)).wait()
    run(step, first.plan, steps=4, progress=lambda *each: told.append(each)).wait()
    shares = [share for share, _ in told]
    ends = [place for place, share in enumerate(shares) if share == 1.0]
    assert len(ends) == 2
    assert ends[-1] == len(told) - 1
    for part in (shares[: ends[0] + 1], shares[ends[0] + 1 :]):
        assert part == sorted(part)
        assert part[0] == 0.0
    assert [doing for _, doing in told].count("step 4 of 4") == 2


def test_cancelling_lets_the_step_end_and_keeps_what_was_made() -> None:
    step = words()
    reference, generator = step.clone(), torch.get_rng_state()
    running = run(step, budget="100%", steps=MANY)
    until(lambda: running.progress.step >= 3)
    running.cancel()
    running.cancel()
    assert running.progress.doing in {"stopping", "stopped"}
    result = running.wait()
    assert running.progress.state == "cancelled"
    assert 3 <= len(result.losses) < MANY
    assert_as_eager_left_it(step, reference, generator, len(result.losses))
    assert stowage_threads() == []
    running.cancel()
    assert running.wait().losses == result.losses


@pytest.mark.parametrize("moment", ["capturing", "measuring", "planning", "step 1 of"])
def test_cancelled_before_its_first_step_a_run_has_changed_nothing(moment: str) -> None:
    step = words()
    reference, generator = step.clone(), torch.get_rng_state()
    gate = Gate(moment)
    running = run(step, budget="90%", remeasure=True, progress=gate)
    gate.reached.wait()
    running.cancel()
    gate.open.set()
    with pytest.raises(StowageError, match="cancelled before it had made a step"):
        running.wait()
    assert running.progress.state == "cancelled"
    assert_as_eager_left_it(step, reference, generator, 0)
    assert stowage_threads() == []
    assert run(step, budget="90%", check=True).wait().mismatches == ()


class Slow(nn.Module):
    """Takes minutes a step: more than anyone waits for who cancels."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(100):
            x = torch.relu(self.layer(x))
        return x


def test_a_step_that_takes_long_is_abandoned_in_its_middle() -> None:
    step = TrainStep(Slow, lambda: torch.randn(4, 8), loss=lambda model, x: model(x).square().mean())
    plan = plan_swaps(capture(step), machine("cpu"), "60%", method="swap", time_limit=0)
    assert len(plan.swap_outs) > 10
    step.materialize()
    before = {key: value.clone() for key, value in step.state().items()}
    running = run(step, plan, steps=1, link_bandwidth=1.0)  # a byte a second
    until(lambda: running.progress.doing == "step 1 of 1")
    until(lambda: running.snapshots)
    running.cancel()
    with pytest.raises(StowageError, match="cancelled"):
        running.wait()
    assert all(same_bits(value, before[key]) for key, value in step.state().items())
    assert stowage_threads() == []


def test_a_run_that_fails_in_its_second_step_keeps_the_first() -> None:
    step = words()
    reference, generator = step.clone(), torch.get_rng_state()

    def spoil(share: float, doing: str) -> None:
        if doing.startswith("step 2 of"):
            step.batch_leaves()[0][4] = WORDS

    running = run(step, budget="100%", steps=5, progress=spoil)
    with pytest.raises(StowageError, match="out of range"):
        running.wait()
    with pytest.raises(StowageError, match="out of range"):
        running.wait()
    assert running.progress.state == "failed"
    assert isinstance(running.error, StowageError)
    assert running.result is not None
    assert len(running.result.losses) == len(running.losses) == 1
    assert_as_eager_left_it(step, reference, generator, 1)
    assert stowage_threads() == []


def _runs(thing: object, plan: object) -> bool:
    """Whether it is what makes a plan's steps; other tests' may be alive still, closed and without a plan."""
    return type(thing).__name__ == "Executor" and getattr(thing, "plan", None) is plan


def test_an_error_keeps_no_arena() -> None:
    step = words()
    made: list[weakref.ref[torch.Tensor]] = []

    def spoil(share: float, doing: str) -> None:
        if doing.startswith("step 2 of"):
            step.batch_leaves()[0][4] = WORDS
            made.extend(weakref.ref(o) for o in gc.get_objects() if _runs(o, running.plan))

    running = run(step, budget="100%", steps=5, progress=spoil)
    with pytest.raises(StowageError):
        running.wait()
    gc.collect()
    assert made
    assert [ref() for ref in made] == [None] * len(made)
    assert running.error is not None


@pytest.mark.parametrize(("slower", "time_limit", "state"), [(1, 20.0, "cancelled"), (10**9, 1.2, "paused")])
def test_planning_ends_when_it_has_taken_longer_than_it_could_still_save(
    slower: int, time_limit: float, state: str
) -> None:
    graph, laptop = capture(gpt()), machine("laptop")  # large enough for a search that does not end by itself
    fast = laptop.host_link
    link = Link(fast.bandwidth / slower, fast.duplex_bandwidth / slower, fast.latency * slower)
    times = slower * op_seconds(graph, laptop)
    search = search_swaps(graph, replace(laptop, host_link=link), "60%", seconds=times, time_limit=time_limit)
    plan = found_plan(search, 3, Progress())
    assert search.progress.state == state
    saved = 3 * (plan.predicted.seconds - search.progress.bound_seconds)
    assert (saved < search.progress.seconds) == (state == "cancelled")


def test_what_goes_wrong_in_planning_is_raised_by_waiting() -> None:
    running = run(convolutions(), budget="1%")
    with pytest.raises(StowageError, match="too small"):
        running.wait()
    assert running.progress.state == "failed"
    assert running.result is None


def test_a_run_that_is_forgotten_ends() -> None:
    step = branches()
    running = run(step, steps=MANY)
    while not running.progress.step:
        time.sleep(0.002)
    handle = weakref.ref(running)
    del running
    assert handle() is None  # its thread does not hold on to it
    assert without_threads()
    made = step.materialize().steps
    assert 0 < made < MANY
    assert run(step, steps=1, check=True).wait().mismatches == ()


def test_a_run_that_is_forgotten_while_it_is_planned_ends() -> None:
    gate = Gate("measuring")
    running = run(branches(), remeasure=True, progress=gate)
    gate.reached.wait()
    del running
    gate.open.set()
    assert without_threads()


def test_a_cell_that_is_run_again_leaves_one_run() -> None:
    step = branches()
    for _ in range(5):
        running = run(branches(), steps=MANY)
        until(lambda running=running: running.progress.step or running.error)
        assert running.error is None
    running.cancel()
    running.wait()
    assert without_threads()
    assert run(step, steps=1).wait().losses


def test_no_thread_of_the_system_stays_either() -> None:
    torch.set_num_threads(2)
    try:
        step = convolutions()
        run(step, budget="100%", steps=1, check=True).wait()
        step.eager()
        before = psutil.Process().num_threads()
        for _ in range(2):
            run(step, budget="100%", steps=1, check=True).wait()
        until(lambda: psutil.Process().num_threads() <= before)  # those of OpenMP end when they next get to run
    finally:
        torch.set_num_threads(1)


def test_a_step_is_run_by_one_run_at_a_time() -> None:
    model = nn.Linear(4, 4)
    step = TrainStep(model, torch.ones(2, 4), loss=lambda model, x: model(x).square().mean())
    running = run(step, steps=MANY)
    for other in (step, InferenceStep(model, torch.ones(2, 4))):
        with pytest.raises(StowageError, match="being run"):
            run(other)
    apart: Run = run(branches(), steps=1)
    apart.wait()
    running.cancel()
    after = run(step, steps=1)  # waits for the one that was cancelled, and goes on where that ended
    assert len(after.wait().losses) == 1
    assert step.materialize().steps == len(running.wait().losses) + 1
    running = run(step, steps=1)
    running.wait()


def test_models_that_share_layers_are_run_by_one_run_at_a_time() -> None:
    def step(model: nn.Module) -> TrainStep:
        return TrainStep(model, torch.ones(2, 4), loss=lambda model, x: model(x).square().mean())

    shared = nn.Linear(4, 4)
    whole, other = nn.Sequential(shared, nn.Tanh()), nn.Sequential(nn.Linear(4, 4), shared)
    running = run(step(whole), steps=MANY)
    for model in (shared, other):
        with pytest.raises(StowageError, match="shares parameters with it"):
            run(step(model))
    run(step(other[0]), steps=1).wait()
    running.cancel()
    assert len(run(step(other), steps=1, check=True).wait().losses) == 1


def test_two_cancelled_and_gone_on_with_draw_as_one() -> None:
    step = words()
    reference, generator = step.clone(), torch.get_rng_state()
    first = run(step, budget="100%", steps=MANY)
    until(lambda: first.progress.step)
    first.cancel()
    second = run(step, budget="100%", steps=2).wait()
    made = len(first.wait().losses)
    assert len(second.losses) == 2
    assert_as_eager_left_it(step, reference, generator, made + 2)


DOOR = threading.Lock()


class Held(nn.Module):
    """Waits as long as somebody holds the door."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        with DOOR:
            return self.layer(x).square().mean()


def test_begun_while_another_is_compared_with_eager_it_draws_as_if_it_were_alone() -> None:
    def hold(share: float, doing: str) -> None:
        if doing.startswith("step 1 of"):
            torch.manual_seed(5)  # from here on the program and the other run draw from sequences of their own
            DOOR.acquire()
            held.set()

    held, step = threading.Event(), words()
    reference = step.clone()
    other = run(TrainStep(Held(), torch.ones(2, 4), loss=lambda model, x: model(x)), steps=1, check=True, progress=hold)
    held.wait()
    until(lambda: torch.initial_seed() != 5)  # the eager step has borrowed the program's generator
    threading.Timer(0.1, DOOR.release).start()
    running = run(step, budget="100%", steps=2)
    other.wait()
    running.wait()
    torch.manual_seed(5)
    losses = [float(reference.eager().detach()) for _ in range(2)]
    assert list(running.losses) == losses


def test_it_says_how_far_it_is() -> None:
    running = run(branches(), steps=2)
    running.wait()
    assert repr(running) == "<Run of Branches: done, 2 of 2 steps made, done>"
