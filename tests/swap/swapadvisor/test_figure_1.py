"""The first figure as it is drawn: the four times of the paper, and timelines that keep its rules."""

from itertools import pairwise

import pytest

from planner.swap.methods.swapadvisor.figure_1 import figure_1

CASES = figure_1()
INPUTS = {
    "Conv1": ("A0", "W1"), "Conv2": ("A0", "W2"), "Conv3": ("A2", "W3"), "Conv4": ("A3", "W4"), "Concat": ("A1", "A4"),
}  # fmt: skip


def name_of(case):
    return f"{case.schedule}, {case.pool}"


def test_each_pool_has_another_best_schedule():
    """Cases b, c, e and d of the figure; that the planner gets these times is proven in `test_swap_planner.py`."""
    assert [case.units for case in CASES] == [6, 7, 7, 6]
    assert [case.schedule for case in CASES] == ["left branch first", "right branch first"] * 2
    assert len({case.pool for case in CASES}) == 2


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_stream_does_one_thing_at_a_time_at_the_speed_of_the_link(case):
    for stream in ("compute", "out", "in"):
        spans = sorted((span for span in case.spans if span.stream == stream), key=lambda span: span.start)
        assert all(one.stop <= other.start for one, other in pairwise(spans))
        for span in spans:
            assert span.stop - span.start == (2 if span.name == "A2" else 1)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_an_op_begins_when_what_it_needs_is_there(case):
    ops = {span.name: span for span in case.spans if span.stream == "compute"}
    assert set(ops) == {"Data", *INPUTS}
    for span in case.spans:
        users = [ops[name].start for name, inputs in INPUTS.items() if span.name in inputs]
        if span.stream == "in":
            assert span.stop <= max(users), span
    for span in case.spans:
        if span.stream == "out":
            makers = [f"Conv{span.name[1]}"] if span.name != "A0" else ["Data"]
            assert all(ops[maker].stop <= span.start for maker in makers), span
