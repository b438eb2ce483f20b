"""What compiling takes is not counted against the time limit of a search."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from numba import njit

from planner.cancel import CancelToken
from planner.search import SearchThread
from planner.search_clock import search_seconds


def compile_for(seconds: float) -> None:
    """Compile functions, as a first search does its kernels, for at least that long."""
    until = perf_counter() + seconds
    while perf_counter() < until:
        njit(lambda x: x + 1)(1)


class Compiling:
    """A search whose first step compiles."""

    def __init__(self) -> None:
        self.seconds, self.evaluations, self.best, self.done = 0.0, 0, None, False

    def step(self) -> None:
        if not self.evaluations:
            compile_for(1.5)
        self.evaluations, self.best = self.evaluations + 1, object()

    def settle(self) -> None:
        pass


def test_a_search_that_compiles_goes_on_for_as_long_as_one_that_does_not() -> None:
    search: SearchThread[Compiling] = SearchThread(Compiling, CancelToken())
    search.start(1.0, None)
    search.ended.wait()
    assert search.error is None
    assert search.state == "paused"
    assert search.search_state is not None
    assert search.search_state.evaluations > 1


def test_the_clock_never_goes_back() -> None:
    def during(work: Callable[[], object]) -> float:
        before = search_seconds()
        work()
        return search_seconds() - before

    assert during(lambda: None) >= 0
    assert during(lambda: compile_for(0.2)) >= 0
