"""What fits: memory and speed over the sizes of a step that were tried."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.errors import StowageError
from planner.fit import Fit
from planner.units import bytes_label, format_percent
from widgets.info.residency_spans import Floats, Ints


@dataclass(frozen=True, slots=True)
class FitAnswer:
    """The largest value that meets a criterion.

    Args:
        words: the criterion, such as `"at most 10 % slower"`.
        value: the value; None if none was found.
    """

    words: str
    value: int | None


@dataclass(frozen=True, eq=False)
class FitCurves:
    """The values that were tried, and what each needs.

    Args:
        over: the argument that was varied.
        machine: name of the machine.
        budget_bytes: device memory that a plan may use.
        values: `[tried]`, ascending.
        unswapped_bytes: `[tried]`, device memory with nothing swapped.
        peak_bytes: `[tried]`, device memory of the plan, or -1 without one.
        unit: what is counted per second: samples if the batch was varied, or else steps.
        ideal_rate, rate: `[tried]`, units per second with infinite memory and with the plan; 0 without one.
        answers: from the strictest criterion to the mildest.
    """

    over: str
    machine: str
    budget_bytes: int
    values: Ints
    unswapped_bytes: Ints
    peak_bytes: Ints
    unit: str
    ideal_rate: Floats
    rate: Floats
    answers: tuple[FitAnswer, ...]

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        words: dict[int, list[str]] = {}
        for answer in self.answers:
            if answer.value is not None:
                words.setdefault(answer.value, []).append(answer.words)
        found = [f"{self.over}={value:,} {' and '.join(those)}" for value, those in words.items()]
        budget = bytes_label(self.budget_bytes)
        if not found:
            return f"Of the values that were tried, none fits {budget}."
        return f"The most that fits {budget}: {', '.join(found)}."


def get_fit_curves(found: Fit) -> FitCurves:
    """Lay out what was found to fit.

    Args:
        found: what `planner.fit` returned.

    Raises:
        StowageError: it is something else.
    """
    if not isinstance(found, Fit):
        raise StowageError(f"a {type(found).__name__} is not what planner.fit returns, which this figure draws")
    values = np.array([one.value for one in found.tried], np.int64)
    ideal = np.array([one.ideal_seconds for one in found.tried], np.float64)
    seconds = np.array([one.step_seconds or np.inf for one in found.tried], np.float64)
    samples = values if found.over == "batch" else np.ones(len(values))
    answers = (
        FitAnswer("unswapped", found.unswapped.value),
        FitAnswer("at full speed", found.full_speed.value),
        *(FitAnswer(f"at most {format_percent(share)} slower", one.value) for share, one in found.slower.items()),
        FitAnswer("at all", found.at_all.value),
    )
    return FitCurves(
        found.over,
        found.machine,
        found.budget_bytes,
        values,
        np.array([one.unswapped_bytes for one in found.tried], np.int64),
        np.array([-1 if one.peak_bytes is None else one.peak_bytes for one in found.tried], np.int64),
        "samples" if found.over == "batch" else "steps",
        samples / np.maximum(ideal, np.finfo(np.float64).tiny),
        samples / seconds,
        answers,
    )
