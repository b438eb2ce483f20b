"""The progress of a search for swap plans, with the baselines to beat and the lower bound."""

from __future__ import annotations

from dataclasses import dataclass

from planner.errors import StowageError, as_sentence, given_type
from planner.graph import Graph
from planner.swap import SwapSearch
from planner.units import format_seconds, several
from widgets.info.argument_types import require_graph


@dataclass(frozen=True, slots=True)
class Found:
    """A new best plan: seconds into the search, evaluations so far, seconds of its step, and its method."""

    seconds: float
    evaluations: int
    step_seconds: float
    method: str


@dataclass(frozen=True)
class SearchHistory:
    """A snapshot of a search.

    Args:
        name: name of the step.
        state: `"running"`, `"paused"`, `"cancelled"`, `"done"` or `"failed"`.
        seconds: time searched so far.
        evaluations: plans timed so far.
        found: every new best plan, in order.
        baselines: step seconds by baseline; None where it has no plan.
        ideal_seconds: step time with infinite memory.
        bound_seconds: lower bound on the step time.
        failure: why the search failed, a sentence; empty if it did not.
    """

    name: str
    state: str
    seconds: float
    evaluations: int
    found: tuple[Found, ...]
    baselines: dict[str, float | None]
    ideal_seconds: float
    bound_seconds: float
    failure: str = ""

    def share(self, step_seconds: float) -> float:
        """Speed of a step as a share of the speed with infinite memory."""
        return self.ideal_seconds / step_seconds if step_seconds else 1.0

    @property
    def best(self) -> float | None:
        """The speed share of the best plan so far."""
        return self.share(self.found[-1].step_seconds) if self.found else None

    @property
    def status(self) -> str:
        """The state in words."""
        return "at its limit" if self.state == "paused" else self.state

    @property
    def summary(self) -> str:
        """The picture in one sentence, and a second one that says why if it failed."""
        after = f"after {format_seconds(self.seconds, 2)} and {several(self.evaluations, 'plan')}"
        if self.failure:
            return f"The search failed {after}. {self.failure}"
        if self.best is None:
            return f"The search is {self.status} and has no plan yet {after}."
        shares = [self.share(seconds) for seconds in self.baselines.values() if seconds is not None]
        beaten = f", the best baseline {100 * max(shares):.1f} %" if shares else ""
        return (
            f"The best plan reaches {100 * self.best:.1f} % of the speed with infinite memory {after}{beaten}; "
            f"no plan exceeds {100 * self.share(self.bound_seconds):.1f} %."
        )


def get_search_history(graph: Graph, search: SwapSearch) -> SearchHistory:
    """Take a snapshot of a search, which may be running.

    Args:
        graph: the step that is planned.
        search: what `planner.swap.search_swaps` returned.

    Raises:
        StowageError: `graph` is no graph, or the search is of another kind.
    """
    require_graph(graph)
    if not isinstance(search, SwapSearch):
        raise StowageError(
            f"{given_type(search)} is not a search for swaps, which this figure draws; a search for partitions "
            "shows its progress when it is printed, and its plan in widgets.partition_splits"
        )
    progress, points = search.progress, search.history
    found = tuple(Found(point.seconds, point.evaluations, point.step_seconds, point.method) for point in points)
    return SearchHistory(
        graph.name, progress.state, max([progress.seconds, *(point.seconds for point in points)]),
        progress.evaluations, found, search.baselines, progress.ideal_seconds, progress.bound_seconds,
        "" if search.error is None else as_sentence(search.error),
    )  # fmt: skip
