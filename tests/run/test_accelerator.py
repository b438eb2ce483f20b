"""An accelerator's file, on streams and events that do as little and as late as CUDA allows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from planner.cancel import Cancelled
from planner.capture import capture
from planner.errors import StowageError
from planner.plan import SwapPlan
from planner.run import Executor, same_bits
from planner.run.devices.accelerator.accelerator_streams import AcceleratorStream, reached
from planner.run.devices.accelerator.bit_difference import bits_differ
from tests.effort import combinations
from tests.run.lazy_device import SCHEDULES
from tests.run.lazy_driver import PIECES, LazyAccelerator, TorchEvent
from tests.run.plans import resident_plan
from tests.run.steps import ALL
from tests.run.test_races import STEPS, plan_of, step_of

Fault = Callable[[LazyAccelerator], None]


def run_on(device: LazyAccelerator, name: str, plan: SwapPlan, *, stress: bool = False) -> bool:
    step, expected = step_of(name)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        executor = Executor(capture(step), plan, device, stress=stress)
        with device.engine.watching():
            executor.load(step.state())
            for _ in range(STEPS):
                executor.step(step.batch_leaves())
            state = executor.state()
            return all(same_bits(state[key], expected[key]) for key in expected)


@pytest.mark.parametrize(("name", "schedule"), combinations(list(ALL), [*SCHEDULES, 1, 2]))
def test_in_every_order_that_events_allow_the_bits_are_eagers_and_nothing_races(name: str, schedule: str | int) -> None:
    plan = plan_of(name, "80%")
    device = LazyAccelerator(plan.peak_bytes, plan.host_bytes, schedule)
    assert run_on(device, name, plan)
    assert device.engine.races == []
    assert device.engine.void_waits == 0
    device.close()


@pytest.mark.parametrize("name", ALL)
def test_poison_is_issued_in_order_too(name: str) -> None:
    plan = plan_of(name, "80%")
    device = LazyAccelerator(plan.peak_bytes, plan.host_bytes, "copies first")
    assert run_on(device, name, plan, stress=True)
    assert device.engine.races == []


def test_a_load_waits_for_what_an_abandoned_step_has_issued() -> None:
    plan, (step, expected) = plan_of("mlp", "80%"), step_of("mlp")
    device = LazyAccelerator(plan.peak_bytes, plan.host_bytes)
    left = [0]  # points of the step at which it may be cancelled until it is

    def cancel() -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Cancelled

    executor = Executor(capture(step), plan, device, check_cancelled=cancel)
    with device.engine.watching(), torch.random.fork_rng():
        executor.load(step.state())
        left[0] = 5
        with pytest.raises(Cancelled):
            executor.step(step.batch_leaves())
        executor.load(step.state())
        torch.manual_seed(1)
        for _ in range(STEPS):
            executor.step(step.batch_leaves())
        found = executor.state()
        assert all(same_bits(found[key], expected[key]) for key in expected)
    assert device.engine.races == []
    device.close()


def without_the_callers_stream(device: LazyAccelerator) -> None:
    """A step's streams do not wait for what the caller has issued."""
    device.begin = device.mark  # type: ignore[method-assign]


def forgets(stream: str) -> Fault:
    def fault(device: LazyAccelerator) -> None:
        """A stream neither begins after the caller nor is waited for."""

        class Forgetful(LazyAccelerator):
            @property
            def _streams(self) -> tuple[AcceleratorStream, ...]:
                return tuple(one for one in super()._streams if one is not getattr(self, stream))

        device.__class__ = Forgetful

    return fault


def fills_in_the_callers_stream(device: LazyAccelerator) -> None:
    """A fill is issued to no stream."""
    for stream in (device.compute, device.swap_out, device.swap_in):
        stream.fill = Tensor.fill_  # type: ignore[assignment, method-assign]


def fills_as_pytorch_does(device: LazyAccelerator) -> None:
    """A fill of memory of the host is given to a stream that it does not know."""
    device.driver.fill = lambda stream, target, byte: device.driver.call(  # type: ignore[method-assign]
        stream, target.fill_, (byte,), {}
    )


def copies_in_the_callers_stream(stream: str) -> Fault:
    def fault(device: LazyAccelerator) -> None:
        """A copy is issued to no stream."""
        getattr(device, stream).copy = lambda target, source: target.copy_(source)

    return fault


def copies_in_another_stream(device: LazyAccelerator) -> None:
    """Copies of one direction are issued to the stream of the other, and their events to their own."""
    device.swap_in.copy = device.swap_out.copy  # type: ignore[method-assign]


def launches_in_the_callers_stream(device: LazyAccelerator) -> None:
    """Kernels are issued to no stream."""
    device.compute.launch = lambda function, args, kwargs: function(*args, **kwargs)  # type: ignore[method-assign]


def records_in_another_stream(device: LazyAccelerator) -> None:
    """Events of copies in are recorded in the stream of kernels."""
    device.swap_in.record = device.compute.record  # type: ignore[method-assign]


def records_late(device: LazyAccelerator) -> None:
    """An event is recorded after whoever waits for it has asked."""
    record, kept = device.swap_out.record, list[Any]()

    def late(event: Any) -> None:
        kept.append(event)
        if len(kept) > 1:
            record(kept.pop(0))

    device.swap_out.record = late  # type: ignore[method-assign]


def waits_for_the_first_record(device: LazyAccelerator) -> None:
    """Waits are for the first record that an event ever had."""
    wait, first = device.compute.wait, dict[int, Any]()

    def stale(event: TorchEvent) -> None:
        kept = TorchEvent(device.engine, timed=False)
        kept.records.latest = first.setdefault(id(event), event.records.latest)
        wait(kept)

    device.compute.wait = stale  # type: ignore[method-assign]


FAULTS: dict[str, Fault] = {
    "a step that does not wait for the caller": without_the_callers_stream,
    "compute forgotten": forgets("compute"),
    "swap-outs forgotten": forgets("swap_out"),
    "swap-ins forgotten": forgets("swap_in"),
    "fills in the caller's stream": fills_in_the_callers_stream,
    "fills of the host that no stream orders": fills_as_pytorch_does,
    "swap-outs in the caller's stream": copies_in_the_callers_stream("swap_out"),
    "swap-ins in the caller's stream": copies_in_the_callers_stream("swap_in"),
    "copies in another stream": copies_in_another_stream,
    "kernels in the caller's stream": launches_in_the_callers_stream,
    "records in another stream": records_in_another_stream,
    "records after the wait": records_late,
    "waits for an old record": waits_for_the_first_record,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_device_with_a_fault_is_found(fault: str) -> None:
    races: list[str] = []
    resident = resident_plan(capture(step_of("mlp")[0]))  # begins with an op, the other with a copy
    for name, plan in (("convolutions", plan_of("convolutions", "80%")), ("mlp", resident)):
        device = LazyAccelerator(plan.peak_bytes, plan.host_bytes, "copies first")
        FAULTS[fault](device)
        with suppress(StowageError, RuntimeError, IndexError):  # kernels may refuse what they find
            run_on(device, name, plan, stress="fills" in fault)
        races += device.engine.races
    assert races


def test_pinned_memory_is_released_when_no_stream_uses_it() -> None:
    device = LazyAccelerator(64, 64)
    done: list[bool] = []
    device.swap_out.launch(lambda: done.append(device.driver.memory.released), (), {})
    device.close()
    assert done == [False]
    assert device.driver.memory.released
    assert len(device.arena) == len(device.host) == 0


def test_it_is_released_though_a_stream_has_failed() -> None:
    device = LazyAccelerator(64, 64)

    def fail() -> None:
        raise RuntimeError("an illegal access")

    done: list[bool] = []
    device.compute.launch(fail, (), {})
    device.swap_in.launch(lambda: done.append(device.driver.memory.released), (), {})
    with pytest.raises(RuntimeError, match="an illegal access"):
        device.close()
    assert done == [False]
    assert device.driver.memory.released


def test_waiting_for_the_streams_ends_where_the_run_is_cancelled() -> None:
    asked: list[bool] = []

    def cancel() -> None:
        asked.append(True)
        raise Cancelled

    device = LazyAccelerator(64, 64, check_cancelled=cancel)
    for _ in range(2 * PIECES):
        device.compute.launch(lambda: None, (), {})
    with pytest.raises(Cancelled):
        device.synchronize()
    assert asked
    device.close()


def test_progress_is_what_the_streams_have_reached() -> None:
    device = LazyAccelerator(64, 64)
    start = device.begin()
    device.synchronize()
    marks = [device.mark() for _ in range(5)]
    device.swap_out.copy(device.host[:8], device.arena[:8])
    device.swap_in.copy(device.arena[8:16], device.host[8:16])
    assert device.passed([]) == 0
    device.synchronize()
    assert device.passed(marks) == 5
    assert device.copied() == (1, 1)
    seconds = device.seconds(start, marks)
    assert seconds == sorted(seconds)
    outs, ins = device.copy_seconds(start)
    assert all(0 <= begin <= end for begin, end in (*outs, *ins))
    assert len(outs) == len(ins) == 1
    device.begin()
    assert device.copied() == (0, 0)
    device.close()


def test_the_timeline_of_a_step_has_every_op_and_every_copy() -> None:
    plan = plan_of("mlp", "80%")
    step, _ = step_of("mlp")
    device = LazyAccelerator(plan.peak_bytes, plan.host_bytes)
    executor = Executor(capture(step), plan, device)
    executor.load(step.state())
    timeline = executor.step(step.batch_leaves()).timeline
    assert len(timeline.compute) == len(plan.order)
    assert len(timeline.swap_out) == len(plan.swap_outs)
    assert len(timeline.swap_in) == len(plan.swap_ins)
    assert timeline.seconds >= timeline.compute.max()
    device.close()


@given(st.integers(0, 40), st.integers(0, 40))
def test_how_many_events_are_reached_is_found_among_those_of_a_stream(many: int, done: int) -> None:
    events = [Reached(number < done) for number in range(many)]
    assert reached(events) == min(many, done)


class Reached:
    def __init__(self, done: bool) -> None:
        self.query = lambda: done


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex64])
def test_a_difference_of_one_bit_is_found_and_a_nan_is_like_itself(dtype: torch.dtype) -> None:
    ours = [torch.ones(3, 5, dtype=dtype), torch.ones((), dtype=dtype), torch.ones(0, dtype=dtype)]
    theirs = [one.clone() for one in ours]
    differ = bits_differ(ours, theirs)
    assert not differ()
    if dtype.is_floating_point:
        ours[0][1, 1] = theirs[0][1, 1] = torch.nan
        assert not differ()
        ours[1].fill_(0.0)
        theirs[1].fill_(-0.0)
        assert differ()
        ours[1].copy_(theirs[1])
    assert not differ()
    theirs[0].view(torch.uint8)[-1, -1] ^= 1
    assert differ()


def test_all_pieces_of_a_large_tensor_are_compared() -> None:
    ours, theirs = torch.zeros(2**24 + 8, dtype=torch.uint8), torch.zeros(2**24 + 8, dtype=torch.uint8)
    differ = bits_differ([ours], [theirs])
    assert not differ()
    theirs[-1] = 1
    assert differ()
