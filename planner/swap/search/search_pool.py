"""Runs a search for swap plans in a thread, with more threads for what a search step can do side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager

from planner.cancel import CancelToken
from planner.search import SearchThread
from planner.swap.methods.method import Each, Item, Result
from planner.swap.search.driver import SearchState, one_by_one


class SwapSearchThread(SearchThread[SearchState]):
    """The thread of a search for swap plans.

    Args:
        make: creates the search state; called by `lay_out`.
        ideal: seconds of the step with infinite memory.
        stop: the cancel token of the problem, which also interrupts a search step that is then repeated.
        threads: number of search threads.
    """

    def __init__(self, make: Callable[[], SearchState], ideal: float, stop: CancelToken, threads: int) -> None:
        super().__init__(make, stop)
        self.ideal, self.threads = ideal, threads
        self.each: Each = one_by_one

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """The threads of search steps."""
        with ThreadPoolExecutor(self.threads, "stowage-search-worker") as pool:
            self.each = ThreadMap(pool)
            yield

    def step(self, search_state: SearchState) -> None:
        """Run one search step in the threads."""
        search_state.each = self.each
        search_state.step()


class ThreadMap:
    """Applies functions in threads; when it returns or raises, all calls have ended."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def __call__(self, function: Callable[[Item], Result], items: Iterable[Item], /) -> list[Result]:
        """Apply."""
        futures = [self._pool.submit(function, item) for item in items]
        wait(futures)
        return [future.result() for future in futures]
