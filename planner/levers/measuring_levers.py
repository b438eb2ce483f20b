"""What each lever does to a step's peak and speed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import prod
from numbers import Integral

from torch import nn

from planner.cancel import CancelToken
from planner.capture import capture
from planner.errors import StowageError, given_type
from planner.graph import Graph
from planner.levers.lever_catalogue import Lever, batch_rows, single_levers
from planner.levers.lever_rows import LeverRow, Levers, Numbers, Unchangeable
from planner.levers.step_recipe import StepRecipe
from planner.levers.swap_and_recompute import EVALUATIONS, planned_rows
from planner.machine import Machine, approximation, op_seconds, usable_bytes
from planner.memory import parse_budget
from planner.progress import Progress, ShowProgress, reporting
from planner.step import InferenceStep, Step, TrainStep
from planner.swap import peak_of
from planner.units import format_bytes, several

#: The most pairs that are tried.
_PAIRS = 6
#: The share of the work after which the searches begin, and the pairs.
_SINGLE, _PLANNED = 0.6, 0.8
#: A peak for checking a budget before anything is captured: of no step is a share of it too little.
_HUGE = 2**40
_ORDER = [Numbers.SAME, Numbers.ROUNDING, Numbers.CHANGED]


def levers(
    step: Step,
    machine: Machine,
    *,
    budget: str | int | None = None,
    device: str | None = None,
    evaluations: int = EVALUATIONS,
    seed: int = 0,
    progress: ShowProgress = True,
    stop: CancelToken | None = None,
) -> Levers:
    """Find what other ways to make a step need: batch, micro-batches, checkpointing, optimizer, precision and plans.

    Each is captured as a step of its own, whose model is a copy; the given step, its model and its batch stay as they
    are. Peaks are those of the captured order with nothing swapped, as `planner.run` makes it: eager PyTorch may hold
    more or less. Times are the machine's roofline. Pairs are of levers of different families that each lower the peak.

    Args:
        step: a `TrainStep` or an `InferenceStep`.
        machine: its device memory, without what a process takes beside the step, is the limit.
        budget: device memory for the step, beside what a process takes: bytes, or text such as `"6GiB"` or `"50%"` of
            what the given step takes unswapped, as `plan_swaps` takes it; None for all that the machine's device has.
        device: the type of device whose ops the steps are captured with, `"cpu"` or `"cuda"`, which need not be there;
            None for that of the machine. A row's plan can be run on the CPU if they are those of the CPU.
        evaluations: plans that each search times.
        seed: for random choices.
        progress: True shows progress, False shows nothing; a function is called with the share done, 0 to 1, and a
            status text.
        stop: checked several times a second.

    Raises:
        StowageError: the step cannot be captured, or the machine, the budget, the seed or the number of evaluations is
            invalid.
        Cancelled: cancellation was requested.
    """
    _check(step, machine, evaluations, seed)
    limit = usable_bytes(machine) if budget is None else parse_budget(budget, _HUGE)
    stop, device = stop or CancelToken(), device or machine.device.kind
    with reporting(progress) as shown:
        report = Progress(shown, stop)
        graph = capture(step, device=device, progress=report.part(0.0, 0.05, "as given"))
        if budget is not None:
            peak = peak_of(graph, machine.device.alignment, stop)
            limit = parse_budget(budget, peak, outside_bytes=graph.outside_bytes)
        recipe = StepRecipe.of(step)
        rows = batch_rows(recipe)
        measure = _Measurement(machine, device, limit, rows or 1, recipe, stop)
        as_given = measure.row("as given", "nothing", Numbers.SAME, graph, lambda: step)
        levers, unchangeable = _possible(recipe, graph)
        singles: dict[Lever, LeverRow] = {}
        for number, lever in enumerate(levers):
            doing = _doing(lever.name, number, len(levers), "lever", [as_given, *singles.values()])
            found = measure.lever((lever,), _part(report, 0.05, _SINGLE, number, len(levers), doing))
            if isinstance(found, LeverRow):
                singles[lever] = found
            else:
                unchangeable.append(found)
        planning = partial(_doing, what="plan", rows=[as_given, *singles.values()])
        planned = planned_rows(
            step, graph, machine, limit, as_given.peak_bytes, rows or 1, evaluations=evaluations, seed=seed,
            stop=stop, report=report.part(_SINGLE, _PLANNED), doing=planning,
        )  # fmt: skip
        unchangeable += [one for one in planned if isinstance(one, Unchangeable)]
        plans = [one for one in planned if isinstance(one, LeverRow)]
        chosen = _good_pairs(singles, as_given.peak_bytes)
        pairs: list[LeverRow] = []
        for number, pair in enumerate(chosen):
            words = " and ".join(lever.name for lever in pair)
            doing = _doing(words, number, len(chosen), "pair", [as_given, *singles.values(), *plans, *pairs])
            found = measure.lever(pair, _part(report, _PLANNED, 1.0, number, len(chosen), doing))
            pairs += [found] if isinstance(found, LeverRow) else []
        report(1.0, "done")
    unit = "batches" if rows is None else "rows"
    found_rows = (as_given, *singles.values(), *plans, *pairs)
    return Levers(graph.name, machine.name, limit, unit, found_rows, tuple(unchangeable), approximation(graph, machine))


def _doing(name: str, done: int, count: int, what: str, rows: Sequence[LeverRow]) -> str:
    """What is being tried, how many were tried before, and the best that was found by then."""
    lowest = min(rows, key=lambda row: row.peak_bytes)
    found = f"lowest peak {format_bytes(lowest.peak_bytes)} ({lowest.name})"
    return f"{found}; trying {name} ({done} of {several(count, what)} done)"


def _part(report: Progress, begin: float, end: float, number: int, count: int, doing: str) -> Progress:
    """The progress of one of several equal parts, which says nothing else while a step is captured."""
    each = (end - begin) / count
    part = report.part(begin + number * each, begin + (number + 1) * each, doing)
    return Progress(lambda share, _: part(share, doing))


class _Measurement:
    """Captures changed steps and makes their rows."""

    def __init__(
        self, machine: Machine, device: str, budget: int, rows: int, recipe: StepRecipe, stop: CancelToken
    ) -> None:
        self._machine, self._device, self._budget, self._rows = machine, device, budget, rows
        self._recipe, self._stop = recipe, stop

    def lever(self, changes: tuple[Lever, ...], report: Progress) -> LeverRow | Unchangeable:
        """The row of one lever, or of several together; why not, if the step does not allow it."""
        name = " and ".join(lever.name for lever in changes)
        recipe = self._recipe
        try:
            for lever in changes:
                recipe = lever.apply(recipe)
            graph = capture(recipe.build(), device=self._device, progress=report)
        except StowageError as error:
            instead = dict.fromkeys(lever.otherwise for lever in changes if lever.otherwise)
            return Unchangeable(name, "; ".join([str(error), *instead]))
        numbers = max((lever.numbers for lever in changes), key=_ORDER.index)
        change = "; ".join(lever.change for lever in changes)
        parts = tuple(lever.name for lever in changes) if len(changes) > 1 else ()
        row = self.row(name, change, numbers, graph, recipe.build, prod(lever.rows for lever in changes))
        return replace(row, parts=parts)

    def row(
        self, name: str, change: str, numbers: Numbers, graph: Graph, make: Callable[[], Step], rows: float = 1.0
    ) -> LeverRow:
        """The row of a captured step."""
        peak = peak_of(graph, self._machine.device.alignment, self._stop)
        seconds = float(op_seconds(graph, self._machine).sum())
        speed = rows * self._rows / seconds
        return LeverRow(name, change, peak, seconds, speed, peak <= self._budget, numbers, (), None, make, self._device)


def _possible(recipe: StepRecipe, graph: Graph) -> tuple[list[Lever], list[Unchangeable]]:
    """The levers to try, and those that the step does not have."""
    found = [*single_levers(recipe, graph)]
    levers = [one for one in found if isinstance(one, Lever)]
    unchangeable = [one for one in found if isinstance(one, Unchangeable)]
    if _loss_holds_model(recipe.given):
        reason = "the loss refers to the model itself; let it use the model that it is called with"
        return [], [*unchangeable, *(Unchangeable(lever.name, reason) for lever in levers)]
    return levers, unchangeable


def _loss_holds_model(step: Step) -> bool:
    """Whether a loss reaches the model's tensors without being given the model, so that a copy would not be used."""
    nothing = nn.Identity()
    reached = [one.tensor for one in step.persistent_tensors(nothing, step.reach(nothing))]
    model = step.live.model if step.live is not None else step.model
    if not isinstance(model, nn.Module):  # a function may return a module that the loss knows
        return any(one.requires_grad for one in reached)
    own = {id(one) for one in [*model.parameters(), *model.buffers()]}
    return any(id(one) in own for one in reached)


def _good_pairs(singles: Mapping[Lever, LeverRow], peak: int) -> list[tuple[Lever, Lever]]:
    """Pairs of the levers that lower the peak most in their family, those that promise most first."""
    best: dict[str, Lever] = {}
    for lever, row in singles.items():
        better = lever.family not in best or row.peak_bytes < singles[best[lever.family]].peak_bytes
        if row.peak_bytes < peak and lever.rows == 1 and better:
            best[lever.family] = lever
    pairs = [*combinations(best.values(), 2)]
    return sorted(pairs, key=lambda pair: prod(singles[lever].peak_bytes for lever in pair))[:_PAIRS]


def _check(step: object, machine: object, evaluations: object, seed: object) -> None:
    """Refuse what is asked wrongly, before anything is captured."""
    if not isinstance(step, TrainStep | InferenceStep):
        raise StowageError(f"levers are for a step, not {given_type(step)}; pass a TrainStep or an InferenceStep")
    if not isinstance(machine, Machine):
        raise StowageError(f'{machine!r} is not a machine; pass planner.machine("h100"), for example')
    for name, value in (("evaluations", evaluations), ("seed", seed)):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 0:
            raise StowageError(f"{name} must be a whole number of 0 or more, got {value!r}")
