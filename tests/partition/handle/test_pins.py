"""Splits that are fixed by name: met in the plan, refused with close matches, and the smallest set that conflicts."""

import contextlib
from functools import cache

import pytest

import planner
from planner.errors import StowageError
from planner.graph import Graph
from planner.partition import LinearDivision, Replicated, Split, search_partition

GPT = "gpt:layers=2,hidden=32,sequence=8"


@cache
def graph() -> Graph:
    return planner.capture(planner.zoo.load(GPT))


def plan_with(pins, workers=4, evaluations=1):
    return search_partition(graph(), workers, pins=pins, time_limit=None, evaluations=evaluations).wait(progress=False)


def states_of(plan, name):
    (number, *_) = (tensor.id for tensor in graph().tensors if tensor.name == name)
    return plan.tensors[number]


@pytest.mark.parametrize("dimension", [0, 1, -1])
@pytest.mark.parametrize("name", ["head.weight", "blocks.0.attention.to_qkv.weight", "blocks.1.expand/addmm"])
def test_a_tensor_is_split_along_the_dimension_that_is_pinned(name: str, dimension: int) -> None:
    plan = plan_with({name: dimension})
    assert {state.dimension for state in states_of(plan, name)} == {dimension % 2}


def test_a_tensor_is_replicated_where_that_is_pinned_and_nothing_else_for_it() -> None:
    plan = plan_with({"head.weight": "replicated"})
    assert states_of(plan, "head.weight") == (Replicated(), Replicated())
    assert all(isinstance(state, Split) for state in states_of(plan, "tokens.weight"))


def test_each_level_can_be_pinned_by_itself() -> None:
    plan = plan_with({"head.weight": (1, "replicated", None)}, workers=8, evaluations=None)
    first, second, _ = states_of(plan, "head.weight")
    assert (first.dimension, second) == (1, Replicated())


def test_an_op_is_split_by_the_axis_that_is_pinned() -> None:
    op = next(op for op in graph().ops if op.name == "blocks.0.expand/addmm")
    for axis in "ijk":
        plan = plan_with({op.name: axis})
        assert {division.axis for division in plan.ops[op.id]} == {axis}
    assert plan_with({op.name: "everything"}).ops[op.id] == (None, None)


def test_pins_cost_bytes_and_never_save_any() -> None:
    free = plan_with({}, evaluations=None)
    for pins in ({"head.weight": 1}, {"tokens.weight": 0, "blocks.0.expand.weight": "replicated"}):
        assert plan_with(pins).bytes_moved >= free.bytes_moved


def test_other_pins_begin_with_what_is_known_about_the_graph() -> None:
    search = search_partition(graph(), 4, time_limit=None, evaluations=4)
    search.wait(progress=False)
    pinned = search.with_pins({"head.weight": 1}, time_limit=None, evaluations=4)
    assert pinned.wait(progress=False) == plan_with({"head.weight": 1}, evaluations=4)
    assert pinned.problem.coarse is search.problem.coarse


@pytest.mark.parametrize(
    ("pins", "reason"),
    [
        ({"head.wieght": 0}, r"no tensor or op of that name \(did you mean head.weight\?\)"),
        ({"head.weight": 2}, r"head.weight has no dimension 2: its shape is \[1000, 32\], so it has dimensions 0 to 1"),
        ({"head.weight": "rows"}, 'give one of its dimensions, or "replicated"'),
        ({"head.weight": (0, 1, 0)}, r"pinned at 3 levels, but the mesh \[2, 2\] has 2"),
        ({"blocks.0.expand/addmm": "z"}, r"cannot be split by 'z'; choose one of"),
        ({"positions.weight": 0}, r"positions.weight cannot be split 2 x 2 x 2 x 2 ways as pinned to 0"),
    ],
)
def test_a_pin_that_cannot_be_met_is_refused(pins, reason: str) -> None:
    with pytest.raises(StowageError, match=reason):
        plan_with(pins, workers=16 if "positions.weight" in pins else 4)


def test_the_smallest_conflicting_set_of_many_pins_is_named() -> None:
    pins = {
        "tokens.weight": 0, "head.weight": 0, "blocks.0.expand.weight": 1, "head.weight.grad": 1,
        "blocks.0.contract.weight": "replicated",
    }  # fmt: skip
    with pytest.raises(StowageError, match=r"the pins head.weight=0 and head.weight.grad=1 conflict: .*alike"):
        plan_with(pins)
    del pins["head.weight.grad"]
    assert not any(isinstance(division, LinearDivision) for division in plan_with(pins).ops[0])


def test_of_pins_that_take_too_much_memory_the_smallest_set_is_named() -> None:
    pins = {"blocks.0.expand.weight": 1, "head.weight": "replicated", "tokens.weight": "replicated"}
    allowed = search_partition(graph(), 2, time_limit=None, evaluations=1)
    allowed.wait(progress=False)
    memory = allowed.solution.memory.most + 100_000  # for one of the two copies, but not for both
    with pytest.raises(StowageError, match=r"with the pins? .*replicated.* drop a pin") as raised:
        search_partition(graph(), 2, memory=memory, pins=pins, time_limit=None).wait(progress=False)
    assert "blocks.0.expand.weight" not in str(raised.value).split(": the op")[0]


@pytest.mark.parametrize("pins", [{"head.weight": None}, {"head.weight": 0.0}, {0: 1}, {"head.weight": [0, 1.5]}])
def test_what_is_no_pin_is_refused_at_once(pins) -> None:
    with pytest.raises(StowageError, match='is not a name with a dimension, "replicated" or an axis'):
        search_partition(graph(), 4, pins=pins)


def test_pins_and_limits_may_be_set_while_a_search_still_finds_how_ops_can_be_split() -> None:
    fresh = planner.capture(planner.zoo.load("mlp:layers=2,hidden=24,batch=12"))
    search = search_partition(fresh, 2)
    name = next(tensor.name for tensor in fresh.tensors if tensor.name.endswith("0.weight"))
    pinned = search.with_pins({name: 1}, evaluations=1)
    number = next(tensor.id for tensor in fresh.tensors if tensor.name == name)
    assert {state.dimension for state in pinned.wait(progress=False).tensors[number]} == {1}
    assert search.with_memory("100%", evaluations=1).wait(progress=False).workers == 2
    stopped = search_partition(fresh, 2)
    stopped.cancel()
    with contextlib.suppress(StowageError):  # or it has got there before
        stopped.with_pins({name: 1}).cancel()
    search.cancel()


def test_what_keeps_a_search_from_starting_is_said_where_pins_are_set() -> None:
    search = search_partition(graph(), 4, pins={"head.weigth": 1})
    with pytest.raises(StowageError, match=r"head\.weigth"):
        search.with_pins({"head.weight": 1})
