"""Timelines in the Trace Event Format, which Perfetto and Chrome's tracing page open.

The format is described in https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from planner.graph import Graph
from planner.memory import SwapPlan, Timeline

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
        for lane, copies, spans in (
            (1, plan.swap_outs, timeline.swap_out), (2, plan.swap_ins, timeline.swap_in),
        ):  # fmt: skip
            for copy, (start, stop) in zip(copies, spans.tolist(), strict=True):
                storage = graph.storages[copy.storage]
                events.append(_span(lane, storage.name, begin + start, begin + stop,
                                    {"bytes": storage.bytes, "kind": storage.kind.value}))  # fmt: skip
        for at, size in zip(timeline.sample_seconds.tolist(), timeline.sample_bytes.tolist(), strict=True):
            events.append(
                {"ph": "C", "pid": 0, "name": "device memory", "ts": 1e6 * (begin + at), "args": {"bytes": size}}
            )
        begin += timeline.seconds
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, separators=(",", ":"))


def _compute(graph: Graph, plan: SwapPlan, timeline: Timeline, begin: float) -> Iterable[dict[str, Any]]:
    for number, (start, stop) in zip(plan.order, timeline.compute.tolist(), strict=True):
        op = graph.ops[number]
        said = {"target": op.target, "module": op.module, "phase": op.phase.value}
        yield _span(0, op.name, begin + start, begin + stop, said)


def _span(lane: int, name: str, start: float, stop: float, said: dict[str, Any]) -> dict[str, Any]:
    return {
        "ph": "X", "pid": 0, "tid": lane, "name": name, "ts": 1e6 * start, "dur": 1e6 * (stop - start), "args": said,
    }  # fmt: skip
