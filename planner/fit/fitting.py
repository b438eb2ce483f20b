"""The largest size of a step that fits on a machine: unswapped, at full speed, somewhat slower, and at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from planner.cancel import CancelToken
from planner.capture import capture
from planner.fit.criteria import FULL_SPEED, Needs, assess
from planner.fit.largest import Largest, largest
from planner.fit.request import check_search, checked_argument, checked_budget, checked_shares, checked_step
from planner.fit.reserve import Reserve, reserve_of
from planner.machine import Machine
from planner.progress import Progress, ShowProgress, reporting
from planner.step import Step


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
        tried: every value that was tried, ascending.
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


def fit(
    make_step: Callable[..., Step],
    machine: Machine,
    over: Mapping[str, Sequence[int]],
    *,
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

    Args:
        make_step: called with the value by the argument's name, such as `planner.zoo.gpt`; returns a step.
        machine: its device memory, without the reserve, and its host memory are the limits.
        over: the argument's name and its values, ascending: `{"batch": range(1, 65)}`.
        slower: how much slower than with infinite memory a step may be, such as `"10%"`.
        evaluations: plans timed for each value; None to run the portfolio of eviction passes to its end.
        seed: for random choices.
        progress: True shows progress, False shows nothing; a function is called with the share done, 0 to 1, and a
            status text.
        stop: checked several times a second.

    Raises:
        StowageError: there is no such argument, a value is below 1, there are no values, a share, the seed, the number
            of evaluations or the machine is invalid, the machine is a CPU, or a step cannot be captured.
        Cancelled: cancellation was requested.
    """
    name, values = checked_argument(make_step, over)
    shares = checked_shares(slower)
    check_search(seed, evaluations)
    budget = checked_budget(machine)
    stop, known = stop or CancelToken(), dict[int, Needs]()
    with reporting(progress) as report:

        def needs(value: int) -> Needs:
            if value not in known:
                stop.check()
                words = f"trying {name}={value}"
                each = Progress(lambda _, __: report(len(known) / (len(known) + 4), words), stop)
                graph = capture(checked_step(make_step(**{name: value})), progress=each)
                known[value] = assess(
                    value, graph, machine, budget, evaluations=evaluations, seed=seed, stop=stop, report=each
                )
            return known[value]

        unswapped = largest(values, lambda value: needs(value).unswapped_bytes <= budget)
        at_all = largest(values, lambda value: needs(value).step_seconds is not None)
        full_speed, *others = (
            largest(values, lambda value, share=share: needs(value).within(share))  # type: ignore[misc]
            for share in (FULL_SPEED, *shares)
        )
    found = dict(zip(shares, others, strict=True))
    tried = tuple(known[value] for value in sorted(known))
    return Fit(name, machine.name, budget, reserve_of(machine.device), unswapped, full_speed, found, at_all, tried)
