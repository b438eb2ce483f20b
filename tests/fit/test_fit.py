"""What fits, against trying every value."""

from dataclasses import replace
from functools import partial

import pytest

import planner
from planner import StowageError, zoo
from planner.fit.largest import largest
from planner.machine import PRESETS, op_seconds

MLP = partial(zoo.mlp, layers=3, hidden=256)


def small(name, memory):
    """A preset with little memory beside the reserve."""
    machine = PRESETS[name]
    reserve = sum(part.bytes for part in planner.fit.reserve_of(machine.device))
    return replace(machine, devices=(replace(machine.device, memory_bytes=memory + reserve),))


def every(make, values, machine, memory):
    """Per value, whether it fits unswapped, and how many times as long as with infinite memory its plan takes."""
    for value in values:
        graph = planner.capture(make(batch=value), progress=False)
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
    memory, values = 4 * 2**20, range(200, 2600, 200)
    found = planner.fit(MLP, small(machine, memory), {"batch": values}, progress=False)
    tried = list(every(MLP, values, small(machine, memory), memory))
    assert found.unswapped.value == max((value for value, fits, _ in tried if fits), default=None)
    answers = {0.01: found.full_speed, **found.slower, float("inf"): found.at_all}
    for slower, answer in answers.items():
        fitting = [value for value, _, times in tried if times <= 1 + slower and times < float("inf")]
        assert answer.value == max(fitting, default=None)
        assert answer.proven


def test_a_criterion_that_is_not_monotone_is_found_by_a_scan_and_said():
    # what is met at the top alone is found, although bisection leads away from it
    answer = largest(range(1, 20), lambda value: value == 17)
    assert (answer.value, answer.proven, answer.monotone) == (17, True, False)


def test_what_does_not_fit_has_no_answer():
    found = planner.fit(MLP, small("h100", 2**10), {"batch": range(1, 3)}, progress=False)
    assert found.unswapped.value is found.at_all.value is found.full_speed.value is None


@pytest.mark.parametrize(
    ("over", "sentence"),
    [
        ({"batches": range(1, 3)}, "has no argument 'batches'"),
        ({"batch": range(3)}, "batch must be 1 or more, got 0"),
        ({"batch": range(3, 1)}, "the range of batch is empty"),
    ],
)
def test_what_cannot_be_varied_is_refused_in_a_sentence(over, sentence):
    with pytest.raises(StowageError, match=sentence):
        planner.fit(zoo.mlp, PRESETS["h100"], over, progress=False)
