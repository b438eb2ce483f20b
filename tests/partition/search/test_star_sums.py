"""Sums of costs over variables with cycles, against every combination of values."""

from itertools import combinations, product

import numpy as np
import pytest

from planner.capture import capture
from planner.partition import coarsen
from planner.partition.search import SearchRules, mesh_of
from planner.partition.search.choices.domains import Domains
from planner.partition.search.costs.slot_costs import SlotCosts
from planner.partition.search.factors import branching, narrowing, neighborhoods
from planner.partition.search.factors.branching import branch
from planner.partition.search.factors.dual_bound import StarFactor
from planner.partition.search.factors.eliminate import CostTable
from planner.partition.search.factors.narrowing import Narrowed, narrow_down
from planner.partition.search.factors.neighborhoods import NeighborhoodSearch
from planner.partition.search.factors.star_sum import StarSum, table_star
from planner.partition.search.mini_buckets import mini_bucket_bound
from planner.partition.search.problem import LevelsProblem
from planner.zoo import load

SEEDS = range(30)


def random_stars(seed, variables=6):
    draw = np.random.default_rng(seed)
    choices = [int(count) for count in draw.integers(1, 5, variables)]
    factors = []
    for _ in range(variables + 2):
        around = tuple(sorted(int(name) for name in draw.choice(variables, int(draw.integers(2, 4)), replace=False)))
        ways = int(draw.integers(1, 5))
        factors.append(StarFactor(around, tuple(draw.integers(0, 20, (ways, choices[name])) * 1.0 for name in around)))
    factors.append(StarFactor(factors[0].variables, factors[0].parts))  # equal factors are worked out once
    return StarSum(choices, factors, [draw.integers(0, 9, count) * 1.0 for count in choices], 3.0)


def every_cost(stars):
    return {values: stars.cost(values) for values in product(*map(range, stars.choices))}


def limited(monkeypatch, entries):
    """Let so few entries be gone through at once that values have to be ruled out first."""
    monkeypatch.setattr(narrowing, "MOST_ENTRIES", entries)
    monkeypatch.setattr(narrowing, "MOST_OF_ONE", entries)


@pytest.mark.parametrize("entries", [1, 60, 20_000_000])
def test_the_least_is_that_of_all_combinations_however_little_is_eliminated_at_once(monkeypatch, entries):
    limited(monkeypatch, entries)
    for seed in SEEDS:
        stars = random_stars(seed)
        costs = every_cost(stars)
        found = narrow_down(stars)
        assert found.bound == found.cost == min(costs.values()), seed
        assert costs[tuple(found.values)] == found.cost


def test_where_it_stops_early_the_bound_is_below_and_the_cost_is_one_that_is_reached(monkeypatch):
    limited(monkeypatch, 1)
    monkeypatch.setattr(narrowing, "_ROUNDS", 1)
    monkeypatch.setattr(narrowing, "_SWEEPS", 2)
    left = 0
    for seed in SEEDS:
        stars = random_stars(seed)
        costs = every_cost(stars)
        found = narrow_down(stars)
        assert found.bound <= min(costs.values()) + 1e-9 <= found.cost + 2e-9
        assert costs[tuple(found.values)] == found.cost
        left += found.bound < found.cost * (1 - 1e-9)
    assert left


def test_the_least_of_all_cases_is_that_of_all_combinations(monkeypatch):
    monkeypatch.setattr(branching, "_MOST_ENTRIES", 1)
    monkeypatch.setattr(branching, "_MOST_OF_ONE", 1)
    for seed in SEEDS[:8]:
        stars = random_stars(seed)
        costs = every_cost(stars)
        least = min(costs.values())
        found = branch(stars, least + 5)
        assert found.bound == found.cost == least, seed
        assert costs[tuple(found.values)] == least
        assert branch(stars, least) == Narrowed(least, None, least)


def all_of(size, seed, variables=6):
    """Costs of all sets of so many variables, for which message passing alone gives a low bound."""
    draw = np.random.default_rng(seed)
    sets = combinations(range(variables), size)
    factors = [table_star(CostTable(scope, draw.integers(0, 20, [3] * size) * 1.0)) for scope in sets]
    return StarSum([3] * variables, factors, [np.zeros(3)] * variables, 0.0)


def test_the_more_cases_are_told_apart_the_higher_the_bound_which_is_never_above_the_least(monkeypatch):
    monkeypatch.setattr(branching, "_MOST_ENTRIES", 1)
    monkeypatch.setattr(branching, "_MOST_OF_ONE", 1)
    for seed in range(4):
        stars = all_of(2, seed)
        costs = every_cost(stars)
        bounds = []
        for cases in (1, 250):
            monkeypatch.setattr(branching, "_MOST_CASES", cases)
            found = branch(stars)
            assert found.bound <= min(costs.values()) + 1e-9 <= found.cost + 2e-9
            assert costs[tuple(found.values)] == found.cost
            bounds.append(found.bound)
        assert bounds[0] < bounds[1] == min(costs.values())


def test_mini_buckets_raise_the_bound_of_message_passing_to_the_least_where_tables_may_be_large():
    for seed in SEEDS[:6]:
        for stars in (random_stars(seed), all_of(2, seed)):
            least = min(every_cost(stars).values())
            _, passed = stars.bound().raised(30)
            bounds = [mini_bucket_bound(stars, most) for most in (1, 30, 100_000)]
            assert all(passed - 1e-9 <= bound <= least + 1e-9 for bound in bounds), seed
            assert bounds[-1] == pytest.approx(least)


def test_mini_buckets_that_share_several_variables_agree_about_them():
    for seed in SEEDS[:6]:
        stars = all_of(3, seed)
        _, passed = stars.bound().raised(30)
        bound = mini_bucket_bound(stars, 60)  # two tables of 27 entries that share two variables would make 81
        assert passed + 30 < bound <= min(every_cost(stars).values()) + 1e-9


def test_nothing_is_found_where_nothing_costs_less_than_what_is_known(monkeypatch):
    limited(monkeypatch, 1)
    for seed in SEEDS:
        stars = random_stars(seed)
        least = min(every_cost(stars).values())
        found = narrow_down(stars, least)
        assert (found.values, found.cost) == (None, least)
        assert found.bound <= least


def test_what_is_left_costs_the_same_as_with_what_was_eliminated_or_ruled_out():
    for seed in SEEDS:
        stars = random_stars(seed)
        costs = every_cost(stars)
        for step in (stars.eliminated(30), stars.restricted(*without_last_values(stars))):
            for chosen, cost in every_cost(step.stars).items():
                assert costs[tuple(step.values(chosen))] == cost


def test_the_stars_of_a_problem_cost_what_its_tables_cost_where_groups_are_settled_too():
    coarse = coarsen(capture(load("mlp:layers=3")))
    rules = SearchRules(mesh_of(2), (), {}, None, None, None)
    domains = Domains(coarse, rules)
    stored = [domains.group(group, (None,)) for group in range(len(coarse.groups))]
    ways = [domains.op(merged, (None,)) for merged in coarse.merged]
    stored = [rows[group % len(rows) :][:1] if group % 4 else rows for group, rows in enumerate(stored)]
    problem = LevelsProblem(coarse, rules, domains, SlotCosts(rules), stored, ways)
    stars, ops = problem.stars()
    assert stars.constant > 0  # of ops all around which is settled
    assert narrow_down(stars).cost == narrow_down(problem.core(100).stars).cost == problem.solve().cost
    assert {len(stars.factors[number].parts[0]) for number in ops} == {len(op.rows) for op in ops.values()}


def without_last_values(stars):
    kept = [np.arange(count) < max(1, count - 1) for count in stars.choices]
    return kept, [np.ones(len(factor.parts[0]), bool) for factor in stars.factors]


def test_neighborhoods_never_cost_more_and_often_less():
    less = 0
    for seed in SEEDS:
        stars = random_stars(seed, variables=7)
        start = [count - 1 for count in stars.choices]
        found = NeighborhoodSearch(stars).improve(start)
        assert stars.cost(found) <= stars.cost(start)
        less += stars.cost(found) < stars.cost(start)
    assert less


def test_several_choices_are_combined_into_the_best_of_what_they_have():
    better = 0
    for seed in SEEDS:
        stars = random_stars(seed, variables=7)
        draw = np.random.default_rng(seed)
        several = [[int(draw.integers(count)) for count in stars.choices] for _ in range(4)]
        found = NeighborhoodSearch(stars).combine(several)
        mixed = product(*(sorted(set(values)) for values in zip(*several, strict=True)))
        assert stars.cost(found) == min(map(stars.cost, mixed))
        better += stars.cost(found) < min(map(stars.cost, several))
    assert better


def test_choices_that_together_leave_too_much_are_combined_as_far_as_that_is_quick(monkeypatch):
    monkeypatch.setattr(neighborhoods, "_MOST_COMBINED", 20)
    for seed in SEEDS[:8]:
        stars = random_stars(seed, variables=7)
        several = [[(place + k) % count for place, count in enumerate(stars.choices)] for k in range(4)]
        found = NeighborhoodSearch(stars).combine(several)
        assert stars.cost(found) <= min(map(stars.cost, several))
