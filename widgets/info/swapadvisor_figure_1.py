"""The first figure of SwapAdvisor (ASPLOS 2020): two schedules in two pools, each pool with another best."""

from __future__ import annotations

from dataclasses import dataclass

from planner.progress import ShowProgress, reporting
from planner.swap import Case, figure_1


@dataclass(frozen=True, slots=True)
class ScheduleAndPool:
    """The ways to run the paper's five ops, grouped by pool."""

    cases: tuple[Case, ...]

    @property
    def units(self) -> float:
        """Duration of the slowest case."""
        return max(case.units for case in self.cases)

    def best(self, pool: str) -> Case:
        """The fastest case in a pool."""
        return min((case for case in self.cases if case.pool == pool), key=lambda case: case.units)

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        texts = []
        for pool in dict.fromkeys(case.pool for case in self.cases):
            best, slowest = self.best(pool), max(case.units for case in self.cases if case.pool == pool)
            texts.append(f"{best.schedule} in a pool of {pool}: {best.units:g} units against {slowest:g}")
        return f"Faster is {'; but '.join(texts)}."


def get_schedule_and_pool(progress: ShowProgress = True) -> ScheduleAndPool:
    """Plan the four cases with the paper's swap planner.

    Args:
        progress: True shows the progress, False shows nothing; a function is called with the share done, 0 to 1, and
            the current activity.
    """
    with reporting(progress) as report:
        report(0.0, "planning five ops in two schedules and two pools")
        return ScheduleAndPool(figure_1())
