"""What fits: memory and speed over the sizes of a step that were tried."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from planner.errors import StowageError, given_type
from planner.fit import Failure, Fit, Largest, remarks, value_stopped_by_host, why_none
from planner.units import bytes_label, format_percent
from widgets.info.residency_spans import Floats, Ints


@dataclass(frozen=True, slots=True)
class FitAnswer:
    """The largest value that meets a criterion.

    Args:
        words: the criterion, such as `"at most 10 % slower"`.
        value: the value; None if none was found.
        remarks: what stops it, why there is none, or what to know before relying on it; none where the next answer is
            the same and says it.
    """

    words: str
    value: int | None
    remarks: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class FitCurves:
    """The values that were tried, and what each needs.

    Args:
        over: the argument that was varied.
        machine: name of the machine.
        budget_bytes: device memory that a plan may use.
        asked: the first and the last value that was asked about.
        values: `[tried]`, ascending.
        unswapped_bytes: `[tried]`, device memory with nothing swapped.
        peak_bytes: `[tried]`, device memory of the plan, or -1 without one.
        unit: what is counted per second: samples if the batch was varied, or else steps.
        ideal_rate, rate: `[tried]`, units per second with infinite memory and with the plan; 0 without one.
        answers: from the strictest criterion to the mildest.
        stopped_by_host: the smallest value that has no plan, where it would have one if the host had memory enough;
            None otherwise.
        failed: values that the step does not take, whatever memory there is.
    """

    over: str
    machine: str
    budget_bytes: int
    asked: tuple[int, int]
    values: Ints
    unswapped_bytes: Ints
    peak_bytes: Ints
    unit: str
    ideal_rate: Floats
    rate: Floats
    answers: tuple[FitAnswer, ...]
    stopped_by_host: int | None
    failed: tuple[Failure, ...]

    @property
    def title(self) -> str:
        """What was asked."""
        first, last = self.asked
        return f"{self.over}={first if first == last else f'{first}..{last}'} on {self.machine}"

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        words: dict[int, list[str]] = {}
        for answer in self.answers:
            if answer.value is not None:
                words.setdefault(answer.value, []).append(answer.words)
        found = [f"{self.over}={value} {' and '.join(those)}" for value, those in words.items()]
        budget = bytes_label(self.budget_bytes)
        said = [f"Of the values that were tried, none fits {budget}."]
        if found:
            said = [f"The most that fits {budget}: {', '.join(found)}."]
        if self.stopped_by_host is not None:
            said.append(f"{self.over}={self.stopped_by_host} takes more host memory than there is.")
        said += [f"{self.over}={one.value} fails, whatever memory there is ({one.error})." for one in self.failed]
        return " ".join(said)


def get_fit_curves(found: Fit) -> FitCurves:
    """Lay out what was found to fit.

    Args:
        found: what `planner.fit` returned.

    Raises:
        StowageError: it is something else.
    """
    if not isinstance(found, Fit):
        raise StowageError(f"{given_type(found)} is not what planner.fit returns, which this figure draws")
    values = np.array([one.value for one in found.tried], np.int64)
    ideal = np.array([one.ideal_seconds for one in found.tried], np.float64)
    seconds = np.array([one.step_seconds or np.inf for one in found.tried], np.float64)
    samples = values if found.over == "batch" else np.ones(len(values))
    answers = [
        _answer(found, "unswapped", found.unswapped, unswapped=True),
        _answer(found, "at full speed", found.full_speed),
        *(_answer(found, f"at most {format_percent(share)} slower", one) for share, one in found.slower.items()),
        _answer(found, "at all", found.at_all),
    ]
    for at, (one, following) in enumerate(pairwise(answers)):
        if (one.value, one.remarks) == (following.value, following.remarks):
            answers[at] = replace(one, remarks=())
    return FitCurves(
        found.over,
        found.machine,
        found.budget_bytes,
        (found.asked[0], found.asked[-1]),
        values,
        np.array([one.unswapped_bytes for one in found.tried], np.int64),
        np.array([-1 if one.peak_bytes is None else one.peak_bytes for one in found.tried], np.int64),
        "samples" if found.over == "batch" else "steps",
        samples / np.maximum(ideal, np.finfo(np.float64).tiny),
        samples / seconds,
        tuple(answers),
        value_stopped_by_host(found),
        found.failed,
    )


def _answer(found: Fit, words: str, answer: Largest, *, unswapped: bool = False) -> FitAnswer:
    none = answer.value is None
    said = [why_none(found, unswapped=unswapped)] if none else remarks(found, answer, unswapped=unswapped)
    return FitAnswer(words, answer.value, tuple(said))
