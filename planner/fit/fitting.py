"""The largest size of a step that fits on a machine: unswapped, at full speed, somewhat slower, and at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from planner.cancel import CancelToken
from planner.finalizers import without_garbage_collection
from planner.fit.argument_checks import (
    Values,
    check_search,
    checked_argument,
    checked_budget,
    checked_shares,
)
from planner.fit.bisection import MOST_SCANNED, Largest, largest
from planner.fit.captured_sizes import CapturedSizes
from planner.fit.failing_sizes import Failure
from planner.fit.needs_per_size import Assessor
from planner.fit.open_ranges import closed_range
from planner.fit.sized_graphs import SizedGraphs
from planner.fit.time_and_memory import FULL_SPEED, Needs, share_text
from planner.graph import Graph
from planner.machine import Machine, Reserve, approximation, reserve_of
from planner.progress import ShowProgress, reporting
from planner.step import Step
from planner.units import format_bytes, format_seconds

#: Values that bisection skipped are tried one by one, and plans searched for all that were captured, as long as all of
#: them together have no more ops than this: 16 s.
_MOST_SCANNED_OPS = 16384


@dataclass(frozen=True, eq=False)
class Fit:
    """What fits on a machine.

    Args:
        over: the argument that was varied.
        machine: name of the machine.
        budget_bytes: device memory that a plan may use: what the device has without the reserve.
        reserve: memory beside the arena.
        unswapped: the largest value with nothing swapped.
        full_speed: the largest value that is at most 1 % slower than with infinite memory.
        slower: by share of time, the largest value that is at most so much slower.
        at_all: the largest value for which a plan was found.
        tried: the values that were tried and what they need, ascending.
        asked: all values that were asked about; of a range without a last value, those up to the first that does not
            fit, by doubling, or up to the last that the step takes.
        stopped_by_host: whether the next larger value than that of `at_all` has a plan if the host has memory enough.
        approximate: in what an answer found on the machine itself may differ, in a sentence; empty where in nothing.
        failed: values that the step does not take, whatever memory the machine has: the one after the last, where that
            ends a range without a last value, and the first, where it was left out.
    """

    over: str
    machine: str
    budget_bytes: int
    reserve: tuple[Reserve, ...]
    unswapped: Largest
    full_speed: Largest
    slower: Mapping[float, Largest]
    at_all: Largest
    tried: tuple[Needs, ...]
    asked: Sequence[int]
    stopped_by_host: bool = False
    approximate: str = ""
    failed: tuple[Failure, ...] = ()

    def __repr__(self) -> str:
        """One line: what was tried may be pages."""
        words = ", ".join(f"{name} {'none' if value is None else value}" for name, value in self._answers())
        return f"<Fit of {self.over} on {self.machine}, {format_bytes(self.budget_bytes)}: {words}>"

    def __str__(self) -> str:
        """A line for each answer, with what it takes, and one that says in what they are approximate."""
        answers = self._answers()
        width = max(len(name) for name, _ in answers)
        lines = [f"{name:<{width}}  {self._line(value, name == 'unswapped')}" for name, value in answers]
        title = f"{self.over} on {self.machine}, {format_bytes(self.budget_bytes)} for the step"
        caution = [f"approximate: {self.approximate}"] if self.approximate else []
        return "\n".join([title, *lines, *caution])

    def _answers(self) -> list[tuple[str, int | None]]:
        """The name and the value of each answer."""
        slower = [(f"{share_text(share)} slower", answer.value) for share, answer in self.slower.items()]
        return [
            ("unswapped", self.unswapped.value), ("full speed", self.full_speed.value), *slower,
            ("at all", self.at_all.value),
        ]  # fmt: skip

    def _line(self, value: int | None, unswapped: bool) -> str:
        """A value, the memory or the time that it takes, and whether larger ones may fit."""
        if value is None:
            return "none"
        needs = next(needs for needs in self.tried if needs.value == value)
        seconds = needs.step_seconds or 0.0  # which an answer has unless it is that for which nothing is swapped
        takes = format_bytes(needs.unswapped_bytes) if unswapped else f"{format_seconds(seconds)} a step"
        last = " (the last asked for)" if value == self.asked[-1] and not self.stopped_by_model else ""
        return f"{self.over}={value}, {takes}{last}"

    @property
    def stopped_by_model(self) -> bool:
        """Whether a range without a last value ends where the step itself fails, and not for want of memory."""
        return any(failure.value > self.asked[-1] for failure in self.failed)


def fit(
    make_step: Callable[..., Step],
    machine: Machine,
    over: Mapping[str, Values],
    *,
    device: str | None = None,
    slower: str | Sequence[str] = ("10%", "50%"),
    evaluations: int | None = None,
    seed: int = 0,
    progress: ShowProgress = True,
    stop: CancelToken | None = None,
) -> Fit:
    """Find the largest value of an argument for which a step fits on a machine.

    A value fits unswapped if the captured order takes no more than the budget, and swapped if a search finds a plan
    within the budget and the host's memory. The answer is the largest value that fits; smaller ones may be slower, as
    where parameters are copied in each step. Op times are the machine's roofline, so the machine is a GPU.

    Where the same ops run in all sizes, the graphs of most values are predicted from captured ones, as bytes and
    arithmetic grow evenly with the batch. Each answer and the next larger value are captured, and where a prediction
    was wrong, values are captured instead.

    Args:
        make_step: called with the value by the argument's name, such as `planner.zoo.gpt`; returns a step.
        machine: its device memory, without the reserve, and its host memory are the limits.
        over: the argument's name and its values, ascending: `{"batch": range(1, 65)}`. `{"batch": (1, None)}` has no
            last value: 1 is doubled until a value does not fit, up to which all are asked about; where the step does
            not take a value, as beyond the positions of a language model, up to the last one that it takes.
        device: the type of device whose ops the step is captured with, `"cpu"` or `"cuda"`, which need not be there;
            None for that of the machine.
        slower: how much slower than with infinite memory a step may be, such as `"10%"`.
        evaluations: plans timed for each value; None to run the portfolio of eviction passes to its end.
        seed: for random choices.
        progress: True shows progress, False shows nothing; a function is called with the share done, 0 to 1, and a
            status text.
        stop: checked several times a second.

    Raises:
        StowageError: there is no such argument, a value is below 1, there are no values, a share, the seed, the number
            of evaluations or the machine is invalid, the machine is a CPU, or the step of the first value, or of one
            between others that work, cannot be made or captured.
        Cancelled: cancellation was requested.
    """
    name, values, endless = checked_argument(make_step, over)
    shares = checked_shares(slower)
    check_search(seed, evaluations)
    budget = checked_budget(machine)
    stop, most = stop or CancelToken(), budget + machine.host_memory_bytes
    with (
        without_garbage_collection(),
        reporting(progress) as report,
        CapturedSizes(
            make_step, name, values, device or machine.device.kind, stop, report, endless=endless
        ) as captured,
    ):

        def assessor(graphs: SizedGraphs) -> Assessor:
            return Assessor(graphs, machine, budget, evaluations=evaluations, seed=seed, stop=stop, report=captured.say)

        def fits(value: int, graph: Graph) -> bool:
            return assessor(SizedGraphs([value], lambda _: graph, budget, most)).fits_at_all(value)

        if endless:
            values = captured.values = closed_range(name, values[0], captured.graph_of, captured.works, fits)
            captured.endless = False
        sizes = assessor(SizedGraphs(values, captured.graph_of, budget, most, known=tuple(captured)))
        graphs = sizes.graphs
        before = -1
        while graphs.wrong != before:  # where a prediction was wrong, less is predicted the next time
            before = graphs.wrong
            captured.forget()
            found = _answers(values, sizes, shares, budget, most, captured.note)
        if len(captured) * graphs.ops <= _MOST_SCANNED_OPS:
            for value in captured:
                sizes.needs(value)
        if any(answer.value is None for answer in found):  # what the smallest value takes says why
            sizes.needs(values[0], captured=True)
        for answer in found:  # an answer of which only the peak was asked is told in full as well
            if answer.value is not None:
                sizes.needs(answer.value, captured=True)
        known = 0
        while known != len(captured):  # what one answer captures may be a larger one of another
            known, criteria = len(captured), _criteria(shares, budget)
            found = tuple(_raised(*each, values, sizes) for each in zip(found, criteria, strict=True))
        unswapped, at_all, full_speed, *others = found
        larger = 0 if at_all.value is None else values.index(at_all.value) + 1
        by_host = larger < len(values) and sizes.is_stopped_by_host(values[larger])
    return Fit(
        name, machine.name, budget, reserve_of(machine.device), unswapped, full_speed,
        dict(zip(shares, others, strict=True)), at_all, sizes.tried(), values, by_host,
        approximation(captured.graph_of(next(iter(captured))), machine), captured.failed,
    )  # fmt: skip


def _criteria(shares: Sequence[float], budget: int) -> tuple[Callable[[Needs], bool], ...]:
    """What each answer is the largest value of, in the order of `_answers`."""
    within = (lambda needs, share=share: needs.within(share) for share in (FULL_SPEED, *shares))
    return (
        lambda needs: needs.unswapped_bytes <= budget, lambda needs: needs.step_seconds is not None, *within,
    )  # fmt: skip


def _raised(answer: Largest, meets: Callable[[Needs], bool], values: Sequence[int], sizes: Assessor) -> Largest:
    """The answer, or a larger value that was captured for another one and meets the criterion too."""
    while True:
        known = {needs.value: meets(needs) for needs in sizes.tried() if needs.captured}
        best = max((value for value, met in known.items() if met), default=None)
        if best is None or (answer.value is not None and best <= answer.value):
            return answer
        larger = values[values.index(best) + 1 :]
        if larger and larger[0] not in known:
            sizes.needs(larger[0], captured=True)
            continue
        monotone = all(met for value, met in known.items() if value < best)
        return Largest(best, all(value in known for value in larger), monotone)


def _answers(
    values: Sequence[int], sizes: Assessor, shares: Sequence[float], budget: int, most: int,
    note: Callable[[str, int | None], object],
) -> tuple[Largest, ...]:  # fmt: skip
    """The largest value unswapped, at all, at full speed and for each share of time; each is noted once it is found."""
    scanned = min(MOST_SCANNED, _MOST_SCANNED_OPS // max(sizes.graphs.ops, 1))

    def meeting(answer: str, meets: Callable[[Needs], bool], first: int) -> Largest:
        found = largest(
            values, lambda value: not sizes.cannot_fit(value) and meets(sizes.needs(value)),
            lambda value: meets(sizes.needs(value, captured=True)), first=first, most_scanned=scanned,
        )  # fmt: skip
        note(answer, found.value)
        return found

    unswapped = largest(
        values, sizes.fits_unswapped, lambda value: sizes.fits_unswapped(value, captured=True),
        first=sizes.place_before(values, budget), most_scanned=scanned,
    )  # fmt: skip
    note("unswapped", unswapped.value)
    at_all = meeting("at all", lambda needs: needs.step_seconds is not None, sizes.place_before(values, most))
    last = -1 if at_all.value is None else values.index(at_all.value)
    slowdowns = {"full speed": FULL_SPEED, **{f"{share_text(share)} slower": share for share in shares}}
    within = (
        meeting(
            answer, lambda needs, share=share: needs.within(share),  # type: ignore[misc]
            min(last, sizes.place_within(values, share)),
        )
        for answer, share in slowdowns.items()
    )  # fmt: skip
    return unswapped, at_all, *within
