"""What limits a step: the stream whose own work takes nearly all of it, or memory if no stream is that busy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.plan import SwapPlan, Timeline
from planner.swap.bounds.any_order import both_ways
from planner.swap.problem.problem import LinkModel, Seconds
from planner.units import format_seconds

What = Literal["compute", "link in", "link out", "both ways", "memory"]

#: A stream limits a step if its own work takes at least this share of it.
_CLOSE = 0.95


@dataclass(frozen=True, slots=True)
class StepBottleneck:
    """What limits a step.

    Args:
        what: the limit.
        words: a sentence that says why.
        compute_seconds, in_seconds, out_seconds: the work of each stream by itself, as if the link were not shared.
        both_seconds: the least time of all copies together on a link that both directions share.
        in_busy, out_busy: the share of the step in which a copy of that direction runs, from 0 to 1.
    """

    what: What
    words: str
    compute_seconds: float
    in_seconds: float
    out_seconds: float
    both_seconds: float
    in_busy: float
    out_busy: float


def bottleneck_of(plan: SwapPlan, timeline: Timeline, sizes: list[int], link: LinkModel) -> StepBottleneck:
    """Find what limits a step.

    Args:
        plan, timeline: a plan, and the times of its step.
        sizes: `[storages]`, bytes.
        link: the host link.
    """
    compute = float((timeline.compute[:, 1] - timeline.compute[:, 0]).sum())
    in_seconds = sum(sizes[copy.storage] / link.bandwidth + link.latency for copy in plan.swap_ins)
    out_seconds = sum(sizes[copy.storage] / link.bandwidth + link.latency for copy in plan.swap_outs)
    both = max(in_seconds, out_seconds) + both_ways(link) * min(in_seconds, out_seconds)
    total = timeline.seconds
    busy = [float((spans[:, 1] - spans[:, 0]).sum()) / total if total else 0.0 for spans in _spans(timeline)]
    work: dict[What, float] = {"compute": compute, "link in": in_seconds, "link out": out_seconds}
    what = max(work, key=lambda name: work[name])
    if work[what] < _CLOSE * total:
        what, work["both ways"] = "both ways", both
    if work[what] < _CLOSE * total:
        what = "memory"
    return StepBottleneck(
        what, _words(what, work, both, total), compute, in_seconds, out_seconds, both, busy[0], busy[1]
    )


def _spans(timeline: Timeline) -> tuple[Seconds, Seconds]:
    return timeline.swap_in, timeline.swap_out


def _words(what: What, work: dict[What, float], both: float, total: float) -> str:
    if what == "memory":
        busiest = max(work["compute"], both)
        return (
            f"memory limits the step: neither compute ({format_seconds(work['compute'])}) nor the link "
            f"({format_seconds(both)}) needs more than {busiest / total:.0%} of its {format_seconds(total)}, "
            "but in parts of it ops wait for copies and copies for memory"
        )
    share = f"{format_seconds(work[what])} of {format_seconds(total)}"
    return {
        "compute": f"compute limits the step: the ops alone take {share}",
        "link in": f"the link to the device limits the step: the copies in alone take {share}",
        "link out": f"the link to the host limits the step: the copies out alone take {share}",
        "both ways": f"the link limits the step: its copies in both directions together take {share} at least",
    }[what]
