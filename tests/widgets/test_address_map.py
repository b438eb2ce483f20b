"""Boxes of address and time against the plan they come from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import zoo
from planner.capture import capture
from planner.errors import StowageError
from planner.profile import machine
from planner.swap import plan_swaps
from tests.widgets.steps import MIB, by_hand, plan_by_hand, real, real_plan
from widgets.figures._rectangle_merging import Rectangles, merged
from widgets.info import AddressMap, get_address_map

SPECS = [("mlp:optimizer=adam", "60%"), ("rnn:layers=2,hidden=64,steps=8,batch=32", "80%"), ("mlp", "100%")]


@pytest.mark.parametrize(("spec", "budget"), SPECS)
def test_every_residency_is_a_box(spec: str, budget: str) -> None:
    graph, plan = real(spec)[1], real_plan(spec, budget)
    info = get_address_map(graph, plan, axis="slots")
    boxes = zip(info.storage, info.start, info.stop, info.offset, info.bytes, info.names, info.kinds, strict=True)
    assert sorted(boxes) == sorted(
        (stay.storage, stay.start, stay.stop, stay.offset, size, graph.storages[stay.storage].name,
         graph.storages[stay.storage].kind.value)
        for stay in plan.residencies if (size := graph.storages[stay.storage].bytes)
    )  # fmt: skip
    assert info.peak_bytes == plan.peak_bytes <= info.budget_bytes
    assert info.end == len(graph.ops)


def overlaps(info: AddressMap) -> int:
    above = info.offset + info.bytes
    return sum(
        int(((info.start < info.stop[box]) & (info.start[box] < info.stop)
             & (info.offset < above[box]) & (info.offset[box] < above)).sum()) - 1
        for box in range(len(info.start))
    )  # fmt: skip


@pytest.mark.parametrize(("spec", "budget"), SPECS)
def test_boxes_never_overlap_in_slots_nor_in_seconds(spec: str, budget: str) -> None:
    graph, plan = real(spec)[1], real_plan(spec, budget)
    slots, seconds = get_address_map(graph, plan, axis="slots"), get_address_map(graph, plan)
    assert overlaps(slots) == 0
    assert overlaps(seconds) == 0
    assert (seconds.start <= seconds.stop).all()
    assert seconds.stop.max() <= plan.predicted.seconds


@pytest.mark.parametrize(("spec", "budget"), SPECS)
def test_the_copies_of_a_box_are_inside_of_it(spec: str, budget: str) -> None:
    info = get_address_map(real(spec)[1], real_plan(spec, budget))
    for copies in (info.copy_in, info.copy_out):
        copied = ~np.isnan(copies[:, 0])
        assert (info.start[copied] <= copies[copied, 0]).all()
        assert (copies[copied, 1] <= info.stop[copied]).all()


def test_the_plan_by_hand_in_seconds() -> None:
    graph = by_hand()
    info = get_address_map(graph, plan_by_hand(graph))
    boxes = {
        (name, start, stop, offset / MIB, size / MIB)
        for name, start, stop, offset, size in zip(
            info.names, info.start, info.stop, info.offset, info.bytes, strict=True
        )
    }
    assert boxes == {
        ("a.weight", 0, 7, 0, 4), ("b.weight", 0, 7, 4, 2), ("batch", 0, 1, 6, 1), ("a/mm", 0, 2.5, 7, 8),
        ("b/mm", 1, 3.5, 15, 3), ("b/mm/workspace", 1, 2, 18, 5), ("sum", 2.5, 7, 6, 0.5), ("a/mm", 3.5, 6, 7, 8),
        ("b/gradient", 5, 7, 15, 2),
    }  # fmt: skip
    left = info.names.index("a/mm")
    assert info.copy_out[left].tolist() == [1, 2.5]
    back = info.names.index("a/mm", left + 1)
    assert info.copy_in[back].tolist() == [3.5, 5]
    assert np.isnan(info.copy_in).sum() == np.isnan(info.copy_out).sum() == 2 * (len(boxes) - 1)
    area = 4 * 7 + 2 * 7 + 1 + 8 * 2.5 + 3 * 2.5 + 5 + 0.5 * 4.5 + 8 * 2.5 + 2 * 2
    assert info.used_share == pytest.approx(area / (23 * 7))
    assert info.moved == 1


def test_what_leaves_and_is_back_at_once_elsewhere_is_counted_once() -> None:
    graph = capture(zoo.load("gpt:layers=3,hidden=64,sequence=32,optimizer=adam"))
    plan = plan_swaps(graph, machine("v100-16gb"), "25%", time_limit=0)
    info = get_address_map(graph, plan)
    assert overlaps(info) == 0
    most = max(info.bytes[(info.start <= moment) & (moment < info.stop)].sum() for moment in info.start)
    assert most == plan.predicted.peak_bytes <= plan.peak_bytes


def test_the_summary_says_it_in_one_sentence() -> None:
    graph = by_hand()
    assert get_address_map(graph, plan_by_hand(graph)).summary == (
        "8 storages share 23.0 MiB of addresses within a budget of 24.0 MiB; 1 is swapped; "
        "37 % of the area is fragmentation."
    )


def test_another_graphs_plan_is_refused() -> None:
    with pytest.raises(StowageError, match="is not for"):
        get_address_map(by_hand(), real_plan("mlp", "100%"))


SIDES = st.tuples(st.floats(0, 90), st.floats(0.01, 10), st.integers(0, 900), st.integers(1, 90))


@given(st.lists(SIDES, min_size=1, max_size=60), st.integers(1, 40))
def test_merged_boxes_cover_the_same_area_to_a_pixel(sides: list[tuple[float, float, int, int]], most: int) -> None:
    left, width, low, height = (np.array(column, np.float64) for column in zip(*sides, strict=True))
    boxes = Rectangles(left, left + width, low, low + height, np.arange(len(left)))
    pixel = (0.5, 4.0)
    result = merged(boxes, pixel, most)
    assert len(result.left) <= max(most, 0) or most >= len(left)
    if len(left) <= most:
        assert result is boxes
        return
    for box in range(len(left)):  # no box is lost: its middle is inside some rectangle
        x, y = left[box] + width[box] / 2, low[box] + height[box] / 2
        assert ((result.left <= x) & (x <= result.right) & (result.low <= y) & (y <= result.high)).any()
    for one in np.flatnonzero(result.source >= 0):  # what is drawn as itself is as it was
        source = result.source[one]
        assert (result.left[one], result.high[one]) == (left[source], low[source] + height[source])
