"""Random numbers that are not PyTorch's, which a plan cannot draw again in every step."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from planner.errors import StowageError

_ADVICE = {
    "Python's random": "random.random() by torch.rand(())",
    "NumPy": "np.random.rand(...) by torch.rand(...)",
}


@contextmanager
def unchanged_generators() -> Iterator[None]:
    """Refuse draws from Python's and NumPy's global generators, and restore the generators.

    Raises:
        StowageError: one of them was drawn from.
    """
    before, array = random.getstate(), np.random.get_state(legacy=False)
    yield
    drawn = []
    if random.getstate() != before:
        random.setstate(before)
        drawn.append("Python's random")
    now = np.random.get_state(legacy=False)
    if not _same(now, array):
        np.random.set_state(array)
        drawn.append("NumPy")
    if drawn:
        raise StowageError(
            f"the step draws random numbers from {' and '.join(drawn)}, which a plan would not draw again: replace "
            f"{' and '.join(_ADVICE[name] for name in drawn)}, and a choice between layers by torch.where"
        )


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)
