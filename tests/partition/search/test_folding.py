"""Parts of a coarse graph that are alike and are searched once, against searches of all of them."""

import random
from dataclasses import replace

import pytest

from planner.capture import capture
from planner.partition import coarsen, evaluate, optimize, recurse
from planner.partition.search import SearchRules, folding, mesh_of
from planner.partition.search.folding import fold
from planner.zoo import load
from tests.partition.search.every_choice import least_bytes_by_trying, random_graph


def beside_itself(graph, times):
    """A graph several times, none of which has anything to do with another."""
    storages, tensors, ops = [], [], []
    for _ in range(times):
        first, tensor = len(storages), len(tensors)
        storages += [replace(each, id=len(storages) + each.id) for each in graph.storages]
        ops += [
            replace(
                each, id=len(ops) + each.id, inputs=tuple(tensor + other for other in each.inputs),
                outputs=tuple(tensor + other for other in each.outputs),
            )
            for each in graph.ops
        ]  # fmt: skip
        tensors += [replace(each, id=tensor + each.id, storage=first + each.storage) for each in graph.tensors]
    return replace(graph, storages=tuple(storages), tensors=tuple(tensors), ops=tuple(ops))


def unfolded(monkeypatch):
    """Let every group and op stand for itself."""
    monkeypatch.setattr(folding, "_group_look", lambda coarse, rules, group: group)


@pytest.mark.parametrize("mesh", [(2,), (3,), (2, 2)])
def test_what_is_there_three_times_moves_three_times_the_least_bytes(mesh):
    for seed in range(12):
        graph = random_graph(random.Random(300 + seed), most=4, sizes=(2, 3, 5, 8))
        coarse = coarsen(beside_itself(graph, 3))
        found = optimize(coarse, mesh)
        assert found.bytes_moved == 3 * least_bytes_by_trying(graph, mesh), seed
        assert evaluate(found) == tuple(level.bytes_moved for level in found.levels)
        assert found.gap < 1e-9
        assert len(fold(coarse, SearchRules(mesh)).parts.merged) <= len(coarse.merged) / 3


def test_more_layers_are_no_more_to_search():
    parts = [
        fold(coarsen(capture(load(f"gpt:layers={layers},hidden=32,sequence=8"))), SearchRules(mesh_of(4))).parts
        for layers in (4, 7)
    ]
    few, many = ([sum(map(len, (each.groups, each.merged, each.fetches)))] for each in parts)
    assert few == many


@pytest.mark.parametrize("replicate", [None, 0.25])
def test_models_cost_the_same_folded_and_not(monkeypatch, replicate):
    coarse = coarsen(capture(load("gpt:layers=3,hidden=32,sequence=8")))
    folded = [search(coarse, (2, 2), replicate=replicate) for search in (recurse, optimize)]
    unfolded(monkeypatch)
    for found, search in zip(folded, (recurse, optimize), strict=True):
        whole = search(coarse, (2, 2), replicate=replicate)
        assert found.cost == pytest.approx(whole.cost, rel=1e-12)
        assert found.cost == pytest.approx(found.bytes_moved + (replicate or 0) * found.resident_bytes(), rel=1e-12)


def another_split_than_the_best(coarse, group):
    """A pin of one group to a label that the best partition does not split."""
    best = optimize(coarse, (2, 2))
    return {group: (next(label for label in coarse.groups[group].sizes if label != best.levels[0].labels[group]), None)}


def pinned_layer():
    graph = capture(load("gpt:layers=3,hidden=32,sequence=8"))
    coarse = coarsen(graph)
    return coarse, coarse.group_of[next(t.id for t in graph.tensors if t.name == "blocks.1.expand.weight")]


def test_a_layer_with_a_pin_is_searched_for_itself(monkeypatch):
    coarse, group = pinned_layer()
    pins = another_split_than_the_best(coarse, group)
    found = optimize(coarse, (2, 2), pins=pins)
    assert found.levels[0].labels[group] == pins[group][0]
    unfolded(monkeypatch)
    assert found.cost == optimize(coarse, (2, 2), pins=pins).cost


def test_a_pin_that_was_overlooked_would_be_noticed(monkeypatch):
    coarse, group = pinned_layer()
    pins = another_split_than_the_best(coarse, group)
    monkeypatch.setattr(folding, "_group_look", lambda coarse, rules, group: 0)
    assert optimize(coarse, (2, 2), pins=pins).levels[0].labels[group] != pins[group][0]
