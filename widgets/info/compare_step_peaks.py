"""The peaks of several steps side by side, by kind of storage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.capture import capture
from planner.errors import StowageError, given_type
from planner.graph import Graph
from planner.progress import Progress, ShowProgress, reporting
from planner.step import Step
from planner.units import bytes_label
from widgets.info.colour_groups import STACK, Group
from widgets.info.memory_by_kind import get_memory_by_kind


@dataclass(frozen=True, slots=True)
class Peak:
    """The peak of a step: its name, and the bytes of each group, in stacking order."""

    name: str
    bytes: Mapping[Group, int]

    @property
    def total(self) -> int:
        """Bytes at the peak."""
        return sum(self.bytes.values())


@dataclass(frozen=True, slots=True)
class ComparePeaks:
    """The peaks of steps, in the order given."""

    peaks: tuple[Peak, ...]

    @property
    def highest(self) -> Peak:
        """The highest peak."""
        return max(self.peaks, key=lambda peak: peak.total)

    @property
    def lowest(self) -> Peak:
        """The lowest peak."""
        return min(self.peaks, key=lambda peak: peak.total)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups that any step holds at its peak, in stacking order."""
        return tuple(group for group in STACK if any(peak.bytes.get(group) for peak in self.peaks))

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        low, high = self.lowest, self.highest
        if low.total == high.total:
            return f"Memory peaks at {bytes_label(high.total)}{'' if len(self.peaks) == 1 else ' in each of them'}."
        return (
            f"Memory peaks lowest in “{low.name}”, at {bytes_label(low.total)}, and highest in “{high.name}”, at "
            f"{bytes_label(high.total)}."
        )


def get_compare_peaks(steps: Mapping[str, Graph | Step], progress: ShowProgress = True) -> ComparePeaks:
    """Find what each step holds at its peak, with nothing swapped.

    Args:
        steps: by name, a step or its graph; a step is captured.
        progress: True shows the progress, False shows nothing; a function is called with the share done, 0 to 1, and
            the current activity.

    Raises:
        StowageError: there are no steps, one is neither a step nor a graph, or it cannot be captured.
    """
    if not isinstance(steps, Mapping) or not steps:
        raise StowageError('peaks are compared by name: give a dict such as {"Adam": step, "SGD": another}')
    peaks = []
    with reporting(progress) as report:
        for number, (name, step) in enumerate(steps.items()):
            if not isinstance(step, Graph | Step):
                raise StowageError(f"{name!r} is {given_type(step)}: give a step, or the graph of one")

            part = report.part(number / len(steps), (number + 1) / len(steps), f"{name}: capturing the step")
            graph = step if isinstance(step, Graph) else capture(step, progress=_named(part, name))
            at_peak = get_memory_by_kind(graph).at_peak
            peaks.append(Peak(str(name), {group: at_peak[group] for group in STACK if at_peak.get(group)}))
    return ComparePeaks(tuple(peaks))


def _named(part: Progress, name: str) -> Progress:
    """The progress of a part whose status texts begin with a name."""
    return Progress(lambda share, doing: part(share, f"{name}: {doing}"))
