"""What fits, against trying every value."""

import re
from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner import StowageError, zoo
from planner.cancel import Cancelled
from planner.fit import StillFitsError
from planner.fit.bisection import largest
from planner.machine import PRESETS, op_seconds
from planner.units import format_bytes, format_seconds

MLP = partial(zoo.mlp, layers=3, hidden=256)


def small(name, memory):
    """A preset with little memory beside the reserve."""
    machine = PRESETS[name]
    reserve = sum(part.bytes for part in planner.fit.reserve_of(machine.device))
    return replace(machine, devices=(replace(machine.device, memory_bytes=memory + reserve),))


def every(make, values, machine, memory):
    """Per value, whether it fits unswapped, and how many times as long as with infinite memory its plan takes."""
    for value in values:
        graph = planner.capture(make(batch=value), device="cuda", progress=False)
        ideal = op_seconds(graph, machine).sum()
        fits = planner.swap.peak_of(graph, machine.device.alignment) <= memory
        try:
            plan = planner.plan_swaps(
                graph, machine, memory, host_budget=machine.host_memory_bytes, method="calendar", progress=False
            )
        except StowageError:
            yield value, fits, float("inf")
        else:
            yield value, fits, plan.predicted.seconds / ideal


@pytest.mark.parametrize("machine", ["v100-16gb", "h100"])
def test_the_answers_are_those_of_trying_every_value(machine):
    memory, values = 4 * 2**20, range(400, 2200, 300)
    found = planner.fit(MLP, small(machine, memory), {"batch": values}, progress=False)
    tried = list(every(MLP, values, small(machine, memory), memory))
    assert found.unswapped.value == max((value for value, fits, _ in tried if fits), default=None)
    answers = {0.01: found.full_speed, **found.slower, float("inf"): found.at_all}
    for slower, answer in answers.items():
        fitting = [value for value, _, times in tried if times <= 1 + slower and times < float("inf")]
        assert answer.value == max(fitting, default=None)
        assert answer.proven


def test_without_a_last_value_the_answers_are_those_of_trying_every_value_that_doubling_leads_to():
    def make(batch):
        return zoo.mlp(layers=3, hidden=256, batch=200 * batch)

    memory = 3 * 2**20
    machine, reports = replace(small("v100-16gb", memory), host_memory_bytes=2**20), []
    found = planner.fit(make, machine, {"batch": (1, None)}, progress=lambda *report: reports.append(report))
    last = found.asked[-1]
    assert found.asked == range(1, last + 1)
    assert 4 <= last <= 16
    assert last & (last - 1) == 0  # doubled
    tried = list(every(make, found.asked, machine, memory))
    assert tried[-1][2] == float("inf") > tried[last // 2 - 1][2]  # the bound does not fit, half of it does
    assert found.unswapped.value == max((value for value, fits, _ in tried if fits), default=None)
    answers = {0.01: found.full_speed, **found.slower, 1e9: found.at_all}
    for slower, answer in answers.items():
        assert answer.value == max((value for value, _, times in tried if times <= 1 + slower), default=None)
        assert answer.proven
    shares, said = zip(*reports, strict=True)
    assert list(shares) == sorted(shares)
    assert said[0] == "trying batch=1 (0 sizes captured)"  # of how many is not known yet
    assert said[-1].endswith(f" of {last} sizes captured)")


def test_every_answer_is_among_what_was_tried_also_in_steps_too_large_to_try_all_that_was_captured(monkeypatch):
    monkeypatch.setattr(planner.fit.fitting, "_MOST_SCANNED_OPS", 0)
    for values in ((1, None), range(1, 4097)):
        found = planner.fit(MLP, small("v100-16gb", 4 * 2**20), {"batch": values}, progress=False)
        tried = {needs.value for needs in found.tried}
        answers = found.unswapped, found.full_speed, *found.slower.values(), found.at_all
        assert {answer.value for answer in answers if answer.value is not None} <= tried


def test_an_argument_that_takes_no_memory_needs_a_last_value():
    sentence = r'batch=1073741824 still fits; name a last value, as in over=\{"batch": range\(268435456, '
    with pytest.raises(StillFitsError, match=sentence):
        planner.fit(lambda batch: MLP(batch=4), PRESETS["h100"], {"batch": (2**28, None)}, progress=False)


def test_no_answer_is_below_a_larger_size_that_was_captured_and_meets_it():
    def make(batch):
        return zoo.mlp(layers=3, hidden=64, batch=batch * (1 + batch % 2))  # odd ones take twice as much

    memory = 5 * 2**17
    found = planner.fit(make, small("laptop", memory), {"batch": range(100, 800)}, progress=False)
    captured = [needs for needs in found.tried if needs.captured]
    unswapped = [needs.value for needs in captured if needs.unswapped_bytes <= memory]
    at_all = [needs.value for needs in captured if needs.step_seconds is not None]
    assert (found.unswapped.value, found.at_all.value) == (max(unswapped), max(at_all))
    for slower, answer in {0.01: found.full_speed, **found.slower}.items():
        assert answer.value == max(needs.value for needs in captured if needs.within(slower))


def test_a_criterion_that_is_not_monotone_is_found_by_a_scan_and_said():
    # what is met at the top alone is found, although bisection leads away from it
    answer = largest(range(1, 20), lambda value: value == 17)
    assert (answer.value, answer.proven, answer.monotone) == (17, True, False)


@given(st.sets(st.integers(1, 24)))
def test_among_few_values_the_largest_is_found_whatever_meets_the_criterion(meeting):
    asked = []
    answer = largest(range(1, 25), lambda value: asked.append(value) or value in meeting)
    assert (answer.value, answer.proven) == (max(meeting, default=None), True)
    assert answer.monotone == all(value in meeting for value in asked if value < (answer.value or 0))
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize("most", [0, 12345])
def test_a_long_range_is_not_walked_through(most):
    asked = []
    answer = largest(range(1, 10**12), lambda value: asked.append(value) or value <= most)
    assert (answer.value, answer.proven, answer.monotone) == (most or None, False, True)
    assert len(asked) < 80


def test_what_does_not_fit_has_no_answer():
    found = planner.fit(MLP, small("h100", 2**10), {"batch": range(1, 3)}, progress=False)
    assert found.unswapped.value is found.at_all.value is found.full_speed.value is None


@pytest.mark.parametrize(
    ("over", "sentence"),
    [
        ({"batches": range(1, 3)}, "has no argument 'batches'"),
        ({"batch": range(3)}, "batch must be 1 or more, got 0"),
        ({"batch": range(3, 1)}, "the range of batch is empty"),
        ({"batch": (0, None)}, "batch must be 1 or more, got 0"),
        (
            {"batch": range(1, 2**63 + 1)},
            "batch must be 9,223,372,036,854,775,807 or less, got 9,223,372,036,854,775,808",
        ),
        ({"batch": (10**20, None)}, "or less, got 100,000,000,000,000,000,000"),
        ({"batch": (1, 2, None)}, "batch must be a whole number, got None"),
    ],
)
def test_what_cannot_be_varied_is_refused_in_a_sentence(over, sentence):
    with pytest.raises(StowageError, match=sentence):
        planner.fit(zoo.mlp, PRESETS["h100"], over, progress=False)


def test_shares_of_time_that_are_nearly_the_same_have_an_answer_each():
    over, shares = {"batch": range(8, 10)}, ["10%", "10.00001%", "10%", "33.3333%", "33.33333%"]
    found = planner.fit(MLP, PRESETS["laptop"], over, slower=shares, progress=False)
    assert [planner.fit.share_text(share) for share in found.slower] == ["10%", "10.00001%", "33.3333%", "33.33333%"]
    assert {answer.value for answer in found.slower.values()} == {9}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"seed": -1}, "seed must be a whole number of 0 or more, got -1"),
        ({"evaluations": 0.5}, "evaluations must be a whole number of 0 or more, got 0.5"),
        ({"slower": "ten"}, "slower must be a share such as \"10%\", got 'ten'"),
        ({"slower": ["10%", "-5%"]}, "got '-5%'"),
        ({"slower": 0.1}, "got 0.1"),
        ({"machine": "h100"}, "'h100' is not a machine"),
        ({"machine": replace(PRESETS["h100"], host_memory_bytes=0)}, "has no host memory to swap to"),
        ({"machine": small("h100", 0)}, "has 544 MiB of memory, of which 544 MiB are reserved"),
        ({"over": {"batch": ["1", "2"]}}, "batch must be a whole number, got '1'"),
        ({"over": {"batch": 64}}, "must be whole numbers such as range"),
        ({"over": {"batch": [2, 1]}}, "the values of batch must be ascending"),
        ({"make_step": MLP()}, "make_step must be a function of batch, got a TrainStep; pass one that takes batch and"),
        (
            {"make_step": torch.nn.Linear(1, 1)},
            "^make_step must be a function of batch, got a Linear; pass one that takes batch and returns a TrainStep "
            "or an InferenceStep$",
        ),
        (
            {"make_step": lambda batch: batch},
            "make_step returned int, which is not a step; return a TrainStep or an InferenceStep",
        ),
    ],
)
def test_a_mistake_is_refused_and_is_not_taken_for_what_does_not_fit(changed, sentence):
    # every value would fit unswapped, without a search that would refuse its arguments
    request = {"make_step": MLP, "machine": PRESETS["h100"], "over": {"batch": range(1, 3)}}
    with pytest.raises(StowageError, match=sentence):
        planner.fit(**{**request, **changed}, progress=False)


def test_an_impossible_link_is_refused_where_copies_are_needed():
    machine = small("h100", 4 * 2**20)
    machine = replace(machine, host_link=replace(machine.host_link, bandwidth=0.0))
    with pytest.raises(StowageError, match="give it 1 to 1e15 bytes/s"):
        planner.fit(MLP, machine, {"batch": [1000]}, progress=False)


def test_a_device_that_computes_in_the_hosts_memory_is_refused():
    h100 = PRESETS["h100"]
    cpu = replace(h100, name="cpu", devices=(replace(h100.device, kind="cpu"),))
    with pytest.raises(StowageError, match="a step on cpu takes the memory that it would be swapped to"):
        planner.fit(MLP, cpu, {"batch": range(1, 3)}, progress=False)


def test_without_room_in_the_host_nothing_larger_fits_than_unswapped():
    machine = replace(small("h100", 4 * 2**20), host_memory_bytes=64)
    found = planner.fit(MLP, machine, {"batch": range(200, 1800, 400)}, progress=False)
    assert found.at_all == found.unswapped
    assert found.unswapped.value is not None
    assert found.tried[-1].step_seconds is None


def test_what_is_printed_has_a_line_for_each_answer():
    found = planner.fit(MLP, small("h100", 4 * 2**20), {"batch": [400, 700, 1000]}, progress=False)
    tried = {needs.value: needs for needs in found.tried}
    title, *lines, caution = str(found).splitlines()
    assert title == "batch on h100, 4 MiB for the step"
    assert caution == f"approximate: {found.approximate}"
    assert [line.split("  ")[0] for line in lines] == ["unswapped", "full speed", "10% slower", "50% slower", "at all"]
    unswapped, *planned = (line[12:] for line in lines)
    assert unswapped == f"batch={found.unswapped.value}, {format_bytes(tried[found.unswapped.value].unswapped_bytes)}"
    for line, answer in zip(planned, (found.full_speed, *found.slower.values(), found.at_all), strict=True):
        last = " (the last asked for)" if answer.value == 1000 else ""
        assert line == f"batch={answer.value}, {format_seconds(tried[answer.value].step_seconds)} a step{last}"
    assert found.at_all.value == 1000
    none = planner.fit(MLP, small("h100", 2**10), {"batch": [1]}, progress=False)
    assert str(none).splitlines()[-2] == "at all      none"


@pytest.mark.parametrize("end", [KeyboardInterrupt, Cancelled])
def test_progress_says_what_was_found_so_far_and_so_does_what_ends_it(end):
    memory, values, said = 4 * 2**20, range(400, 2200, 300), []
    found = planner.fit(MLP, small("h100", memory), {"batch": values}, progress=lambda _, doing: said.append(doing))
    unswapped, at_all = f"unswapped batch={found.unswapped.value}", f"at all batch={found.at_all.value}"
    assert repr(found) == (
        f"<Fit of batch on h100, 4 MiB: unswapped {found.unswapped.value}, full speed {found.full_speed.value}, "
        f"10% slower {found.slower[0.1].value}, 50% slower {found.slower[0.5].value}, at all {found.at_all.value}>"
    )
    assert any(doing.startswith(f"{unswapped}; trying batch=") for doing in said)
    assert any(doing.startswith(f"{unswapped}, {at_all}; trying batch=") for doing in said)
    counts = [
        int(found[1]) for doing in said if (found := re.search(r"batch=\d+ \((\d) of 6 sizes captured\)$", doing))
    ]
    assert counts == sorted(counts)
    assert counts[0] == 0 < counts[-1] <= 6

    def until_unswapped(_, doing):
        if doing.startswith("unswapped"):
            raise end

    with pytest.raises(end) as ended:
        planner.fit(MLP, small("h100", memory), {"batch": values}, progress=until_unswapped)
    assert ended.value.__notes__ == [f"found so far: {unswapped}"]
