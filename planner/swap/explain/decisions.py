"""Why each storage was swapped, dropped or kept, in words and numbers."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from planner.graph import Storage
from planner.memory import unswapped_bytes
from planner.plan import PlanIndex, Timeline
from planner.progress import Progress
from planner.swap.problem.problem import LinkModel
from planner.units import format_bytes, format_seconds, several

#: Storages between two reports of progress.
_EVERY = 200

Decision = Literal["swapped", "recomputed", "dropped", "kept", "unused"]


@dataclass(frozen=True, slots=True)
class SwapInterval:
    """An absence: a storage is off the device between two uses.

    Args:
        last, next: slots of the uses before and after; `next` is not after `last` if the step ends between them.
            -1 and the number of ops if there is no such use: an input arrives, an output of the step leaves.
        idle_seconds: from the end of the use before to the start of the use after.
        copy_seconds: how long its copies take on the link by themselves.
        copied_out: whether it was copied to the host; otherwise the host copy was still valid, or it is recomputed.
        recompute_seconds: how long the op runs that makes it again; None if it is not recomputed.
        wanted_bytes: the most bytes alive at once during the absence if nothing were swapped.
    """

    last: int
    next: int
    idle_seconds: float
    copy_seconds: float
    copied_out: bool
    recompute_seconds: float | None
    wanted_bytes: int


@dataclass(frozen=True, slots=True)
class SwapDecision:
    """The decision on a storage, and why.

    Args:
        storage, name, kind, bytes: which one.
        decision: `"swapped"` with a copy to the host, `"recomputed"` by an op that runs again, `"dropped"` without
            either, `"kept"` on the device as long as it is alive, or `"unused"` by any op.
        reason: a sentence.
        absences: when it is off the device, in order of time.
    """

    storage: int
    name: str
    kind: str
    bytes: int
    decision: Decision
    reason: str
    absences: tuple[SwapInterval, ...]


def swap_decisions(index: PlanIndex, timeline: Timeline, link: LinkModel, report: Progress) -> tuple[SwapDecision, ...]:
    """The decision on every storage that takes memory, the largest first; scratch memory of ops is left out.

    Args:
        index: of the plan.
        timeline: the times of its step.
        link: the host link.
        report: called with the share done.
    """
    facts, decisions = _PlanFacts(index, timeline, link), []
    for storage in index.graph.storages:
        if storage.id % _EVERY == 0:
            report(storage.id / len(index.graph.storages))
        if storage.bytes and storage.kind != "workspace":
            decisions.append(facts.decide(storage))
    return tuple(sorted(decisions, key=lambda one: (-one.bytes, one.storage)))


class _PlanFacts:
    """The data that the decisions on all storages are derived from."""

    def __init__(self, index: PlanIndex, timeline: Timeline, link: LinkModel) -> None:
        graph, plan, self.index = index.graph, index.plan, index
        self.graph, self.link, self.seconds = graph, link, timeline.seconds
        self.budget, self.n = plan.budget_bytes - graph.outside_bytes, len(plan.order)
        self.starts = [*timeline.compute[:, 0].tolist(), timeline.seconds]
        self.stops = timeline.compute[:, 1].tolist()
        self.start, self.stop = index.start.tolist(), index.stop.tolist()
        self.live_bytes: NDArray[np.int64] = unswapped_bytes(index)
        self.over_budget = np.append(0, np.cumsum(self.live_bytes > self.budget))
        self.uses: dict[int, list[int]] = defaultdict(list)
        for slot in range(self.n):
            for storage in {*index.reads[slot], *index.writes[slot]}:
                self.uses[storage].append(slot)

    def decide(self, storage: Storage) -> SwapDecision:
        """The decision on one storage."""
        uses, absences = self.uses[storage.id], tuple(self._absences(storage))
        decision: Decision
        if not uses:
            decision, reason = "unused", "unused: no op reads or writes it"
        elif not absences:
            decision, reason = "kept", f"kept: {self._why_kept(storage, uses)}"
        else:
            longest = max(absences, key=lambda absence: (absence.copied_out, absence.idle_seconds))
            without: Decision = "recomputed" if longest.recompute_seconds is not None else "dropped"
            decision = "swapped" if longest.copied_out else without
            reason = self._why_left(storage, longest)
            if len(absences) > 1:
                reason += f"; and away {several(len(absences) - 1, 'more time')}"
        return SwapDecision(storage.id, storage.name, str(storage.kind), storage.bytes, decision, reason, absences)

    def _absences(self, storage: Storage) -> Iterator[SwapInterval]:
        """Absences between residencies, before the first if it starts off the device, after the last if it ends so."""
        uses, index, residencies = self.uses[storage.id], self.index, self.index.numbers(storage.id)
        if not uses or not residencies:
            return
        start, stop = self.start, self.stop
        first, last = residencies[0], residencies[-1]
        starts_on_host = storage.live_in and not (start[first] == 0 and index.from_step_start[first])
        if starts_on_host and not storage.persistent:
            yield self._absence(storage, -1, uses[0], 0, start[first], False)
        for earlier, following in pairwise(residencies):
            left, back = stop[earlier], start[following]
            before, after = bisect_left(uses, left), bisect_left(uses, back)
            yield self._absence(
                storage, uses[before - 1] if before else -1, uses[after] if after < len(uses) else self.n,
                left, back, bool(index.copy_out[earlier] >= 0), bool(index.recomputed[following]),
            )  # fmt: skip
        copied = bool(index.copy_out[last] >= 0)
        if starts_on_host and storage.persistent:
            yield self._absence(storage, uses[-1], uses[0], stop[last], start[first], copied)
        elif copied and not storage.live_in:
            yield self._absence(storage, uses[-1], self.n, stop[last], self.n, True)

    def _absence(
        self, storage: Storage, last: int, after: int, left: int, back: int, copied: bool, recomputed: bool = False
    ) -> SwapInterval:
        over_the_end = 0 <= after <= last
        away = self._away(left, back, over_the_end)
        idle = self.starts[after] - (self.stops[last] if last >= 0 else 0.0) + (self.seconds if over_the_end else 0.0)
        once = storage.bytes / self.link.bandwidth + self.link.latency
        count = copied + (after < self.n and not recomputed)
        again = self.stops[after] - self.starts[after] if recomputed else None
        return SwapInterval(last, after, idle, count * once, copied, again, int(away.max(initial=0)))

    def _away(self, left: int, back: int, over_the_end: bool) -> NDArray[np.int64]:
        """Bytes alive, if nothing were swapped, in the slots of an absence."""
        if over_the_end:
            return np.append(self.live_bytes[left:], self.live_bytes[:back])
        return self.live_bytes[left:back]

    def _why_left(self, storage: Storage, absence: SwapInterval) -> str:
        """Why a storage left the device."""
        idle, copying = format_seconds(absence.idle_seconds), format_seconds(absence.copy_seconds)
        if absence.last < 0 and not absence.copied_out:
            return f"dropped without a copy: the host copy is valid and no op needs it before op {absence.next}"
        if absence.next == self.n:
            return f"swapped: the step returns it and no op uses it after op {absence.last}; {self._gain(absence)}"
        between = f"between ops {absence.last} and {absence.next}"
        if absence.next <= absence.last:
            between = f"from op {absence.last} to op {absence.next} of the next step"
        if absence.recompute_seconds is not None and not absence.copied_out:
            trip = format_seconds(2 * (storage.bytes / self.link.bandwidth + self.link.latency))
            return (
                f"recomputed: idle for {idle} {between}, and running its op again takes "
                f"{format_seconds(absence.recompute_seconds)}, where two copies would take {trip}; "
                f"{self._gain(absence)}"
            )
        if not absence.copied_out:
            return (
                f"dropped without a copy: the host copy was still valid; idle for {idle} {between}; "
                f"{self._gain(absence, storage)}"
            )
        comparison = "longer than" if absence.idle_seconds > absence.copy_seconds else "though not longer than"
        return (
            f"swapped: idle for {idle} {between}, {comparison} the {copying} that its two copies take; "
            f"{self._gain(absence, storage)}"
        )

    def _gain(self, absence: SwapInterval, storage: Storage | None = None) -> str:
        """What an absence gained."""
        freed = f"freed {format_bytes(storage.bytes)}" if storage else "freed its memory"
        over = absence.wanted_bytes > self.budget
        return f"{freed} while {'' if over else 'at most '}{format_bytes(absence.wanted_bytes)} were wanted"

    def _why_kept(self, storage: Storage, uses: list[int]) -> str:
        """Why a storage never left."""
        most = int(self.live_bytes.max(initial=0))
        if most <= self.budget:
            return f"it fits: no more than {format_bytes(most)} are wanted at once"
        idle = max(self._idle_while_short(storage, uses), default=0.0)
        if idle == 0.0:
            return f"in use, or not yet made, whenever more than {format_bytes(self.budget)} are wanted"
        copying = 2 * (storage.bytes / self.link.bandwidth + self.link.latency)
        if idle <= copying:
            return (
                f"never idle for longer than {format_seconds(idle)} while memory is short, "
                f"and its two copies take {format_seconds(copying)}"
            )
        return f"idle for up to {format_seconds(idle)} while memory is short, but what others free is enough"

    def _idle_while_short(self, storage: Storage, uses: list[int]) -> Iterator[float]:
        """Seconds of each span without a use in which more bytes are alive than the budget allows."""
        for before, after in pairwise(uses):
            if self.over_budget[after] > self.over_budget[before + 1]:
                yield self.starts[after] - self.stops[before]
        outside = self.over_budget[uses[0]] + self.over_budget[self.n] - self.over_budget[uses[-1] + 1]
        if storage.persistent and outside:
            yield self.seconds - self.stops[uses[-1]] + self.starts[uses[0]]
        elif storage.live_in and self.over_budget[uses[0]]:
            yield self.starts[uses[0]]
        elif storage.id in self.graph.output_storages and self.over_budget[self.n] > self.over_budget[uses[-1] + 1]:
            yield self.seconds - self.stops[uses[-1]]
