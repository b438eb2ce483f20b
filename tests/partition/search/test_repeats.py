"""Parts that are alike and are chosen once for all, and copies with more readers than are told apart."""

import random
from itertools import product

import numpy as np
import pytest

from planner.capture import capture
from planner.partition import coarsen, optimize
from planner.partition.search.costs import shared_fetches as shared_fetches_module
from planner.partition.search.factors.repeats import find_repeats
from planner.zoo import load
from tests.effort import EFFORT
from tests.partition.search.every_choice import least_bytes_by_trying, random_graph


def sum_with_repeats(seed):
    """Two parts around two hubs, the first of them several times, with the numbers of the variables mixed up."""
    draw = np.random.default_rng(seed)
    choices, terms = [int(size) for size in draw.integers(2, 4, 2)], []
    for times in (int(draw.integers(2, 4)), 1):
        sizes = [int(size) for size in draw.integers(2, 4, 2)]
        inside = [(0, 2), (1, 2, 3), (2, 3), (0, 1, 3)][: int(draw.integers(2, 5))]
        tables = [draw.integers(0, 30, [(*choices[:2], *sizes)[name] for name in term]) for term in inside]
        for _ in range(times):
            names = (0, 1, len(choices), len(choices) + 1)
            choices += sizes
            terms += [(tuple(names[name] for name in term), table) for term, table in zip(inside, tables, strict=True)]
    terms.append(((0,), np.arange(choices[0]) * 7))
    terms.append(((0, 1), draw.integers(0, 9, choices[:2])))
    return choices, terms


def cost(terms, values):
    return sum(int(table[tuple(values[name] for name in around)]) for around, table in terms)


@pytest.mark.parametrize("seed", range(40))
def test_the_least_is_the_same_when_one_part_stands_for_those_like_it(seed):
    choices, terms = sum_with_repeats(seed)
    repeats = find_repeats(choices, [(around, id(table)) for around, table in terms])
    counted = [(terms[term][0], terms[term][1] * times) for term, times in repeats.counted().items()]
    kept = [size if repeats.variables[name] == name else 1 for name, size in enumerate(choices)]
    least = min(product(*map(range, kept)), key=lambda values: cost(counted, values))
    values = [least[repeats.variables[name]] for name in range(len(choices))]
    assert cost(counted, least) == cost(terms, values) == min(cost(terms, v) for v in product(*map(range, choices)))
    assert len(counted) < len(terms)


def test_parts_that_differ_in_one_table_or_in_whom_they_depend_on_count_for_themselves():
    table, other = np.arange(4).reshape(2, 2), np.eye(2)
    hubs = [((0,), "a"), ((1,), "b")]
    alike = [((0, 2), id(table)), ((0, 3), id(table))]
    for second in (((0, 3), id(other)), ((1, 3), id(table))):
        assert find_repeats([2] * 4, [*hubs, alike[0], second]).variables == [0, 1, 2, 3]
    assert find_repeats([2] * 4, [*hubs, *alike]).variables == [0, 1, 2, 2]


def test_the_blocks_of_a_model_are_chosen_alike():
    found = {
        layers: optimize(coarsen(capture(load(f"gpt:layers={layers},hidden=32,sequence=8"))), 4) for layers in (4, 5, 6)
    }
    assert all(each.gap < 1e-9 for each in found.values())
    assert found[6].bytes_moved - found[5].bytes_moved == found[5].bytes_moved - found[4].bytes_moved


def test_the_bound_holds_where_contents_have_more_readers_than_copies_are_told_apart(monkeypatch):
    monkeypatch.setattr(shared_fetches_module, "_MOST_COPIES", 1)
    apart = 0
    for seed, mesh in product(range(100, 100 + 20 * EFFORT), [(2,), (3,), (2, 2)]):
        graph = random_graph(random.Random(seed), most=6 if len(mesh) == 1 else 4, sizes=(2, 4, 8))
        found, least = optimize(coarsen(graph), mesh), least_bytes_by_trying(graph, mesh)
        assert found.bound <= least * (1 + 1e-9) <= found.bytes_moved * (1 + 2e-9), seed
        apart += found.bound < found.cost * (1 - 1e-9)
    assert apart
