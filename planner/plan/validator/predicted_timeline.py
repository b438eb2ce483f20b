"""The predicted timeline is one that the plan's rules allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.plan.schema.swap_plan import SwapPlan
from planner.plan.schema.timeline import Timeline
from planner.plan.validator.happens_before import LANES

#: Tolerance of times as a share of the step, because they are floating-point sums.
_ROUNDING = 1e-9


def check_predicted(plan: SwapPlan) -> list[str]:
    """Check shapes, finite times, and that spans wait for what the plan's rules require."""
    if not isinstance(plan.predicted, Timeline):
        return ["the plan has no predicted timeline"]
    if set(plan.predicted.spans) != set(plan.queues) or set(plan.predicted.memory) != {lane.device for lane in LANES}:
        return ["the predicted timeline is not one of the plan's lanes and their device"]
    problems = [*_shapes(plan)]
    return problems or [*_samples(plan), *_waits(plan)]


def _shapes(plan: SwapPlan) -> Iterator[str]:
    timeline = plan.predicted
    samples = np.asarray(timeline.sample_seconds).size
    expected: tuple[tuple[str, tuple[int, ...]], ...] = (
        *((lane.kind, (len(queue), 2)) for lane, queue in plan.queues.items()),
        ("sample_seconds", (samples,)),
        ("sample_bytes", (samples,)),
    )
    for name, shape in expected:
        values: NDArray[Any] = np.asarray(getattr(timeline, name))
        if values.shape != shape:
            yield f"predicted.{name} has shape {values.shape} and should have {shape}"
        elif values.size and not (values.dtype.kind in "iuf" and np.isfinite(values).all() and (values >= 0).all()):
            yield f"predicted.{name} holds what is negative or no finite number"
    if type(timeline.seconds) not in (float, np.float64) or not np.isfinite(timeline.seconds) or timeline.seconds < 0:
        yield f"predicted.seconds is {timeline.seconds!r}, which is no length of a step"


def _samples(plan: SwapPlan) -> Iterator[str]:
    timeline = plan.predicted
    if (np.diff(timeline.sample_seconds) < 0).any():
        yield "predicted.sample_seconds do not ascend"
    if timeline.peak_bytes > plan.peak_bytes:
        yield f"predicted.sample_bytes reach {timeline.peak_bytes}, above the plan's peak of {plan.peak_bytes}"


def _waits(plan: SwapPlan) -> Iterator[str]:
    timeline = plan.predicted
    slack = _ROUNDING * timeline.seconds
    compute, outs, ins = timeline.compute, timeline.swap_out, timeline.swap_in
    for name, spans in ((lane.kind, spans) for lane, spans in timeline.spans.items()):
        early = spans[:, 1] < spans[:, 0] - slack
        early[1:] |= spans[1:, 0] < spans[:-1, 1] - slack
        for place in np.flatnonzero(early):
            yield f"entry {place} of predicted.{name} ends before it starts, or starts before the one before it ends"
        if spans.size and spans[:, 1].max() > timeline.seconds + slack:
            yield f"predicted.{name} goes on after predicted.seconds, the end of the step"
    # When the ops below each slot are done or handed over, and the copies and collectives that must be done by each.
    ops_done = np.concatenate(([0.0], np.maximum.accumulate(compute[:, 1])))
    outs_done = _done_by([copy.release for copy in plan.swap_outs], outs, len(compute))
    ins_done = _done_by([copy.use for copy in plan.swap_ins], ins, len(compute))
    beside = plan.communications
    beside_done = _done_by([each.use for each in beside], timeline.communication, len(compute))
    ready = np.array([copy.ready + 1 for copy in plan.swap_outs], np.int64)
    start = np.array([copy.start for copy in plan.swap_ins], np.int64)
    handed_over = np.array([each.start + 1 for each in beside], np.int64)
    for name, spans, earliest in (
        ("compute", compute, np.maximum.reduce([outs_done, ins_done, beside_done])[:-1]),
        ("swap_out", outs, ops_done[ready]),
        ("swap_in", ins, np.maximum.reduce([ops_done, outs_done, beside_done])[start]),
        ("communication", timeline.communication, ops_done[handed_over]),
    ):
        for place in np.flatnonzero(spans[:, 0] < earliest - slack):
            yield f"entry {place} of predicted.{name} starts before what it waits for is done"


def _done_by(slots: list[int], spans: NDArray[np.float64], end: int) -> NDArray[np.float64]:
    """Per slot `0..n`, when the last of the copies that name this slot or an earlier one is done."""
    done = np.zeros(end + 1)
    np.maximum.at(done, np.array(slots, np.int64), spans[:, 1])
    return np.maximum.accumulate(done)
