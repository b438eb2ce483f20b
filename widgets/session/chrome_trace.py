"""Timelines in the Trace Event Format, which Perfetto and Chrome's tracing page open.

The format is described in https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from planner.graph import Graph
from planner.memory import SwapPlan, Timeline
from widgets.info.stays import Floats

_LANES = ("compute", "swap out", "swap in")


def chrome_trace(graph: Graph, plan: SwapPlan, timelines: Sequence[Timeline]) -> str:
    """Write steps down one after the other, in microseconds.

    Args:
        graph, plan: what was planned.
        timelines: one per step, predicted or measured.
    """
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 0, "name": "process_name", "args": {"name": graph.name}},
        *({"ph": "M", "pid": 0, "tid": lane, "name": "thread_name", "args": {"name": name}}
          for lane, name in enumerate(_LANES)),
    ]  # fmt: skip
    begin = 0.0
    for timeline in timelines:
        events += _compute(graph, plan, timeline, begin)
        events += _copies(graph, 1, [copy.storage for copy in plan.swap_outs], timeline.swap_out + begin)
        events += _copies(graph, 2, [copy.storage for copy in plan.swap_ins], timeline.swap_in + begin)
        events += _memory(timeline, begin)
        begin += timeline.seconds
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, separators=(",", ":"))


def _compute(graph: Graph, plan: SwapPlan, timeline: Timeline, begin: float) -> Iterable[dict[str, Any]]:
    for number, (start, stop) in zip(plan.order, timeline.compute.tolist(), strict=True):
        op = graph.ops[number]
        said = {"target": op.target, "module": op.module, "phase": op.phase.value}
        yield _span(0, op.name, begin + start, begin + stop, said)


def _copies(graph: Graph, lane: int, storages: Sequence[int], spans: Floats) -> Iterable[dict[str, Any]]:
    for number, (start, stop) in zip(storages, spans.tolist(), strict=True):
        storage = graph.storages[number]
        yield _span(lane, storage.name, start, stop, {"bytes": storage.bytes, "kind": storage.kind.value})


def _memory(timeline: Timeline, begin: float) -> Iterable[dict[str, Any]]:
    for at, size in zip(timeline.sample_seconds.tolist(), timeline.sample_bytes.tolist(), strict=True):
        yield {"ph": "C", "pid": 0, "name": "device memory", "ts": 1e6 * (begin + at), "args": {"bytes": size}}


def _span(lane: int, name: str, start: float, stop: float, said: dict[str, Any]) -> dict[str, Any]:
    return {
        "ph": "X", "pid": 0, "tid": lane, "name": name, "ts": 1e6 * start, "dur": 1e6 * (stop - start), "args": said,
    }  # fmt: skip
