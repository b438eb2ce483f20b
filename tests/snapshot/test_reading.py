"""What is read from a memory snapshot, against the counts of a simulated allocator."""

import pickle
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from caching_allocator import KIB, MIB, Allocator, frame
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner import StowageError, snapshot
from planner.snapshot import ACTIONS, NO_EVENTS, Action, MemorySnapshot
from tests.effort import EFFORT
from widgets.info import get_snapshot_map

TORCH = frame("/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", 134)
LIBRARY = frame("/opt/venv/lib/python3.11/site-packages/transformers/pytorch_utils.py", 101)
MODEL, SCRIPT = frame("/home/me/model.py", 12), frame("/home/me/train.py", 40, "<module>")
SIZES = (1, 512, 513, 300 * KIB, MIB, MIB + 1, 3 * MIB, 9 * MIB + 700 * KIB, 11 * MIB)


def read(data: Any, folder: Path, protocol: int = 4, **options: Any) -> MemorySnapshot:
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps(data, protocol))
    return snapshot.read(path, **options)


def played(seed: int, events: int = 120, device: int = 0) -> Allocator:
    """An allocator after random requests."""
    rng, allocator = random.Random(seed), Allocator(device)
    held: list[int] = []
    while len(allocator.events) < events:
        if held and rng.random() < 0.45:
            allocator.free(held.pop(rng.randrange(len(held))))
        elif rng.random() < 0.05:
            allocator.empty_cache()
        else:
            stack = [TORCH, frame("/home/me/model.py", rng.randrange(5)), SCRIPT]
            held.append(allocator.alloc(rng.choice(SIZES), rng.choice([stack, [], None])))
    return allocator


@settings(max_examples=25 * EFFORT, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    kept=st.one_of(st.just(1000), st.integers(1, 120)),
    protocol=st.sampled_from([2, 3, 4, 5]),
)
def test_levels_are_those_that_the_allocator_counted(
    tmp_path_factory: pytest.TempPathFactory, seed: int, kept: int, protocol: int
) -> None:
    """Also where the beginning of the trace is missing, because its buffer was full."""
    allocator = played(seed)
    found = read(allocator.snapshot(last=kept), tmp_path_factory.getbasetemp(), protocol)
    usage, spans = found.usage, found.reserved_spans
    counted = np.array(allocator.levels[-kept:])
    assert usage.reserved[1:].tolist() == counted[:, 2].tolist()
    # a free is counted when it is requested, and its block is in use until it is completed
    done = np.array([event["action"] != "free_requested" for event in allocator.events[-kept:]])
    assert usage.requested[1:][done].tolist() == counted[done, 1].tolist()
    # what was not split off a block is only known if its allocation, or the block itself, is left
    assert (usage.allocated[1:][done] <= counted[done, 0]).all()
    if kept >= len(allocator.events):
        assert usage.allocated[1:][done].tolist() == counted[done, 0].tolist()
        assert found.peak_allocated_bytes == max(level[0] for level in allocator.levels)
    assert usage.allocated[-1] == allocator.allocated
    for event in range(-1, len(counted)):  # where the segments are, not only how large
        there = (spans.start <= event) & (event < spans.end)
        assert spans.bytes[there].sum() == usage.reserved[event + 1]
    for block in found.allocations.alive_after(len(counted) - 1):
        address = found.allocations.address[block]
        assert any((spans.address[there] <= address) & (address < (spans.address + spans.bytes)[there]))


def test_a_peak_says_what_is_reserved_allocated_and_asked_for(tmp_path: Path) -> None:
    allocator = Allocator()
    allocator.alloc(1000, [TORCH, MODEL, SCRIPT])
    gone = allocator.alloc(30 * MIB, [TORCH, SCRIPT])
    allocator.free(gone)
    allocator.alloc(3 * MIB, [LIBRARY, TORCH])
    allocator.alloc(2 * MIB)
    found = read(allocator.snapshot(), tmp_path)
    peak = found.peak
    assert peak.reserved_bytes == 2 * MIB + 30 * MIB
    assert peak.allocated_bytes == 1024 + 30 * MIB
    assert peak.requested_bytes == 1000 + 30 * MIB
    assert peak.fragmentation_bytes == 2 * MIB - 1024
    assert peak.fragmentation == pytest.approx((2 * MIB - 1024) / (32 * MIB))
    assert [(one.line, one.bytes, one.allocations) for one in found.holders()] == [
        ("train.py:40", 30 * MIB, 1),
        ("model.py:12", 1024, 1),
    ]
    assert [(one.line, one.bytes) for one in found.holders(len(found.events) - 1)] == [
        ("pytorch_utils.py:101", 3 * MIB),
        ("", 2 * MIB),
        ("model.py:12", 1024),
    ]
    assert "8 events, peak 32 MiB reserved, 30 MiB of it allocated" in repr(found)


def test_lifetimes_are_pairs_of_events(tmp_path: Path) -> None:
    allocator = Allocator()
    first = allocator.alloc(512, [MODEL])
    allocator.free(first)
    assert allocator.alloc(700, [SCRIPT]) == first
    found = read(allocator.snapshot(), tmp_path)
    assert [ACTIONS[code].value for code in found.events.action] == [
        "segment_alloc", "alloc", "free_requested", "free_completed", "alloc",
    ]  # fmt: skip
    lives = found.allocations
    assert list(zip(lives.address, lives.bytes, lives.requested_bytes, lives.start, lives.end, strict=True)) == [
        (first, 512, 512, 1, 3),
        (first, 1024, 700, 4, 5),
    ]
    assert [found.line(stack) for stack in lives.stack] == ["model.py:12", "train.py:40"]


def without(data: dict[str, Any], *names: str) -> dict[str, Any]:
    for part in [*data["segments"], *(block for one in data["segments"] for block in one["blocks"])]:
        for name in names:
            part.pop(name, None)
    for event in data["device_traces"][0]:
        for name in names:
            event.pop(name, None)
    return data


LAYOUTS = {
    "C++ writes no compile context": lambda data: without(data, "compile_context", "user_metadata"),
    "no frames": lambda data: without(data, "frames"),
    "no times": lambda data: without(data, "time_us"),
    "pools of events": lambda data: [event.update(pool_id=(0, 1)) for event in data["device_traces"][0]] and data,
    "frames of FX": lambda data: [MODEL.update(fx_node_op="call_function")] and data,
    "no settings": lambda data: {name: data[name] for name in ("segments", "device_traces")},
    "addresses of blocks left out": lambda data: (
        [block.pop("address") for one in data["segments"] for block in one["blocks"]] and data
    ),
}


@pytest.mark.parametrize("change", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_is_read(tmp_path: Path, change: Any) -> None:
    allocator = played(3)
    found = read(change(deepcopy(allocator.snapshot())), tmp_path)
    assert found.usage.reserved[1:].tolist() == [level[2] for level in allocator.levels]
    assert found.usage.allocated[-1] == allocator.allocated


def test_segments_alone_are_what_is_held_now(tmp_path: Path) -> None:
    allocator = played(4)
    found = read(allocator.snapshot()["segments"], tmp_path)
    assert (found.peak.reserved_bytes, found.peak.allocated_bytes) == (allocator.reserved, allocator.allocated)


def test_expandable_segments_grow_and_shrink(tmp_path: Path) -> None:
    base, page = 0x7F00_0000_0000, 20 * MIB
    block = {"address": base, "size": page, "requested_size": page, "state": "active_pending_free", "frames": []}
    segment = {"device": 0, "address": base, "total_size": page, "stream": 7, "segment_type": "large",
               "is_expandable": True, "blocks": [block]}  # fmt: skip
    events = [
        {"action": "segment_map", "addr": base, "size": page, "stream": 7},
        {"action": "alloc", "addr": base, "size": page, "stream": 7},
        {"action": "segment_map", "addr": base + page, "size": page, "stream": 7},
        {"action": "oom", "device_free": 5 * MIB, "size": 64 * MIB, "stream": 7},
        {"action": "segment_unmap", "addr": base + page, "size": page, "stream": 7},
        {"action": "free_requested", "addr": base, "size": page, "stream": 7},
        {"action": "snapshot", "addr": 0, "size": 0, "stream": 0},
    ]
    found = read({"segments": [segment], "device_traces": [events]}, tmp_path)
    assert found.usage.reserved.tolist() == [0, page, page, 2 * page, 2 * page, page, page, page]
    assert found.usage.allocated.tolist() == [0, 0, *[page] * 6]  # it waits for another stream
    assert found.segments.expandable.tolist() == [True]
    (failed,) = found.events.where(Action.OOM)
    assert (found.events.bytes[failed], found.events.address[failed]) == (64 * MIB, 5 * MIB)


def test_without_events_it_says_that_its_peak_is_that_of_the_end(tmp_path: Path) -> None:
    allocator = Allocator()
    allocator.free(allocator.alloc(20 * MIB))
    allocator.alloc(3 * MIB)
    data = allocator.snapshot()
    assert NO_EVENTS not in repr(read(data, tmp_path))
    found = read({**data, "device_traces": []}, tmp_path)
    assert not found.has_events
    assert "no events were recorded, so its peak is what there is at the end: 20 MiB reserved, 3 MiB of" in repr(found)
    compared = snapshot.compare(found, planner.graph.GraphBuilder("empty").build())
    assert NO_EVENTS in compared.pairing
    assert NO_EVENTS in repr(compared)
    assert get_snapshot_map(found).summary.endswith(f"; {NO_EVENTS}.")


def test_of_several_devices_one_is_chosen(tmp_path: Path) -> None:
    both, other = played(5, device=0).snapshot(), played(6, device=1)
    both["segments"] += other.snapshot()["segments"]
    both["device_traces"] += other.snapshot()["device_traces"][1:]
    with pytest.raises(StowageError, match="it has 2 devices; choose one of 0, 1"):
        read(both, tmp_path)
    assert read(both, tmp_path, device=1).usage.reserved[1:].tolist() == [level[2] for level in other.levels]
    with pytest.raises(StowageError, match="it has nothing of device 2; choose 0, 1"):
        read(both, tmp_path, device=2)


@pytest.mark.parametrize(
    ("frames", "line"),
    [
        ([TORCH, MODEL, SCRIPT], "model.py:12"),
        ([TORCH, LIBRARY, SCRIPT], "train.py:40"),
        ([TORCH, LIBRARY], "pytorch_utils.py:101"),
        ([TORCH], ""),
        ([frame("??", 0, "at::native::mm"), frame("/src/aten/Blas.cpp", 7, "mm")], ""),
        ([frame("/opt/pytorch/torch/nn/modules/linear.py", 3), SCRIPT], "train.py:40"),
        ([frame("/opt/pytorch/torch/_tensor.py", 3), SCRIPT], "train.py:40"),
        ([frame("/home/torch/train.py", 3)], "train.py:3"),
        ([frame("/usr/lib/python3.12/contextlib.py", 81), SCRIPT], "train.py:40"),
        ([frame("C:\\me\\model.py", 5)], "model.py:5"),
        ([TORCH, frame("/tmp/ipykernel_12/345.py", 2)], "cell:2"),
    ],
)
def test_a_line_is_the_users(tmp_path: Path, frames: list[dict[str, Any]], line: str) -> None:
    allocator = Allocator()
    allocator.alloc(512, frames)
    assert [one.line for one in read(allocator.snapshot(), tmp_path).holders()] == [line]
