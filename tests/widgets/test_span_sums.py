"""What is in a span of a step, against sums by hand and over the whole step."""

from itertools import pairwise

import numpy as np
import pytest

from planner.errors import StowageError
from planner.plan import bytes_copied
from tests.widgets.steps import MIB, by_hand, plan_by_hand, real, real_plan
from widgets.info import get_address_map, get_memory_by_kind, get_span_sums

SPEC = "mlp:optimizer=adam"


def test_a_span_of_time_sums_up_what_is_there_then_and_what_streams_do() -> None:
    graph = by_hand()
    sums = get_span_sums(graph, plan_by_hand(graph), (1.5, 3))
    assert [graph.storages[storage].name for storage in sums.storages] == [
        "a.weight", "b.weight", "a/mm", "b/mm", "sum", graph.storages[7].name,
    ]  # fmt: skip
    assert sums.bytes == 22.5 * MIB
    assert sums.by_group == {"parameters": 6 * MIB, "activations": 11.5 * MIB, "workspace": 5 * MIB}
    assert list(sums.by_module.items()) == [("a", 12 * MIB), ("b", 10 * MIB), ("in no module", 0.5 * MIB)]
    assert sums.most_bytes == 22 * MIB
    assert sums.bytes_out == pytest.approx(8 * MIB / 1.5)  # of a copy from 1 to 2.5
    assert (sums.bytes_in, sums.swap_in_seconds, sums.collective_seconds) == (0, 0, 0)
    assert (sums.compute_seconds, sums.swap_out_seconds) == (1, 1)
    assert sums.summary == (
        "6 storages are in this span, 6.00 MiB of parameters, 11.5 MiB of activations, 5.00 MiB of workspace; "
        "at most 22.0 MiB at once."
    )


def test_what_only_touches_it_is_not_in_it() -> None:
    graph = by_hand()
    plan = plan_by_hand(graph)
    between = get_span_sums(graph, plan, (2.5, 3.5))  # the first activation has left, and comes back from then on
    assert 3 not in between.storages
    assert (between.bytes_out, between.bytes_in) == (0, 0)
    among = get_span_sums(graph, plan, (0, 7), (7 * MIB, 15 * MIB))
    assert among.storages == (3,)
    assert (among.bytes, among.most_bytes) == (8 * MIB, 8 * MIB)  # counted once, though it comes back
    assert (among.bytes_out, among.bytes_in) == (8 * MIB, 8 * MIB)
    nothing = get_span_sums(graph, plan, None, (23 * MIB, 24 * MIB))
    assert (nothing.storages, nothing.by_group, nothing.by_module, nothing.most_bytes) == ((), {}, {}, 0)
    assert nothing.summary == "by hand holds nothing in this span."


def test_slots_are_the_time_of_their_ops() -> None:
    graph = by_hand()
    plan = plan_by_hand(graph)
    sums = get_span_sums(graph, plan, (1, 3), axis="slots")
    assert sums.seconds == (1, 3.5)
    assert sums.storages == get_span_sums(graph, plan, (1, 3.5)).storages
    assert get_span_sums(graph, plan, (2, 2), axis="slots").storages == ()


def test_the_whole_step_adds_up_to_what_other_pictures_say() -> None:
    graph, plan = real(SPEC)[1], real_plan(SPEC, "60%")
    whole = get_span_sums(graph, plan)
    assert whole.seconds == (0, plan.predicted.seconds)
    assert whole.most_bytes == get_memory_by_kind(graph, plan).peak_bytes
    assert whole.bytes == sum(whole.by_group.values()) == sum(whole.by_module.values())
    assert whole.storages == tuple(np.unique(get_address_map(graph, plan).storage).tolist())
    assert whole.bytes_out + whole.bytes_in == pytest.approx(sum(bytes_copied(graph, plan)))


def test_copies_and_busy_times_of_parts_add_up_and_no_part_holds_more_at_once_than_the_whole() -> None:
    graph, plan = real(SPEC)[1], real_plan(SPEC, "60%")
    whole = get_span_sums(graph, plan)
    parts = [get_span_sums(graph, plan, span) for span in pairwise(np.linspace(0, plan.predicted.seconds, 12))]
    for name in ("bytes_out", "bytes_in", "compute_seconds", "swap_out_seconds", "swap_in_seconds"):
        assert sum(getattr(part, name) for part in parts) == pytest.approx(getattr(whole, name))
    assert max(part.most_bytes for part in parts) == whole.most_bytes


@pytest.mark.parametrize("span", [(2, 1), (7, 3)])
def test_a_span_that_ends_before_it_begins_is_refused(span: tuple[int, int]) -> None:
    graph = by_hand()
    with pytest.raises(StowageError, match="a span begins before it ends, got"):
        get_span_sums(graph, plan_by_hand(graph), span)
    with pytest.raises(StowageError, match="a span begins before it ends, got"):
        get_span_sums(graph, plan_by_hand(graph), None, span)
