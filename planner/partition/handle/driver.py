"""The state of a search for partitions: what was tried, the best plan, and what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from planner.cancel import CancelToken, interruptibly
from planner.errors import StowageError
from planner.partition.baselines import BASELINES
from planner.partition.handle.pins import Pins
from planner.partition.handle.problem import PartitionProblem, PartitionTrial, Solution
from planner.partition.handle.trials import Outcome, trials
from planner.partition.plan import PartitionPlan, validate_partition
from planner.search import STOPPED
from planner.units import format_bytes


@dataclass(frozen=True, slots=True)
class PartitionPoint:
    """A new best partition.

    Args:
        seconds: time spent searching until then.
        evaluations: partitions evaluated until then.
        bytes_moved: bytes that all workers together receive in a step.
        peak_bytes: memory of the worker that takes the most.
        method: how it was found.
    """

    seconds: float
    evaluations: int
    bytes_moved: float
    peak_bytes: int
    method: str


class PartitionSearchState:
    """The state of a search for partitions.

    Args:
        problem: what is partitioned.
        seed: for random choices.
        stop: interrupts the step in progress, which is then repeated.
        outcomes: what trials gave before the search was saved; they are not evaluated again.
        best: the best solution of these.

    Attributes:
        history: every new best partition.
        baselines: bytes by baseline, None where it is not possible or takes more memory than a worker may.
        outcomes: what every trial so far gave.
        seconds: time spent searching.
        first: the bytes of the recursion's answer and the seconds after which it was there.
        least: the memory of the solution that takes the least; None before there is one.
    """

    def __init__(
        self, problem: PartitionProblem, seed: int, stop: CancelToken,
        outcomes: Sequence[Outcome] = (), best: Solution | None = None,
    ) -> None:  # fmt: skip
        self.problem, self.seed, self.stop = problem, seed, stop
        self.solution, self.seconds = best, 0.0
        self.first: tuple[float, float] | None = None
        self.baselines: dict[str, float | None] = {}
        self.history: list[PartitionPoint] = []
        self.outcomes: list[Outcome] = []
        self.least: Solution | None = None
        self._bounds: list[tuple[tuple[int, ...], float]] = []
        self._trials = trials(problem, seed)
        self.next: PartitionTrial | None = next(self._trials)
        for outcome in outcomes:
            self._note(outcome)

    @property
    def best(self) -> PartitionPlan | None:
        """The partition that costs the least within the memory limit so far; it is valid."""
        solution = self.solution
        if solution is None:
            return None
        bound = self._bound_of(solution)
        if bound is None:
            return solution.plan
        return replace(solution.plan, bound=bound, gap=1 - bound / solution.cost if solution.cost else 0.0)

    @property
    def evaluations(self) -> int:
        """How many trials were evaluated."""
        return len(self.outcomes)

    @property
    def bound(self) -> float | None:
        """Lower bound on the cost of any partition over the mesh of the best one, None if none is known."""
        return None if self.solution is None else self._bound_of(self.solution)

    def _bound_of(self, solution: Solution) -> float | None:
        found = [bound for mesh, bound in self._bounds if mesh == solution.trial.mesh]
        return min(max(found), solution.cost) if found else None

    @property
    def bound_bytes(self) -> float | None:
        """The bound in bytes, None if there is none or if some links are slower than others."""
        solution, bound = self.solution, self.bound
        if solution is None or bound is None or set(self.problem.weights(solution.plan.mesh)) - {1.0}:
            return None
        return bound

    @property
    def gap_percent(self) -> float | None:
        """How much more the best partition costs than the bound, in percent."""
        solution, bound = self.solution, self.bound
        if solution is None or bound is None:
            return None
        return 100 * (solution.cost / bound - 1) if bound > 0 else None if solution.cost else 0.0

    @property
    def share(self) -> float:
        """About which share of all trials is evaluated; how many there are is not known before."""
        return 1.0 if self.done else self.evaluations / (self.evaluations + 8)

    @property
    def done(self) -> bool:
        """Whether nothing is left to try."""
        return self.next is None

    def step(self) -> None:
        """Evaluate the next trial.

        Raises:
            Cancelled: cancellation was requested; the next call evaluates the same trial.
        """
        trial = self.next
        if trial is None:
            return
        begun = perf_counter()
        solution = interruptibly(lambda: self._evaluate(trial), self.stop)
        self.seconds += perf_counter() - begun
        if solution is None:
            if trial.solver in BASELINES:
                self.baselines[trial.solver] = None
            self._note(Outcome(None, 0))
            return
        if trial.solver in BASELINES:
            limit = self.problem.memory
            fits = limit is None or solution.memory.most <= limit
            self.baselines[trial.solver] = solution.bytes_moved if fits else None
        self._offer(solution)
        if not self.outcomes:
            self.first = solution.bytes_moved, self.seconds
        self._note(Outcome(solution.cost, solution.memory.most, solution.bound))

    def _evaluate(self, trial: PartitionTrial) -> Solution | None:
        """Solve a trial; None for a baseline or another mesh that is not possible."""
        try:
            return self.problem.solve(trial)
        except StowageError:
            if not self.outcomes:
                raise
            return None

    def settle(self) -> None:
        """Nothing is ever pending."""

    def plan(self) -> PartitionPlan:
        """The best partition.

        Raises:
            StowageError: there is none within the memory limit, or the search was stopped before it had one.
        """
        if self.best is not None:
            return self.best
        if not self.done or self.least is None:
            raise StowageError(STOPPED)
        raise StowageError(too_little_memory(self.problem, self.least))

    def _note(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        if self.next is not None and outcome.bound is not None and self._bounds_all(self.next):
            self._bounds.append((self.next.mesh, outcome.bound))
        try:
            self.next = self._trials.send(outcome)
        except StopIteration:
            self.next = None

    def _bounds_all(self, trial: PartitionTrial) -> bool:
        """Whether a bound for a trial is one for all partitions that the memory limit allows over its mesh."""
        return trial.price == (None if self.problem.memory is None else 0.0)

    def _offer(self, solution: Solution) -> None:
        if solution.trial.solver in BASELINES and (self.problem.memory is None or self.problem.pins):
            return  # it may keep copies, and does not look at pins
        if self.least is None or solution.memory.most < self.least.memory.most:
            self.least = solution
        limit = self.problem.memory
        if limit is not None and solution.memory.most > limit:
            return
        if self.solution is None or solution.cost < self.solution.cost:
            if problems := validate_partition(solution.plan, self.problem.graph):
                name = f"the {solution.trial.method} partition of {self.problem.graph.name}"
                raise AssertionError(f"{name} is wrong: {problems[0]}")
            self.solution = solution
            self.history.append(
                PartitionPoint(
                    self.seconds, self.evaluations + 1, solution.bytes_moved, solution.memory.most,
                    solution.trial.method,
                )
            )  # fmt: skip


def too_little_memory(problem: PartitionProblem, least: Solution) -> str:
    """Why no partition meets the memory limit: what does not fit, and the least limit that would do.

    If one would without the pins, also the smallest set of them that prevents it.
    """
    graph, memory = problem.graph, least.memory
    limit, most = problem.memory or 0, memory.most
    alike = format_bytes(limit) == format_bytes(most)
    allowed, needed = (f"{size:,} bytes" if alike else format_bytes(size) for size in (limit, most))
    where = f"the op {graph.ops[memory.op].name} needs" if memory.op >= 0 else "the step needs"
    holding = ""
    if memory.tensor >= 0:
        holding = f", {format_bytes(memory.tensor_bytes)} of them for {graph.tensors[memory.tensor].name}"
    pins = [f"{name}={value}" for name, value in _pins_in_the_way(problem, least.trial).items()]
    given = f" with {'the pin' if len(pins) == 1 else 'the pins'} {' and '.join(pins)}" if pins else ""
    return (
        f"{allowed} is too little for each of {problem.workers} workers{given}: in the smallest partition that was "
        f"found, {where} {needed}{holding}; allow at least {most} bytes "
        f"({format_bytes(most, round_up=True)}), or {'drop a pin' if pins else 'have more workers'}"
    )


def _pins_in_the_way(problem: PartitionProblem, trial: PartitionTrial) -> Pins:
    """A set of pins with which the memory limit is not met, and with no part of it is not; none if it never is."""

    def met(pins: Pins) -> bool:
        return problem.with_pins(pins).solve(trial).memory.most <= (problem.memory or 0)

    needed = dict(problem.pins)
    if not needed or not met({}):
        return {}
    for name in problem.pins:
        others = {other: value for other, value in needed.items() if other != name}
        if not met(others):
            needed = others
    return needed
