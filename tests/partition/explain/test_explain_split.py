"""Why a tensor or an op is split as it is: every alternative costs what the search finds with it pinned."""

import json
from dataclasses import replace
from functools import cache

import pytest

import planner
from planner.errors import StowageError
from planner.graph import Graph
from planner.partition import PartitionSearch, explain, search_partition

GPT = "gpt:layers=2,hidden=32,sequence=8"


@cache
def graph() -> Graph:
    return planner.capture(planner.zoo.load(GPT))


@cache
def search() -> PartitionSearch:
    found = search_partition(graph(), 4, time_limit=None)
    found.wait(progress=False)
    return found


@pytest.mark.parametrize("words", [{"tensor": "head.weight"}, {"op": "blocks.0.expand/addmm"}])
def test_alternatives_cost_what_a_search_with_them_pinned_finds(words) -> None:
    found = explain(search(), **words)
    (name,) = words.values()
    assert found.bytes_moved == search().best.bytes_moved
    assert 0 < found.nearby_bytes < found.bytes_moved
    assert len(found.chosen) == len(found.mesh)
    assert len(found.alternatives) >= 2
    costs = [one.bytes_moved for one in found.alternatives]
    assert costs == sorted(costs)
    for one in found.alternatives:
        value = int(one.value.split()[-1]) if one.value.startswith("dimension") else one.value
        all_levels = replace(search().solution.trial, solver="exact")
        pinned = search().problem.with_pins({name: value}).solve(all_levels)
        assert one.bytes_moved == pinned.bytes_moved == found.bytes_moved + one.extra_bytes
        assert one.looks_cheaper == (one.nearby_bytes < found.nearby_bytes)
        assert one.reason


def test_an_alternative_within_a_memory_limit_is_the_best_that_the_limit_allows() -> None:
    step = planner.capture(planner.zoo.load("mlp:layers=2,hidden=512,batch=64"), progress=False)
    free = search_partition(step, 4, time_limit=None)
    free.wait(progress=False)
    limit = free.solution.memory.most
    limited = search_partition(step, 4, memory=limit, time_limit=None)
    limited.wait(progress=False)
    found = {one.value: one for one in explain(limited, tensor="layers.0.weight").alternatives}
    pinned = limited.problem.with_pins({"layers.0.weight": 1})
    assert found["dimension 1"].peak_bytes <= limit < pinned.solve(limited.solution.trial).memory.most


def test_the_text_names_what_was_chosen_and_each_alternative_with_its_reason() -> None:
    found = explain(search(), tensor="head.weight")
    text = str(found)
    assert text.startswith("head.weight (1000 x 32, one of 3 that are split alike): dimension 0 in 4.")
    assert all(f"  {one.value}: {one.reason}" in text for one in found.alternatives)
    assert json.loads(json.dumps(found.to_json()))["chosen"] == ["dimension 0", "dimension 0"]


def test_a_plan_is_explained_with_its_graph_as_its_search_is() -> None:
    plan = search().best
    ours, theirs = explain(plan, graph(), tensor="tokens.weight"), explain(search(), tensor="tokens.weight")
    assert (ours.chosen, ours.bytes_moved) == (theirs.chosen, theirs.bytes_moved)


@pytest.mark.parametrize("settings", [{"pins": {"head.weight": "replicated"}}, {"memory": "100%"}])
def test_a_plan_with_pins_or_copies_is_explained_by_its_own_numbers(settings) -> None:
    other = search_partition(graph(), 4, time_limit=None, **settings)
    plan = other.wait(progress=False)
    ours, theirs = explain(plan, graph(), tensor="head.weight"), explain(other, tensor="head.weight")
    assert (ours.chosen, ours.bytes_moved, ours.nearby_bytes) == (theirs.chosen, plan.bytes_moved, theirs.nearby_bytes)
    if "pins" in settings:
        assert ours.alternatives[0].extra_bytes < 0
        assert "less a step: it is pinned; take the pin away" in theirs.alternatives[0].reason
        assert "less a step: the plan has pins or a memory limit, or its search" in ours.alternatives[0].reason


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({}, "either a tensor or an op"),
        ({"tensor": "head.weight", "op": "add"}, "either a tensor or an op"),
        ({"tensor": "head.wieght"}, r"no tensor 'head.wieght' \(did you mean head.weight\?\)"),
        ({"op": "blocks.0.expand/adm"}, "no op 'blocks.0.expand/adm'"),
    ],
)
def test_what_does_not_exist_is_not_explained(words, reason: str) -> None:
    with pytest.raises(StowageError, match=reason):
        explain(search(), **words)


def test_a_plan_is_not_explained_without_its_graph() -> None:
    with pytest.raises(StowageError, match="with its graph"):
        explain(search().best, tensor="head.weight")
    with pytest.raises(StowageError, match="not for mlp"):
        explain(search().best, planner.capture(planner.zoo.load("mlp")), tensor="layers.0.weight")


def test_a_search_refuses_another_graph() -> None:
    other = planner.capture(planner.zoo.load("mlp:layers=2,hidden=32,batch=16"))
    with pytest.raises(StowageError, match="leave the graph out"):
        explain(search(), other, tensor="head.weight")


def test_a_search_that_found_nothing_says_why() -> None:
    found = search_partition(graph(), 2, memory=1000, time_limit=None)
    with pytest.raises(StowageError, match="too little"):
        found.wait(progress=False)
    with pytest.raises(StowageError, match="too little"):
        explain(found, tensor="head.weight")
