"""A run leaves nothing behind: no threads, no memory, and after a failure no change."""

from __future__ import annotations

import gc
import threading
from contextlib import closing
from itertools import pairwise

import psutil
import pytest
import torch

from planner.capture import capture
from planner.errors import StowageError
from planner.run import CpuDevice, Executor, run, same_bits
from tests.run.steps import branches, gpt, planned


def test_an_op_that_raises_leaves_the_model_as_it_was() -> None:
    step = gpt()
    capture(step)
    plan = planned(step, "50%")
    tokens = step.batch_leaves()[0]
    tokens[1, 3] = 10**6  # no such word: found out in the middle of the forward pass
    before = {key: value.clone() for key, value in step.state().items()}
    generator = torch.get_rng_state()
    with pytest.raises(StowageError, match="IndexError"):
        run(step, plan, stress=True).wait()
    assert [key for key, value in step.state().items() if not same_bits(value, before[key])] == []
    assert torch.equal(torch.get_rng_state(), generator)
    assert not any(thread.name.startswith("stowage") for thread in threading.enumerate())
    tokens[1, 3] = 0
    assert run(step, plan, check=True).wait().mismatches == ()


def test_threads_end_with_the_run() -> None:
    before = set(threading.enumerate())
    run(branches(), budget="70%", steps=1).wait()
    assert set(threading.enumerate()) == before


def test_fifty_more_steps_take_no_more_memory() -> None:
    step = branches()
    plan = planned(step, "70%")
    assert plan.swap_outs
    with closing(CpuDevice(plan.peak_bytes, plan.host_bytes)) as device:
        executor = Executor(capture(step), plan, device)
        executor.load(step.state())
        batch = step.batch_leaves()

        def measure(steps: int) -> tuple[int, int]:
            for _ in range(steps):
                executor.step(batch)
            gc.collect()
            return psutil.Process().memory_info().rss, len(gc.get_objects())

        seen = [measure(50) for _ in range(4)]
    grown = [(later[0] - earlier[0], later[1] - earlier[1]) for earlier, later in pairwise(seen)]
    # the allocator takes some more now and then; a leak takes more every time
    assert min(resident for resident, _ in grown) < 50 * (4 << 10)
    assert min(objects for _, objects in grown) < 50


def test_memory_goes_back_when_the_executor_ends() -> None:
    step = branches()
    plan = planned(step, "70%")
    with closing(CpuDevice(plan.peak_bytes, plan.host_bytes)) as device:
        Executor(capture(step), plan, device)
        assert len(device.arena) == plan.peak_bytes
    assert len(device.arena) == len(device.host) == 0
