"""The map of a memory snapshot shows each block where and when it was, over what was reserved."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from caching_allocator import MIB, Allocator, frame

import widgets
from planner import StowageError, snapshot
from planner.snapshot import MemorySnapshot
from tests.snapshot.test_reading import played, read, without
from widgets.info import HELD, Held, get_snapshot_map


def small(folder: Path) -> MemorySnapshot:
    allocator = Allocator()
    allocator.alloc(30 * MIB)
    begun = len(allocator.events)
    inside = allocator.alloc(4 * MIB, [frame("/home/me/model.py", 7)])
    allocator.alloc(2 * MIB)
    allocator.free(inside)
    return read(allocator.snapshot(last=len(allocator.events) - begun), folder)


def test_a_block_is_where_it_was_without_the_addresses_between_segments(tmp_path: Path) -> None:
    info = get_snapshot_map(small(tmp_path), "slots")
    boxes = zip(info.held, info.lines, info.start, info.stop, info.offset, info.bytes, strict=True)
    assert sorted((HELD[held].value, line, *rest) for held, line, *rest in boxes) == [
        (Held.THROUGHOUT.value, "", 0, 5, 0, 30 * MIB),
        (Held.BY_LINE.value, "model.py:7", 1, 4, 30 * MIB, 4 * MIB),
        (Held.UNKNOWN.value, "", 2, 5, 34 * MIB, 2 * MIB),
    ]
    assert info.reserved.tolist() == [[0, 5, 0, 30 * MIB], *[[0, 5, at * MIB, size * MIB] for at, size in [(30, 20)]]]
    assert (info.span_bytes, info.peak_bytes) == (50 * MIB, 50 * MIB)


def test_no_two_blocks_overlap(tmp_path: Path) -> None:
    info = get_snapshot_map(read(played(11).snapshot(), tmp_path), "slots")
    for at in np.unique(info.start):
        there = (info.start <= at) & (at < info.stop)
        order = np.argsort(info.offset[there])
        low, high = info.offset[there][order], (info.offset + info.bytes)[there][order]
        assert (high[:-1] <= low[1:]).all()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("axis", ["slots", "seconds"])
def test_it_is_drawn_in_one_trace_for_each_colour(tmp_path: Path, theme: Any, axis: Any) -> None:
    found = small(tmp_path)
    figure = widgets.snapshot_map(found, axis=axis, theme=theme)
    assert [trace.name for trace in figure.data] == ["reserved", *(held.value for held in HELD)]
    assert figure.layout.meta["summary"].startswith("3 blocks in 50.0 MiB of reserved memory at the peak")
    assert any("model.py:7" in text for trace in figure.data for text in trace.hovertext or ())


def test_without_times_it_says_so(tmp_path: Path) -> None:
    found = read(without(played(2).snapshot(), "time_us"), tmp_path)
    with pytest.raises(StowageError, match='says nothing about when its events were; choose axis="slots"'):
        widgets.snapshot_map(found)
    assert widgets.snapshot_map(found, axis="slots").data


def test_segments_alone_are_drawn_as_they_are(tmp_path: Path) -> None:
    assert widgets.snapshot_map(read(played(2).snapshot()["segments"], tmp_path)).data


def test_names_are_never_read_as_markup(tmp_path: Path) -> None:
    allocator = Allocator()
    allocator.alloc(4 * MIB, [frame("/home/<script>alert(1)<b>%{y}$x$.py", 7)])
    path = tmp_path / "<script>%{y}.pickle"
    path.write_bytes(pickle.dumps(allocator.snapshot()))
    figure = widgets.snapshot_map(snapshot.read(path), axis="slots")
    shown = [figure.layout.title.text, *(text for trace in figure.data for text in trace.hovertext or ())]
    assert sum("&lt;script&gt;" in text for text in shown) == 2
    assert not any(mark in text for mark in ("<script", "%{", "$x") for text in shown)
