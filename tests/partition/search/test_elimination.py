"""Variable elimination finds the least sum that going through all values finds, whatever its terms are like."""

from itertools import combinations, product

import numpy as np
import pytest

from planner.partition.search.factors.eliminate import Eliminated
from planner.partition.search.factors.elimination_step import LeastOf

CHOICES = [3, 1, 4, 2, 3]
SCOPES = [scope for size in range(4) for scope in combinations(range(len(CHOICES)), size)]


def random_term(draw: np.random.Generator) -> LeastOf:
    """One to three costs of some variables, of which each may depend on fewer."""
    variables = SCOPES[draw.integers(len(SCOPES))]
    costs = []
    for _ in range(draw.integers(1, 4)):
        sizes = [CHOICES[variable] if draw.random() < 0.7 else 1 for variable in variables]
        costs.append(draw.integers(0, 30, sizes) * 1.0)
    return LeastOf(variables, tuple(costs))


def cost_of(terms: list[LeastOf], values: tuple[int, ...]) -> float:
    """A sum at given values, entry by entry."""
    total = 0.0
    for term in terms:
        entries = []
        for costs in term.costs:
            at = [
                0 if size == 1 else values[variable] for variable, size in zip(term.variables, costs.shape, strict=True)
            ]
            entries.append(costs[tuple(at)])
        total += min(entries)
    return total


@pytest.mark.parametrize("seed", range(100))
def test_the_least_sum_and_where_it_is(seed: int) -> None:
    draw = np.random.default_rng(seed)
    terms = [random_term(draw) for _ in range(draw.integers(1, 9))]
    scopes = [(term.variables, number) for number, term in enumerate(terms)]
    done = Eliminated(CHOICES, scopes, terms.__getitem__, most=np.inf)
    least = min(cost_of(terms, values) for values in product(*map(range, CHOICES)))
    assert (done.constant, done.given, done.made, done.refused) == (least, [], [], ())
    assert cost_of(terms, tuple(done.values({}))) == least


@pytest.mark.parametrize("seed", range(20))
def test_what_is_left_after_some_variables_costs_the_same(seed: int) -> None:
    draw = np.random.default_rng(seed)
    terms = [random_term(draw) for _ in range(8)]
    scopes = [(term.variables, number) for number, term in enumerate(terms)]
    done = Eliminated(CHOICES, scopes, terms.__getitem__, most=20)
    left = [terms[number] for number in done.given] + [table.alone() for table in done.made]
    known = sorted({variable for term in left for variable in term.variables})
    for values in product(*(range(CHOICES[variable]) for variable in known)):
        chosen = done.values(dict(zip(known, values, strict=True)))
        assert [chosen[variable] for variable in known] == list(values)
        assert cost_of(terms, tuple(chosen)) == done.constant + cost_of(left, tuple(chosen))
