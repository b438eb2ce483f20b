"""What each size needs, each worked out once, by a predicted graph or by the captured one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

from planner.cancel import CancelToken
from planner.fit.sized_graphs import SizedGraphs
from planner.fit.time_and_memory import Needs, assess
from planner.graph import Graph
from planner.machine import Machine, op_seconds
from planner.swap import estimated_seconds, peak_of

#: More host memory than any step takes.
_WITHOUT_END = 2**50


class Assessor:
    """Answers about sizes.

    Args:
        graphs: the graph of each size.
        machine: with the host's memory.
        budget: bytes of device memory.
        evaluations, seed, stop, report: as in `assess`.
    """

    def __init__(
        self, graphs: SizedGraphs, machine: Machine, budget: int, *, evaluations: int | None, seed: int,
        stop: CancelToken, report: Callable[[int, float], object],
    ) -> None:  # fmt: skip
        self.graphs, self._machine, self._budget = graphs, machine, budget
        self._evaluations, self._seed, self._stop, self._report = evaluations, seed, stop, report
        self._most = budget + machine.host_memory_bytes
        self._known: dict[int, Needs] = {}
        self._unswapped: dict[int, int] = {}
        self._beyond_host: dict[int, bool] = {}  # of known sizes: whether only the host stops them
        self._slowdowns: dict[int, float] = {}  # estimated

    def needs(self, value: int, *, captured: bool = False) -> Needs:
        """What a size needs; with `captured`, by its captured graph."""
        graph = self._graph(value, captured)
        if value not in self._known:
            self._known[value], self._beyond_host[value] = self._assess(value, graph(), self._machine)
        return self._known[value]

    def _assess(self, value: int, graph: Graph, machine: Machine, *, any_plan: bool = False) -> tuple[Needs, bool]:
        least = self.graphs.least_bytes(value) if machine is self._machine else 0
        return assess(
            value, graph, machine, self._budget, least, evaluations=self._evaluations, seed=self._seed,
            stop=self._stop, report=lambda share: self._report(value, share), any_plan=any_plan,
        )  # fmt: skip

    def is_stopped_by_host(self, value: int) -> bool:
        """Whether a size without a plan has one if the host's memory has no end; its graph is captured."""
        if self.needs(value, captured=True).step_seconds is not None:
            return False
        if self._beyond_host[value]:
            return True
        machine = replace(self._machine, host_memory_bytes=_WITHOUT_END)
        needs, _ = self._assess(value, self.graphs.capture_of(value), machine, any_plan=True)
        return needs.step_seconds is not None

    def fits_unswapped(self, value: int, *, captured: bool = False) -> bool:
        """Whether a size fits with nothing swapped."""
        graph = self._graph(value, captured)
        if self.graphs.least_bytes(value) > self._budget:
            return False
        if value not in self._unswapped:
            self._stop.check()
            self._unswapped[value] = peak_of(graph(), self._machine.device.alignment, self._stop)
        return self._unswapped[value] <= self._budget

    def cannot_fit(self, value: int) -> bool:
        """Whether a size is known to have no plan, before one is searched for."""
        return self.graphs.least_bytes(value) > self._most

    def fits_at_all(self, value: int) -> bool:
        """Whether a size has a plan; the first one that is found will do."""
        if self.cannot_fit(value):
            return False
        needs, _ = self._assess(value, self.graphs.graph_of(value), self._machine, any_plan=True)
        return needs.step_seconds is not None

    def place_before(self, values: Sequence[int], most: int) -> int:
        """The place of the last value, by bisection, that is not known to hold more than so many bytes; -1 if none."""
        low, high = -1, len(values)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.graphs.least_bytes(values[middle]) > most else (middle, high)
        return low

    def place_within(self, values: Sequence[int], slower: float) -> int:
        """The place, by bisection, of the last value that is about this share slower than with infinite memory.

        -1 if there is none, and the last place where a value would have to be captured to tell.
        """
        low, high = -1, len(values)
        while high - low > 1:
            middle = (low + high) // 2
            if not self._holds(values[middle]):
                return len(values) - 1
            low, high = (middle, high) if self._slowdown(values[middle]) <= slower else (low, middle)
        return low

    def _slowdown(self, value: int) -> float:
        """About how much slower the step of a size is than with infinite memory, as a share."""
        if value in self._known:
            needs = self._known[value]
            return inf if needs.step_seconds is None else needs.step_seconds / (needs.ideal_seconds or 1.0) - 1
        if value not in self._slowdowns:
            self._report(value, 0.0)
            graph = self.graphs.graph_of(value)
            seconds = op_seconds(graph, self._machine)
            estimate = estimated_seconds(graph, self._machine, self._budget, seconds, self._stop)
            self._slowdowns[value] = estimate / (float(seconds.sum()) or 1.0) - 1
        return self._slowdowns[value]

    def tried(self) -> tuple[Needs, ...]:
        """What is known of each value, ascending."""
        captured = self.graphs.captured
        return tuple(replace(self._known[value], captured=value in captured) for value in sorted(self._known))

    def _graph(self, value: int, captured: bool) -> Callable[[], Graph]:
        """The graph of a value, when it is called; with `captured`, what was found of a wrong prediction is dropped."""
        if captured and value not in self.graphs.captured:
            self._capture(value)
        return lambda: self.graphs.graph_of(value) if self.graphs.is_predicted(value) else self._capture(value)

    def _capture(self, value: int) -> Graph:
        self._report(value, 0.0)
        wrong = self.graphs.wrong
        graph = self.graphs.capture_of(value)
        if self.graphs.wrong > wrong or not self.graphs.outside_is_predicted(value):
            for found in (self._known, self._unswapped, self._slowdowns):
                for other in [one for one in found if not self._holds(one) or one == value]:
                    del found[other]
        return graph

    def _holds(self, value: int) -> bool:
        return value in self.graphs.captured or self.graphs.is_predicted(value)
