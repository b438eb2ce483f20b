"""Snapshots say what was in the arena while steps were made: what the timeline says afterwards."""

from __future__ import annotations

import time
from dataclasses import FrozenInstanceError
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.capture import capture
from planner.plan import SwapPlan, Timeline
from planner.profile import prepare
from planner.run import run
from planner.run.devices.accelerator.device_memory import DeviceMemory
from planner.run.loop import monitor as monitor_module
from planner.run.loop.gpu_memory import gpu_memory
from planner.run.loop.monitor import Monitor
from planner.swap import plan_swaps
from tests.run.steps import ALL


def slow(model: str, budget: str) -> tuple[SwapPlan, float]:
    """A plan and a link that makes its step take a second or so."""
    ready = prepare(ALL[model](), "cpu")
    plan = plan_swaps(ready.graph, ready.machine, budget, seconds=ready.seconds, time_limit=1)
    sizes = {storage.id: storage.bytes for storage in capture(ALL[model]()).storages}
    moved = sum(sizes[copy.storage] for copy in (*plan.swap_outs, *plan.swap_ins))
    return plan, moved / 1.5


@pytest.mark.parametrize("model", ["mlp", "convolutions", "lstm"])
def test_snapshots_say_what_the_timeline_says_and_never_more_than_the_plan(model: str) -> None:
    plan, bandwidth = slow(model, "45%")
    running = run(ALL[model](), plan, steps=2, link_bandwidth=bandwidth)
    result = running.wait()
    seen = running.snapshots
    assert len(seen) > 10
    for snapshot in seen:
        assert 0 <= snapshot.slot <= len(plan.order)
        assert 0 < snapshot.bytes <= plan.peak_bytes
        assert snapshot.bytes in levels(result.timelines[snapshot.step], snapshot.slot)
    for before, after in pairwise(seen):
        assert before.seconds < after.seconds
        assert (before.step, before.slot) <= (after.step, after.slot)
    assert {snapshot.step for snapshot in seen} == {0, 1}
    assert len({snapshot.bytes for snapshot in seen}) > 2
    assert seen[-1].seconds <= running.progress.seconds


def levels(timeline: Timeline, slot: int) -> set[int]:
    """What was in use at some moment between the end of the op before a slot and the end of the op in it."""
    n = len(timeline.compute)
    start = timeline.compute[slot - 1, 1] if slot else 0.0
    stop = timeline.compute[slot, 1] if slot < n else timeline.seconds
    first = int(np.searchsorted(timeline.sample_seconds, start, "right")) - 1
    last = int(np.searchsorted(timeline.sample_seconds, stop, "right"))
    return set(timeline.sample_bytes[max(first - 1, 0) : last + 1].tolist())


def test_a_snapshot_is_frozen_and_those_taken_stay() -> None:
    plan, bandwidth = slow("lstm", "45%")
    running = run(ALL["lstm"](), plan, steps=1, link_bandwidth=bandwidth)
    while len(running.snapshots) < 3:
        time.sleep(0.01)
    some = running.snapshots
    running.wait()
    assert running.snapshots[: len(some)] == some
    with pytest.raises(FrozenInstanceError):
        some[0].bytes = 0  # type: ignore[misc]


def test_however_long_a_run_is_its_snapshots_are_few_and_cover_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_module, "_PERIOD", 0.0)
    looks = 0

    def look() -> tuple[int, int, int]:
        nonlocal looks
        looks += 1
        return looks, 0, 1

    watch = Monitor(time.perf_counter())
    with watch.watching(look, 0):
        while looks < 20_000:
            time.sleep(0.001)
    steps = [snapshot.step for snapshot in watch.snapshots]
    assert 1000 < len(steps) <= 4096
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == (1, looks)


@given(*(st.integers(0, 50) for _ in range(6)))
def test_what_is_in_use_on_a_gpu_is_told_apart_without_a_rest(
    arena: int, scratch: int, kept: int, more: int, before: int, others: int
) -> None:
    held = before + arena + more
    parts = gpu_memory(DeviceMemory(held + others, held, before), arena, scratch, kept)
    assert parts.in_use == held + others
    assert (parts.arena, parts.others) == (arena, before + others)
    assert (parts.libraries, parts.temporaries) == (min(kept, more), min(scratch, more - min(kept, more)))
    assert parts.rounding >= 0


def test_a_monitor_sees_what_everyone_takes_of_a_gpu_and_keeps_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_module, "_PERIOD", 0.0)
    monitor, taken = Monitor(0.0), iter([5, 9, 7])

    def memory() -> DeviceMemory:
        return DeviceMemory(next(taken, 7), 3, 1)

    with monitor.watching(lambda: (0, 0, 1), 0, memory):
        while len(monitor.snapshots) < 4:
            time.sleep(0.001)
    assert [(one.gpu_bytes, one.allocator_bytes) for one in monitor.snapshots[:4]] == [(5, 3), (9, 3), (7, 3), (7, 3)]
    assert monitor.most == DeviceMemory(9, 3, 1)


def test_the_memory_of_a_gpu_is_seen_after_steps_too_short_for_a_snapshot() -> None:
    monitor = Monitor(0.0)
    with monitor.watching(lambda: (0, 0, 1), 0, lambda: DeviceMemory(9, 3, 1)):
        pass
    assert monitor.most == DeviceMemory(9, 3, 1)


def test_the_cpu_has_no_memory_of_its_own() -> None:
    running = run(ALL["mlp"](), steps=1, check=False)
    assert running.wait().gpu_memory is None
    assert {(one.gpu_bytes, one.allocator_bytes) for one in running.snapshots} <= {(0, 0)}
