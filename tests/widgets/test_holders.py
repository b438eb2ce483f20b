"""What a model is divided into for the list of what holds memory, at its own peak and with few storages present."""

from collections import Counter
from functools import cache

import pytest

from planner import zoo
from planner.capture import capture
from planner.graph import Graph
from tests.widgets.steps import by_hand
from widgets.info import Group
from widgets.info.holders import get_holders
from widgets.info.model_division import get_holder_parts
from widgets.info.residency_spans import captured_stays

MODELS = (
    "gpt:layers=12,hidden=64,sequence=64", "wresnet:depth=50,batch=4,image=64", "inception:batch=2,image=75",
    "rnn:layers=2,hidden=64,steps=8,batch=32",
)  # fmt: skip


@cache
def step(spec: str) -> Graph:
    return capture(zoo.load(spec), progress=False)


def at_peak(graph: Graph) -> list[int]:
    stays = captured_stays(graph)
    return sorted({int(stays.storage[stay]) for stay in stays.present(stays.fullest)})


@pytest.mark.parametrize("spec", MODELS)
def test_every_storage_is_in_exactly_one_part_and_a_part_is_of_one_group(spec: str) -> None:
    graph = step(spec)
    parts = get_holder_parts(graph, at_peak(graph))
    assert Counter(storage for part in parts for storage in part.storages) == Counter(range(len(graph.storages)))
    kinds = {"activations": {"activation", "output"}, "parameters": {"parameter", "buffer"}}
    for part in parts:
        found = {graph.storages[storage].kind.value for storage in part.storages}
        assert found <= kinds.get(part.group.value, {part.group.value.replace(" ", "_").removesuffix("s")})


@pytest.mark.parametrize("spec", MODELS)
def test_no_part_holds_more_than_a_quarter_of_the_peak_but_a_single_tensor(spec: str) -> None:
    graph = step(spec)
    stays = captured_stays(graph)
    rows = get_holders(graph, stays, stays.fullest)
    peak = sum(graph.storages[storage].bytes for storage in at_peak(graph))
    assert sum(row.bytes for row in rows) == peak
    assert [row for row in rows if row.bytes > 0.25 * peak and row.storages > 1] == []
    assert len({(row.name, row.group) for row in rows}) == len(rows) >= 4


def test_layers_that_are_alike_are_one_part_of_each_place_in_them() -> None:
    graph = step(MODELS[0])
    names = {part.name for part in get_holder_parts(graph, at_peak(graph)) if part.group is Group.ACTIVATION}
    assert {"blocks.0 … 11.attention", "blocks.0 … 11/gelu", "top level"} <= names


def test_tensors_of_one_name_are_a_range_of_what_tells_them_apart() -> None:
    graph = step("mlp:layers=6,optimizer=adam")
    names = [part.name for part in get_holder_parts(graph, [storage.id for storage in graph.storages])]
    assert "layers.0 … 5.weight/exp_avg" in names


def test_a_moment_with_nothing_or_with_one_tensor_is_divided_too() -> None:
    graph = by_hand()
    for present in ([], [0]):
        parts = get_holder_parts(graph, present)
        assert sorted(storage for part in parts for storage in part.storages) == list(range(len(graph.storages)))
