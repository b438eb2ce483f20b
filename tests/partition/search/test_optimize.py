"""All levels at once, against every choice of small graphs; and the bound, which no choice undercuts."""

import random

import pytest

from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Kind
from planner.partition import coarsen, evaluate, optimize, recurse
from planner.partition.search import mesh_of
from planner.partition.search.costs import evaluate as evaluate_module
from planner.partition.search.costs import slot_costs
from planner.zoo import load
from tests.partition.search.every_choice import least_bytes_by_trying, random_graph


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_one_level_moves_the_least_bytes(workers):
    for seed in range(20):
        graph = random_graph(random.Random(1000 * workers + seed))
        found = optimize(coarsen(graph), [workers])
        assert found.bytes_moved == least_bytes_by_trying(graph, [workers]), (seed, graph.ops)
        assert found.gap == 0


@pytest.mark.parametrize("mesh", [(2, 2), (2, 3)])
def test_two_levels_move_the_least_bytes(mesh):
    """Accumulated products, shared inputs, softmaxes, and matrices too small to be split."""
    less = 0
    for seed in range(40):
        graph = random_graph(random.Random(7000 + seed), most=4, sizes=(2, 3, 5, 8))
        coarse = coarsen(graph)
        found, first = optimize(coarse, mesh), recurse(coarse, mesh)
        assert found.bytes_moved == least_bytes_by_trying(graph, mesh), (seed, graph.ops)
        assert found.bound == pytest.approx(found.cost)
        less += found.bytes_moved < first.bytes_moved
    assert less  # the recursion does not find all of them


@pytest.mark.parametrize(
    "model", ["mlp", "rnn:layers=1,hidden=32,steps=3,batch=8", "gpt:layers=1,hidden=32,sequence=8"]
)
def test_the_recursion_moves_no_less_and_the_bound_is_no_more(model):
    coarse = coarsen(capture(load(model)))
    first, found = recurse(coarse, 8), optimize(coarse, 8)
    assert found.bound is not None
    assert found.bound <= found.cost <= first.cost
    assert found.gap < 1e-9
    for each in (first, found):
        assert evaluate(each) == tuple(level.bytes_moved for level in each.levels)
        assert each.cost == each.bytes_moved


def test_weights_move_bytes_to_the_levels_where_they_cost_less():
    coarse = coarsen(capture(load("mlp")))
    even, uneven = (optimize(coarse, (2, 2), weights=weights) for weights in ((1.0, 1.0), (100.0, 1.0)))
    assert uneven.levels[0].bytes_moved <= even.levels[0].bytes_moved
    assert uneven.cost == pytest.approx(100 * uneven.levels[0].bytes_moved + uneven.levels[1].bytes_moved)


@pytest.mark.parametrize("search", [recurse, optimize])
def test_a_pinned_group_is_split_as_it_is_pinned(search):
    coarse = coarsen(capture(load("mlp")))
    group = next(number for number, found in enumerate(coarse.groups) if len(found.sizes) > 1)
    for label in coarse.groups[group].sizes:
        found = search(coarse, (2, 2), pins={group: (label, None)})
        assert found.levels[0].labels[group] == label
        assert found.cost >= optimize(coarse, (2, 2)).cost
    found = search(coarse, (2, 2), pins={group: ("replicated", "replicated")})
    assert [level.labels[group] for level in found.levels] == [None, None]


def test_impossible_pins_are_refused():
    coarse = coarsen(capture(load("mlp")))
    group = next(number for number, found in enumerate(coarse.groups) if len(found.sizes) > 1)
    for pins in ({10_000: (None, None)}, {group: (-5, None)}, {group: (None,)}):
        with pytest.raises(StowageError, match="pin"):
            recurse(coarse, (2, 2), pins=pins)
    small = next(number for number, found in enumerate(coarse.groups) if 10 in found.sizes.values())
    label = next(label for label, size in coarse.groups[small].sizes.items() if size == 10)
    with pytest.raises(StowageError, match="cannot be split"):
        recurse(coarse, (16,), pins={small: (label,)})


def test_labels_and_variants_that_are_not_allowed_are_not_chosen():
    coarse = coarsen(capture(load("mlp")))
    free = optimize(coarse, (2, 2))
    used = {(group, label) for level in free.levels for group, label in enumerate(level.labels) if label is not None}
    found = optimize(coarse, (2, 2), allowed=lambda group, label: (group, label) not in used)
    left = {(group, label) for level in found.levels for group, label in enumerate(level.labels) if label is not None}
    assert not used & left
    whole = optimize(coarse, (2, 2), allowed_variant=lambda merged, variant: variant.strategy is None)
    assert all(variant.strategy is None for level in whole.levels for variant in level.variants)
    assert whole.cost > free.cost


def test_a_price_of_memory_leads_from_copies_to_splits():
    coarse = coarsen(capture(load("mlp:batch=256,hidden=64")))
    found = [optimize(coarse, (2, 2), replicate=price) for price in (1e-9, 0.1, 1.0, 1e3)]
    moved, resident = [each.bytes_moved for each in found], [each.resident_bytes() for each in found]
    assert moved == sorted(moved)
    assert resident == sorted(resident, reverse=True)
    assert moved[0] == 0  # every worker does everything
    assert moved[0] < moved[-1]


def test_many_levels_are_chosen_a_few_at_a_time():
    coarse = coarsen(capture(load("mlp")))
    first, found = recurse(coarse, 16), optimize(coarse, 16)
    assert found.mesh == (2, 2, 2, 2)
    assert found.cost <= first.cost
    assert found.gap is None


@pytest.mark.parametrize("workers", [2, 4])
def test_replicated_weights_and_a_wide_batch_move_what_data_parallelism_does(workers):
    graph = capture(load("mlp:batch=4800,hidden=48"))
    coarse = coarsen(graph)
    weights = {t.storage: t for t in graph.tensors if t.base < 0 and graph.storages[t.storage].kind is Kind.PARAMETER}
    groups = {coarse.group_of[tensor.id] for tensor in weights.values()}
    levels = len(mesh_of(workers))
    found = optimize(coarse, workers, pins=dict.fromkeys(groups, ("replicated",) * levels))
    reduced = sum(coarse.sizes[tensor.id] for tensor in weights.values())  # every gradient on every worker
    assert found.cost == pytest.approx(2 * (workers - 1) * reduced, rel=1e-3)
    assert found.gap <= 1e-3


def pinned(seed):
    """A small graph, and for every group what it has to be at two levels: split, or whole."""
    rng = random.Random(seed)
    graph = random_graph(rng, most=4, sizes=(4, 8))
    groups = coarsen(graph).groups
    return graph, [tuple(rng.choice([None, *group.sizes]) for _ in range(2)) for group in groups]


def search_pinned(graph, labels):
    pins = {group: tuple("replicated" if label is None else label for label in row) for group, row in enumerate(labels)}
    return optimize(coarsen(graph), (2, 2), pins=pins)


def test_whole_and_split_groups_by_turns_move_the_least_bytes():
    for seed in range(30):
        graph, labels = pinned(seed)
        assert search_pinned(graph, labels).cost == least_bytes_by_trying(graph, (2, 2), labels), seed


@pytest.mark.parametrize("formula", ["gathers", "repeats"])
def test_a_mistake_in_a_formula_would_be_noticed(formula, monkeypatch):
    for module in (evaluate_module, slot_costs):
        monkeypatch.setattr(module, formula, lambda have, want: False)
    graphs = [pinned(seed) for seed in range(30)]
    assert any(search_pinned(*each).cost != least_bytes_by_trying(each[0], (2, 2), each[1]) for each in graphs)
