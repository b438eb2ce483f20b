"""How much is tried: `make test-all` tries four times as many random cases as `make test`, and every combination.

Only tests that say the same again for other random cases, sizes or combinations read it.
"""

import os
from itertools import product
from typing import Any

EFFORT = int(os.environ.get("STOWAGE_EFFORT", "1"))


def combinations(*axes: list[Any]) -> list[tuple[Any, ...]]:
    """Combinations of a value of each list: all in `make test-all`, else so many that every value occurs."""
    if EFFORT > 1:
        return list(product(*axes))
    return [tuple(axis[k % len(axis)] for axis in axes) for k in range(max(map(len, axes)))]
