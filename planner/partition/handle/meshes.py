"""The orders in which a number of workers can be cut into levels."""

from __future__ import annotations

from collections.abc import Iterator


def factorizations(workers: int) -> Iterator[tuple[int, ...]]:
    """Every sequence of factors of 2 or more whose product is a number of workers; `()` for one worker."""
    if workers == 1:
        yield ()
        return
    for factor in range(2, workers + 1):
        if workers % factor == 0:
            for rest in factorizations(workers // factor):
                yield (factor, *rest)
