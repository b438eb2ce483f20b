"""What workers send each other arrives, in parts of any size and groups of any kind, and a lost worker is noticed."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from planner.capture import capture
from planner.errors import StowageError
from planner.partition import PartitionPlan, coarsen, optimize
from planner.run import run_workers
from planner.run.workers.communication import transports
from planner.run.workers.communication.shared_memory import SharedMemory, exchange_bytes
from planner.run.workers.communication.transport import PeerLostError
from planner.step import SGD, TrainStep

WORKERS = 3


@pytest.fixture
def ends():
    """Shared memory between three workers, which are threads here."""
    folder, name = transports.shared_folder(WORKERS, "shared memory")
    assert name == "shared memory"
    made = [SharedMemory(folder, worker, WORKERS) for worker in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as threads:
        list(threads.map(SharedMemory.connect, made))
        yield made, threads
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


def content(sender, receiver, number, size):
    generator = torch.Generator().manual_seed(sender * 100 + receiver * 10 + number)
    return torch.randint(256, (size,), dtype=torch.uint8, generator=generator)


sizes = st.sampled_from([0, 1, 1000, 2**18 - 1, 2**18, 2**18 + 1, 600_000])
delays = st.sampled_from([0.0, 0.0, 0.0002, 0.005])  # within the time that others look for something, and longer
exchanges = st.lists(
    st.tuples(
        st.sampled_from([(0, 1), (1, 2), (0, 2), (0, 1, 2)]), st.lists(sizes, min_size=9, max_size=9),
        st.lists(delays, min_size=3, max_size=3),
    ),
    min_size=1, max_size=6,
)  # fmt: skip


def test_every_part_arrives_whatever_the_sizes_and_whoever_takes_part_and_is_late(ends):
    made, threads = ends

    @settings(max_examples=40, deadline=None)
    @given(exchanges)
    def check(rounds):
        def work(worker):
            for number, (group, sizes, late) in enumerate(rounds):
                if worker not in group:
                    continue
                time.sleep(late[worker])
                others = [peer for peer in group if peer != worker]
                sends = {peer: content(worker, peer, number, sizes[worker * 3 + peer]) for peer in others}
                receives = {peer: torch.zeros(sizes[peer * 3 + worker], dtype=torch.uint8) for peer in others}
                made[worker].exchange(sends, receives)
                for peer, part in receives.items():
                    assert torch.equal(part, content(peer, worker, number, len(part)))

        list(threads.map(work, range(WORKERS)))

    check()


def test_a_worker_that_is_gone_is_noticed_in_an_exchange(ends):
    made, _ = ends
    made[2].close()
    part = {2: torch.zeros(8, dtype=torch.uint8)}
    with pytest.raises(PeerLostError, match="worker 2 is gone"):
        made[0].exchange(part, part)


def large_step():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(300, 701), nn.ReLU(), nn.Linear(701, 300)).double()
    return TrainStep(
        model, torch.randn(9, 300, dtype=torch.float64), loss=lambda model, x: model(x).square().mean(),
        optimizer=SGD(lr=0.1),
    )  # fmt: skip


def test_numbers_are_the_same_over_every_transport():
    plan = PartitionPlan.of(optimize(coarsen(capture(large_step(), progress=False)), 2))
    found = {}
    for name in transports.TRANSPORTS:
        step = large_step()
        result = run_workers(step, plan, transport=name, steps=2, check=True, progress=False).wait()
        assert result.transport == name
        assert result.difference.is_rounding
        assert result.bytes_counted == result.bytes_predicted
        assert result.peak_bytes == result.planned_peak_bytes
        found[name] = result.losses, [value.detach().clone() for value in step.state().values()]
    (losses, state), (other_losses, other_state) = found.values()
    assert losses == other_losses
    assert all(torch.equal(one, other) for one, other in zip(state, other_state, strict=True))


def test_gloo_stands_in_where_there_is_too_little_shared_memory(monkeypatch):
    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    before = set(Path("/dev/shm").glob("stowage-*"))
    folder, name = transports.shared_folder(4, None)
    folder.rmdir()
    assert name == "gloo"
    with pytest.raises(StowageError, match=r'4 workers need 6 MiB of shared memory.* or take transport="gloo"'):
        transports.shared_folder(4, "shared memory")
    assert set(Path("/dev/shm").glob("stowage-*")) == before


def test_many_workers_take_no_more_shared_memory_than_a_container_has():
    headers = [128 * workers * (workers - 1) for workers in (2, 8, 64)]
    assert [exchange_bytes(workers) for workers in (2, 8, 64)] == [
        size + header for size, header in zip([2**20, 28 * 2**20, 63 * 2**19], headers, strict=True)
    ]


def test_an_unknown_transport_is_refused():
    with pytest.raises(StowageError, match="there is no transport 'nccl': take one of 'shared memory', 'gloo'"):
        transports.shared_folder(2, "nccl")
