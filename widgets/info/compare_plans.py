"""Two plans of a step: memory over time, and when the tensors that they treat differently are on the device."""

from __future__ import annotations

from dataclasses import dataclass

from planner.errors import StowageError, given_type
from planner.plan import PlanComparison, TensorDifference
from planner.units import bytes_label, format_seconds, several
from widgets.info.predicted_and_measured import Curve


@dataclass(frozen=True, eq=False)
class ComparePlans:
    """Two plans.

    Args:
        name: of the step.
        first, second: predicted bytes on the device.
        first_peak_bytes, second_peak_bytes: sizes of their arenas.
        budget_bytes: the limit of both; None if each has its own.
        tensors: what they treat differently, the largest first.
    """

    name: str
    first: Curve
    second: Curve
    first_peak_bytes: int
    second_peak_bytes: int
    budget_bytes: int | None
    tensors: tuple[TensorDifference, ...]

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        peaks = [bytes_label(size) for size in (self.first_peak_bytes, self.second_peak_bytes)]
        steps = [format_seconds(curve.end) for curve in (self.first, self.second)]
        text = (
            f"The first plan takes {peaks[0]} and {steps[0]} for a step, the second {peaks[1]} and {steps[1]}; "
            "they treat "
        )
        if not self.tensors:
            return text + "all tensors alike."
        of = bytes_label(sum(one.bytes for one in self.tensors))
        return text + f"{several(len(self.tensors), 'tensor')} of {of} differently."


def get_compare_plans(comparison: PlanComparison) -> ComparePlans:
    """Lay out a result of `planner.compare_plans`.

    Args:
        comparison: the result.

    Raises:
        StowageError: it is something else.
    """
    if not isinstance(comparison, PlanComparison):
        raise StowageError(
            f"{given_type(comparison)} is not what planner.compare_plans returns; "
            "pass planner.compare_plans(graph, first, second)"
        )
    one, other = comparison.first, comparison.second
    return ComparePlans(
        comparison.name,
        Curve(*comparison.first_memory, one.step_seconds),
        Curve(*comparison.second_memory, other.step_seconds),
        one.peak_bytes,
        other.peak_bytes,
        one.budget_bytes if one.budget_bytes == other.budget_bytes else None,
        comparison.tensors,
    )
