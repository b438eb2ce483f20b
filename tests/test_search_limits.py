"""When the time of a search is over."""

from __future__ import annotations

from time import sleep

import pytest

from planner.cancel import CancelToken
from planner.search import SearchThread

LONG = 60.0


class Searching:
    """A search of steps that each take a given time, unless they are cancelled, and find a plan if they should."""

    def __init__(self, stop: CancelToken, steps: list[float], plans: list[bool]) -> None:
        self.stop, self.steps, self.plans = stop, steps, plans
        self.seconds, self.evaluations = 0.0, 0
        self.best: object | None = None

    @property
    def done(self) -> bool:
        return self.evaluations == len(self.steps)

    def step(self) -> None:
        for _ in range(int(self.steps[self.evaluations] * 100)):
            self.stop.check()
            sleep(0.01)
        self.best = self.best or (object() if self.plans[self.evaluations] else None)
        self.evaluations += 1

    def settle(self) -> None:
        pass


def searched(steps: list[float], plans: list[bool], time_limit: float) -> SearchThread[Searching]:
    """A search that has ended."""
    stop = CancelToken()
    search = SearchThread(lambda: Searching(stop, steps, plans), stop)
    search.start(time_limit, None)
    assert search.ended.wait(LONG / 2)
    return search


def test_a_step_in_progress_ends_with_the_time():
    search = searched([0.01, LONG], [True, True], 0.3)
    assert search.state == "paused"
    assert search.search_state is not None
    assert search.search_state.evaluations == 1


def test_a_search_whose_time_was_over_within_a_step_can_be_resumed():
    search = searched([0.01, LONG, 0.01], [True, True, True], 0.3)
    assert search.search_state is not None
    search.search_state.steps[1] = 0.01
    search.start(None, None)
    assert search.ended.wait(LONG / 2)
    assert search.state == "done"
    assert not search.stop.requested


@pytest.mark.parametrize("steps", [[1.0, LONG], [0.01, 1.0, LONG]], ids=["the first step", "before there is a plan"])
def test_what_no_later_search_would_get_past_is_done_to_its_end(steps):
    search = searched(steps, [False] * (len(steps) - 2) + [True, True], 0.3)
    assert search.state == "paused"
    assert search.search_state is not None
    assert search.search_state.evaluations == len(steps) - 1


def test_a_search_without_a_time_limit_is_not_cut():
    stop = CancelToken()
    search = SearchThread(lambda: Searching(stop, [0.3, 0.3], [True, True]), stop)
    search.start(None, None)
    assert search.ended.wait(LONG / 2)
    assert search.state == "done"
