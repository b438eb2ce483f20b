"""Descriptions and strategies are proven against the real kernels, and mistakes of every kind are found.

This is a sample, one call of each operator over an uneven number of workers; `benchmarks/verify_tdl.py` proves all.
"""

import pytest
from tdl_cases import calls

from planner.partition import described, prove
from tests.partition.planted import wrong_descriptions, wrong_strategies

FIRST = {call.target: call for call in reversed(list(calls()))}
MISTAKES = {mistake.name: mistake for mistake in (*wrong_descriptions(), *wrong_strategies())}
SHARES = 8


def test_every_described_operator_has_calls_to_prove_it_by():
    assert described() == FIRST.keys()


@pytest.mark.parametrize("share", range(SHARES))
def test_descriptions_and_strategies_are_what_the_kernels_do(share):
    for call in list(FIRST.values())[share::SHARES]:
        proof = prove(call, (3,))
        assert proof.faults == []
        assert proof.checks


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_found(name):
    assert MISTAKES[name].faults()


def test_many_kinds_of_mistakes_are_planted():
    assert len(MISTAKES) >= 47
