"""Sizes that are predicted from captured ones: right where ops grow evenly, and never relied on where they do not."""

from dataclasses import replace
from functools import cache, partial

import pytest
import torch
from torch import nn

import planner
from planner import TrainStep, zoo
from planner.cancel import CancelToken
from planner.fit.size_model import SizeModel
from planner.fit.sized_graphs import SizedGraphs
from planner.fit.time_and_memory import assess
from planner.graph import Graph
from planner.machine import PRESETS
from tests.effort import EFFORT
from tests.fit.test_fit import every, small

MLP = partial(zoo.mlp, layers=2, hidden=64)
#: Its attention takes memory outside of the arena.
GPT = partial(zoo.gpt, layers=1, hidden=64, heads=2, sequence=64)


@cache
def captured(make, value: int) -> Graph:
    return planner.capture(make(batch=value), device="cuda", progress=False)


@pytest.mark.parametrize(("make", "budget"), [(MLP, 400_000), (GPT, 60_000_000)])
def test_what_is_predicted_needs_exactly_what_is_captured(make, budget) -> None:
    model = SizeModel.between(*((value, captured(make, value)) for value in (100, 300)))
    assert model is not None
    assert (captured(make, 300).outside_bytes > 10**7) == (make is GPT)
    machine = small("h100", budget)
    for value in (50, 2000) if make is MLP else (50, 200):
        assert model.is_right(value, captured(make, value))
        predicted, real = (
            assess(value, graph, machine, budget, 0, evaluations=None, seed=0, stop=CancelToken(), report=print)
            for graph in (model.predict(value), captured(make, value))
        )
        assert predicted == real


def test_other_ops_or_uneven_growth_cannot_be_predicted() -> None:
    assert SizeModel.between((4, captured(MLP, 4)), (8, captured(partial(MLP, optimizer="adam"), 8))) is None
    assert SizeModel.between((3, captured(MLP, 100)), (100, captured(MLP, 101))) is None
    model = SizeModel.between((100, captured(MLP, 100)), (101, captured(MLP, 101)))
    assert model is not None
    assert model.storage_bytes(-1) is None
    assert model.storage_bytes(10**18) is None


class Bent(nn.Module):
    """Takes memory that does not grow evenly with the batch: twice as much from `bend` on, or by its square."""

    def __init__(self, bend: int, square: bool) -> None:
        super().__init__()
        self.linear, self.bend, self.square = nn.Linear(32, 32), bend, square

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The same ops for all batches."""
        rows = self.linear(x)
        if self.square:
            return (rows @ rows.T).relu().mean()
        return rows.repeat(1, 64 if len(x) >= self.bend else 32).relu().mean()


def bent(batch: int, bend: int = 0, square: bool = False) -> TrainStep:
    return TrainStep(
        lambda: Bent(bend, square), lambda: torch.zeros(batch, 32), loss=lambda model, batch: model(batch), name="bent"
    )


#: Steps whose predictions are wrong from some size on, and the memory that makes it matter.
BENT = [({"bend": 900}, 10**7), ({"square": True}, 10**6), ({"bend": 500}, 10**7)]


@pytest.mark.parametrize("memory", [300_000, 200_000][:EFFORT])
def test_where_predictions_are_wrong_the_answers_are_still_those_of_trying_every_value(memory) -> None:
    make, values, machine = partial(bent, bend=30), range(2, 62, 10), small("h100", memory)
    found = planner.fit(make, machine, {"batch": values}, progress=False)
    tried = list(every(make, values, machine, memory))
    assert found.unswapped.value == max((value for value, fits, _ in tried if fits), default=None)
    for share, answer in {0.01: found.full_speed, **found.slower, float("inf"): found.at_all}.items():
        fitting = [value for value, _, times in tried if times <= 1 + share and times < float("inf")]
        assert answer.value == max(fitting, default=None)
        assert answer.proven


@pytest.mark.parametrize(("options", "memory"), BENT[:EFFORT])
def test_an_answer_far_from_what_was_predicted_holds_and_the_next_value_fails(options, memory) -> None:
    make, machine = partial(bent, **options), replace(small("h100", memory), host_memory_bytes=memory)
    found = planner.fit(make, machine, {"batch": range(2, 10**5)}, progress=False)
    for answer, meets in (
        (found.unswapped, lambda needs: needs.unswapped_bytes <= memory),
        (found.full_speed, lambda needs: needs.within(0.01)),
        (found.at_all, lambda needs: needs.step_seconds is not None),
    ):
        assert answer.value is not None
        for value, met in ((answer.value, True), (answer.value + 1, False)):
            graph = planner.capture(make(batch=value), device="cuda", progress=False)
            needs, _ = assess(
                value, graph, machine, memory, 0, evaluations=None, seed=0, stop=CancelToken(), report=print
            )
            assert meets(needs) is met


def test_a_wrong_prediction_is_noticed_when_the_size_is_captured() -> None:
    graphs = SizedGraphs(range(2, 62), lambda value: captured(partial_bent, value), 10**12, 10**12)
    assert graphs.is_predicted(40)
    assert graphs.least_bytes(40) > 0
    graphs.capture_of(40)  # as predicted from the largest ones
    assert graphs.wrong == 0
    graphs.capture_of(20)  # half as large as that
    assert graphs.wrong == 1
    assert not graphs.is_predicted(30)  # no capture says whether it is like the one or the other
    assert graphs.is_predicted(50)


partial_bent = partial(bent, bend=30)


def test_an_answer_and_the_next_value_are_captured_and_few_others() -> None:
    asked = []

    def make(batch: int) -> TrainStep:
        asked.append(batch)
        return MLP(batch=batch)

    found = planner.fit(make, small("h100", 400_000), {"batch": range(1, 1200, 4)}, slower="10%", progress=False)
    answers = [found.unswapped, found.full_speed, *found.slower.values(), found.at_all]
    assert all(answer.value is not None for answer in answers)
    for answer in answers:
        assert {answer.value, answer.value + 4} <= {*asked, 1201}
        assert not answer.proven or answer.value == 1197
    assert len(asked) == len(set(asked)) <= 2 * len({answer.value for answer in answers}) + 6
    assert {needs.value for needs in found.tried if needs.captured} <= set(asked)


def test_doubles_of_an_open_range_are_predicted_up_to_its_end() -> None:
    asked = []

    def make(batch: int) -> TrainStep:
        asked.append(batch)
        return MLP(batch=batch)

    machine = replace(small("h100", 400_000), host_memory_bytes=10**6)
    found = planner.fit(make, machine, {"batch": (1, None)}, slower="10%", progress=False)
    end = found.asked[-1]
    assert asked[:4] == [1, 2, 32, 512]
    assert end == 2 ** (len(bin(end)) - 3)
    assert found.at_all.value is not None
    assert end / 2 <= found.at_all.value < end
    closed = planner.fit(MLP, machine, {"batch": range(1, end + 1)}, slower="10%", progress=False)
    assert (closed.unswapped, closed.full_speed, closed.at_all) == (found.unswapped, found.full_speed, found.at_all)


def test_a_smallest_size_that_cannot_be_captured_is_left_out() -> None:
    def make(batch: int) -> TrainStep:
        model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
        return TrainStep(model, torch.zeros(batch, 8), loss=lambda model, batch: model(batch).mean())

    found = planner.fit(make, PRESETS["h100"], {"batch": range(1, 40)}, progress=False)
    assert found.unswapped.value == 39
