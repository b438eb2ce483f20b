"""Random programs, of which `benchmarks/random_loops.py` makes a thousand: equal or refused."""

from __future__ import annotations

import functools

import pytest
from beside_eager import outcome
from random_program import features, program

from tests.effort import EFFORT


@pytest.mark.parametrize("seed", range(6 * EFFORT))
def test_a_random_program_has_eagers_numbers_or_is_refused(seed: int) -> None:
    found = outcome(functools.partial(program, seed), seed)
    assert found.kind in ("equal", "refused"), f"{found.kind}: {found.detail} ({features(seed)})"


def test_a_program_is_the_same_whenever_it_is_made() -> None:
    assert [features(seed) for seed in range(50)] == [features(seed) for seed in range(50)]
    assert len({features(seed) for seed in range(50)}) == 50
