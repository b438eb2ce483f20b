"""A search for partitions that runs in a thread and can be observed, cancelled, resumed and saved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from planner.cancel import CancelToken
from planner.errors import StowageError
from planner.files import PATH, require_arguments
from planner.graph import Graph
from planner.jit import doing
from planner.machine import Machine
from planner.partition.handle.checkpoint import read_partition_search, save_partition_search
from planner.partition.handle.driver import PartitionPoint, PartitionSearchState
from planner.partition.handle.inputs import check_inputs, check_pin_form, make_partition_problem, memory_limit
from planner.partition.handle.memory_sweep import MemoryPoint, sweep_memory
from planner.partition.handle.pins import Pins
from planner.partition.handle.problem import PartitionProblem, Solution
from planner.partition.plan import PartitionPlan
from planner.progress import ShowProgress
from planner.search import SECONDS, STOPPED, SearchHandle, SearchStatus, SearchThread, check_limits
from planner.units import format_bytes


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """The progress of a search for partitions.

    Args:
        state: `"running"`; `"cancelled"`; `"paused"` when its time or evaluations are used up; `"done"` when nothing
            is left to try; `"failed"`.
        doing: what is being tried, in words.
        evaluations: partitions evaluated.
        seconds: time spent searching.
        bytes_moved: bytes of the best partition, None before there is any.
        peak_bytes: memory of the worker that takes the most with it, None likewise.
        bound_bytes: lower bound on the bytes of any partition over its mesh that the memory limit allows or, without a
            limit, that splits all it can; None if none is known yet or if some links are slower than others.
        gap_percent: how much more the best partition costs than the bound at most, in percent, None likewise; bytes
            over slow links cost more.
    """

    state: SearchStatus
    doing: str
    evaluations: int
    seconds: float
    bytes_moved: float | None
    peak_bytes: int | None
    bound_bytes: float | None
    gap_percent: float | None


class PartitionSearch(SearchHandle[PartitionSearchState, PartitionPlan]):
    """A running search. Made by `search_partition` or `load_partition_search`; dropping the last reference stops it.

    The same seed and number of evaluations give the same plan.
    """

    def __repr__(self) -> str:
        now = self.progress
        best = "no partition yet" if now.bytes_moved is None else f"{format_bytes(now.bytes_moved)} a step"
        return f"<PartitionSearch {now.state}: {best} after {now.seconds:.1f} s and {now.evaluations:,} partitions>"

    @property
    def best(self) -> PartitionPlan | None:
        """The partition with the fewest bytes so far, always a valid one; None before there is any."""
        search_state = self._runner.search_state
        return None if search_state is None else search_state.best

    @property
    def solution(self) -> Solution | None:
        """The best partition with what it costs, None before there is any."""
        search_state = self._runner.search_state
        return None if search_state is None else search_state.solution

    @property
    def recursion(self) -> tuple[float, float] | None:
        """The bytes of the recursion's answer and the seconds after which it was there, None before it is."""
        search_state = self._runner.search_state
        return None if search_state is None else search_state.first

    @property
    def history(self) -> tuple[PartitionPoint, ...]:
        """Every new best partition: when, after how many evaluations, its bytes and memory, and how it was found."""
        search_state = self._runner.search_state
        return () if search_state is None else tuple(search_state.history)

    @property
    def baselines(self) -> dict[str, float | None]:
        """Bytes in a step by baseline, None where it is not possible or takes more memory than a worker may.

        Only the baselines evaluated so far; without a limit, data parallelism takes more memory than the search allows
        itself.
        """
        search_state = self._runner.search_state
        return {} if search_state is None else dict(search_state.baselines)

    @property
    def progress(self) -> PartitionProgress:
        """The progress so far; cheap to read."""
        runner, search_state = self._runner, self._runner.search_state
        if search_state is None:
            words = doing("finding how ops can be split")
            return PartitionProgress(runner.state, words, 0, runner.searched(), None, None, None, None)
        best, following = search_state.solution, search_state.next
        words = "nothing is left to try" if following is None else doing(f"trying {following.method}")
        return PartitionProgress(
            runner.state, words, search_state.evaluations, runner.searched(),
            None if best is None else best.bytes_moved, None if best is None else best.memory.most,
            search_state.bound_bytes, search_state.gap_percent,
        )  # fmt: skip

    @property
    def problem(self) -> PartitionProblem:
        """What is partitioned; waits until the search has found out how ops can be split.

        Raises:
            StowageError: the search was stopped before that, or the graph cannot be split.
        """
        return self._state().problem

    @property
    def least_memory(self) -> int | None:
        """Memory of the worker that takes the most, of the partition found so far for which that is least.

        Where no partition meets the memory limit, a limit of so much does. None before there is any.
        """
        search_state = self._runner.search_state
        least = None if search_state is None else search_state.least
        return None if least is None else least.memory.most

    def pareto(self, *, progress: ShowProgress = True) -> tuple[MemoryPoint, ...]:
        """Bytes moved against memory per worker: partitions of which no other moves fewer bytes in no more memory.

        Args:
            progress: True shows progress, False shows nothing; a function is called with the share done, 0 to 1, and
                what is being done.

        Raises:
            StowageError: as `problem` does.
        """
        return sweep_memory(self.problem, progress)

    def with_pins(
        self, pins: Pins, *, time_limit: float | None = SECONDS, evaluations: int | None = None
    ) -> PartitionSearch:
        """A new search with other pins, which begins with all that this one has found out about the graph.

        Args:
            pins: as in `search_partition`; they replace those of this search.
            time_limit, evaluations: as in `search_partition`.

        Raises:
            StowageError: the pins cannot be met, or as `problem` does.
        """
        check_pin_form(pins)
        return self._again(self.problem.with_pins(pins), time_limit, evaluations)

    def with_memory(
        self, memory: str | int | None, *, time_limit: float | None = SECONDS, evaluations: int | None = None
    ) -> PartitionSearch:
        """A new search within another memory limit, which begins with all that this one has found out about the graph.

        Args:
            memory: as in `search_partition`; None to take as little as splitting gives.
            time_limit, evaluations: as in `search_partition`.

        Raises:
            StowageError: the limit is not possible, or as `problem` does.
        """
        problem = self.problem
        return self._again(problem.with_memory(memory_limit(problem.graph, memory)), time_limit, evaluations)

    def _again(
        self, problem: PartitionProblem, time_limit: float | None, evaluations: int | None
    ) -> PartitionSearch:  # fmt: skip
        seed, stop = self._state().seed, CancelToken()
        runner = SearchThread(lambda: PartitionSearchState(problem, seed, stop), stop)
        runner.lay_out()
        return PartitionSearch(runner, time_limit, evaluations)

    def save(self, path: str | Path) -> None:
        """Save the state of the search for `load_partition_search`; the search may be running.

        A long search step in progress is restarted afterwards.

        Raises:
            StowageError: `path` is of another type; the file cannot be written and an existing one is left
                unchanged; the search has only begun; or the process was forked.
        """
        require_arguments("save", path=(path, PATH))
        with self._runner.at_home().between_turns() as search_state:
            save_partition_search(search_state, path)

    def _state(self) -> PartitionSearchState:
        search_state = self._runner.laid_out()
        if search_state is None:
            raise StowageError(STOPPED)
        return search_state

    def _plan(self, search_state: PartitionSearchState) -> PartitionPlan:
        return search_state.plan()

    def _doing(self) -> tuple[float, str]:
        now, search_state = self.progress, self._runner.search_state
        reached = "" if now.bytes_moved is None else f"; so far {format_bytes(now.bytes_moved)} a step"
        return 0.0 if search_state is None else search_state.share, f"{now.doing}{reached}"


def search_partition(
    graph: Graph,
    workers: int = 8,
    machine: Machine | None = None,
    memory: str | int | None = None,
    *,
    pins: Pins | None = None,
    seed: int = 0,
    time_limit: float | None = SECONDS,
    evaluations: int | None = None,
) -> PartitionSearch:
    """Start a search for the partition of a step over workers that moves the fewest bytes; returns at once.

    Without a memory limit, nothing is replicated that can be split, so that each worker takes as little memory as
    splitting gives. With one, tensors are replicated where that saves bytes, as far as the limit allows. Slow checks
    run in the search itself: it is `wait` that reports that pins conflict or that no partition meets the limit.

    Args:
        graph: a step; it needs no program.
        workers: how many there are; 1 gives a plan that moves nothing.
        machine: what the workers are; their memory, without the reserve, is the limit if no other is given.
        memory: the most that a worker may take: bytes, or text such as `"8GiB"` or `"50%"` of what the step takes on
            one device.
        pins: splits that are fixed: by name of a tensor a dimension or `"replicated"`, or one for each level, of which
            None is free; by name of an op one of its axes.
        seed: for random choices.
        time_limit: seconds after which the search pauses; None for no limit.
        evaluations: number of evaluated partitions after which it pauses; None for no limit.

    Raises:
        StowageError: the graph or the machine is not one, or a number or a limit is not possible.
    """
    check_inputs(graph, workers, machine, memory, seed, pins)
    check_limits(time_limit, evaluations)
    stop = CancelToken()

    def make() -> PartitionSearchState:
        return PartitionSearchState(
            make_partition_problem(graph, workers, machine, memory, pins, stop), seed, stop
        )  # fmt: skip

    return PartitionSearch(SearchThread(make, stop), time_limit, evaluations)


def load_partition_search(
    path: str | Path,
    graph: Graph,
    machine: Machine | None = None,
    *,
    time_limit: float | None = SECONDS,
    evaluations: int | None = None,
) -> PartitionSearch:
    """Resume a search that was saved, as if it had never stopped.

    Args:
        path: a file that `PartitionSearch.save` wrote.
        graph, machine: as when the search was started.
        time_limit, evaluations: as in `search_partition`.

    Raises:
        StowageError: the file is damaged, or from a search for another graph or machine.
    """
    stop = CancelToken()
    search_state = read_partition_search(path, graph, machine, stop)
    runner = SearchThread(lambda: search_state, stop)
    runner.lay_out()
    return PartitionSearch(runner, time_limit, evaluations)
