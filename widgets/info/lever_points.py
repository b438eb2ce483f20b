"""What each lever does to a step: peak and speed, as points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.errors import StowageError, given_type
from planner.levers import Levers, Numbers
from planner.units import bytes_label, several

LeverKind = Literal["as given", "lever", "pair", "plan"]


@dataclass(frozen=True, slots=True)
class LeverPoint:
    """A way to make a step.

    Args:
        name, change: in words.
        kind: whether it is the step as given, a single lever, a pair, or a plan.
        peak_bytes, step_seconds, samples_per_second, fits, numbers: as in the row.
        best: whether no other point has both a lower peak and a higher speed.
    """

    name: str
    change: str
    kind: LeverKind
    peak_bytes: int
    step_seconds: float
    samples_per_second: float
    fits: bool
    numbers: Numbers
    best: bool


@dataclass(frozen=True, slots=True)
class LeverPoints:
    """The ways to make a step.

    Args:
        title: what was asked about: the step and the machine.
        machine: name of the machine.
        budget_bytes: memory for the step.
        unit: what is counted per second.
        points: the step as given first.
        impossible: the names of the levers that the step does not have.
    """

    title: str
    machine: str
    budget_bytes: int
    unit: str
    points: tuple[LeverPoint, ...]
    impossible: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The picture in a few sentences."""
        given = self.points[0]
        lowest = min(self.points, key=lambda point: point.peak_bytes)
        fastest = max(self.points, key=lambda point: point.samples_per_second)
        fitting = sum(point.fits for point in self.points)
        others = f" Not possible: {', '.join(self.impossible)}." if self.impossible else ""
        return (
            f"As given, the step takes {bytes_label(given.peak_bytes)} and makes {given.samples_per_second:,.0f} "
            f"{self.unit} per second; {fitting} of {several(len(self.points), 'way')} fit in "
            f"{bytes_label(self.budget_bytes)}. The lowest peak is {bytes_label(lowest.peak_bytes)} ({lowest.name}), "
            f"the highest speed {fastest.samples_per_second:,.0f} ({fastest.name}).{others}"
        )


def get_levers(levers: Levers) -> LeverPoints:
    """Lay out a result of `planner.levers`.

    Args:
        levers: the result.

    Raises:
        StowageError: it is something else.
    """
    if not isinstance(levers, Levers):
        raise StowageError(f"{given_type(levers)} is no result of planner.levers; pass planner.levers(step, machine)")

    def kind(number: int) -> LeverKind:
        row = levers.rows[number]
        return "as given" if not number else "plan" if row.plan is not None else "pair" if row.parts else "lever"

    points = tuple(
        LeverPoint(
            row.name, row.change, kind(number), row.peak_bytes, row.step_seconds, row.samples_per_second, row.fits,
            row.changes_numbers, not any(
                other.peak_bytes <= row.peak_bytes and other.samples_per_second >= row.samples_per_second
                and (other.peak_bytes, other.samples_per_second) != (row.peak_bytes, row.samples_per_second)
                for other in levers.rows
            ),
        )
        for number, row in enumerate(levers.rows)
    )  # fmt: skip
    impossible = tuple(one.name for one in levers.unchangeable)
    return LeverPoints(
        f"{levers.name} on {levers.machine}", levers.machine, levers.budget_bytes, levers.unit, points, impossible,
    )  # fmt: skip
