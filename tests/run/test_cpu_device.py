"""The CPU as a device: streams in order, events between them, threads that always end."""

from __future__ import annotations

import threading

import pytest
import torch

from planner.errors import StowageError
from planner.machine import Link
from planner.run import CpuDevice


def stowage_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("stowage")]


@pytest.mark.parametrize("link", [None, Link(4e8, 5e8, 1e-4)], ids=["unlimited", "paced"])
def test_copies_go_both_ways_and_wait_for_events(link: Link | None) -> None:
    size = 300_001
    device = CpuDevice(size, size, link)
    try:
        device.begin()
        done, there, back = device.event(), device.event(), device.event()
        device.arena.copy_(torch.arange(size) % 251)
        device.compute.record(done)
        device.swap_out.wait(done)
        device.swap_out.copy(device.host, device.arena)
        device.swap_out.record(there)
        device.swap_in.wait(there)
        device.swap_in.copy(device.arena[:100], device.host[-100:])
        device.swap_in.record(back)
        device.compute.wait(back)
        device.synchronize()
        expected = (torch.arange(size) % 251).to(torch.uint8)
        assert torch.equal(device.host, expected)
        assert torch.equal(device.arena[100:], expected[100:])
        assert torch.equal(device.arena[:100], expected[-100:])
        outs, ins = device.copy_seconds(0.0)
        assert len(outs) == len(ins) == 1
        assert outs[0][0] <= outs[0][1] <= ins[0][0] <= ins[0][1]
    finally:
        device.close()


def test_work_in_a_stream_keeps_its_order() -> None:
    device = CpuDevice(64, 64)
    try:
        device.begin()
        for byte in range(200):
            device.swap_in.fill(device.arena, byte)
        device.synchronize()
        assert bool((device.arena == 199).all())
    finally:
        device.close()


def test_slabs_are_exactly_as_large_as_asked_and_cannot_grow() -> None:
    device = CpuDevice(1001, 0)
    try:
        assert len(device.arena) == device.arena.untyped_storage().nbytes() == 1001
        assert len(device.host) == 0
        assert device.arena.data_ptr() % 64 == 0
        with pytest.raises(RuntimeError):
            device.arena.resize_(5000)
    finally:
        device.close()


def test_a_failing_copy_reaches_whoever_waits() -> None:
    device = CpuDevice(64, 64)
    try:
        device.begin()
        never = device.event()
        device.swap_out.copy(device.host[:3], device.arena[:5])
        device.swap_out.record(never)
        with pytest.raises(RuntimeError, match="stopped"):
            device.compute.wait(never)
        with pytest.raises(RuntimeError, match="stopped"):
            device.synchronize()
    finally:
        device.close()
    assert stowage_threads() == []


def test_a_wait_before_any_record_is_for_nothing_as_it_is_on_a_gpu() -> None:
    device = CpuDevice(64, 64)
    try:
        event = device.event()
        for _ in range(2):
            device.begin()  # forgets the records of the step before
            device.compute.wait(event)
            device.swap_out.wait(event)
            device.synchronize()
            device.swap_in.record(event)
            device.swap_out.wait(event)
            device.swap_out.copy(device.host, device.arena)
            device.synchronize()
            assert device.copied() == (1, 0)  # nothing had to be recorded for it
    finally:
        device.close()


def test_a_wait_is_for_the_record_that_was_latest_at_the_call() -> None:
    device = CpuDevice(64, 64, Link(1e-9, 1e-9, 0.0))  # no copy ever ends
    try:
        device.begin()
        event, done = device.event(), device.event()
        device.compute.record(event)
        device.swap_out.wait(event)
        device.swap_in.copy(device.arena, device.host)
        device.swap_in.record(event)
        device.swap_out.fill(device.host[:1], 7)
        device.swap_out.record(done)
        device.compute.wait(done)
        assert device.host[0] == 7
    finally:
        device.close()


def test_closing_ends_threads_that_wait_for_what_never_comes() -> None:
    device = CpuDevice(64, 64, Link(1e-9, 1e-9, 0.0))
    device.begin()
    never = device.event()
    device.swap_in.copy(device.arena, device.host)
    device.swap_in.record(never)
    device.swap_out.wait(never)
    assert len(stowage_threads()) == 2
    device.close()
    assert stowage_threads() == []


def test_memory_that_is_not_there_is_a_sentence() -> None:
    with pytest.raises(StowageError, match="smaller budget"):
        CpuDevice(1 << 60, 0)
    assert stowage_threads() == []


def test_what_a_collective_raises_reaches_whoever_waits_for_it() -> None:
    def lost() -> None:
        raise ConnectionError("worker 1 is gone")

    device = CpuDevice(64, 64)
    try:
        device.begin()
        done = device.event()
        device.communication.launch(lost, (), {})
        device.communication.record(done)
        with pytest.raises(RuntimeError) as caught:
            device.compute.wait(done)
        assert isinstance(caught.value.__cause__, ConnectionError)
        with pytest.raises(RuntimeError):
            device.synchronize()
    finally:
        device.close()


def test_a_step_whose_peer_never_comes_can_be_cancelled_and_its_device_closed() -> None:
    class CancelledError(Exception):
        pass

    def cancel() -> None:
        if waits:
            raise CancelledError

    waits: list[bool] = []
    comes = threading.Event()
    device = CpuDevice(64, 64, check_cancelled=cancel)
    try:
        device.begin()
        done = device.event()
        device.communication.launch(comes.wait, (), {})
        device.communication.record(done)
        waits.append(True)
        with pytest.raises(CancelledError):
            device.compute.wait(done)
    finally:
        device.close()
        comes.set()
