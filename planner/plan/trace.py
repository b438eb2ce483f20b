"""Steps in the Trace Event Format, which Perfetto (ui.perfetto.dev) and Chrome's tracing page open.

The format is that of "Trace Event Format" by Nat Duca and Dan Sinclair (Google, 2016), its JSON object form. Times in
it are microseconds; here they are whole nanoseconds, so that spans that follow each other never overlap by rounding.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.errors import StowageError
from planner.files import PATH, require_arguments, write_text
from planner.graph import Graph
from planner.plan.index import PlanIndex
from planner.plan.own_graph import own_graph, require_own_timeline
from planner.plan.replay import bytes_by_kind
from planner.plan.schema.swap_plan import SwapIn, SwapOut, SwapPlan
from planner.plan.schema.timeline import Seconds, Timeline
from planner.plan.stalls import compute_waits

Event = dict[str, Any]

_COMPUTE, _OUT, _IN, _WAITS, _STEPS, _BESIDE = range(6)
#: Threads of the trace, from top to bottom.
_THREADS = {
    _STEPS: "steps", _COMPUTE: "compute", _WAITS: "compute waits", _OUT: "copies to the host",
    _IN: "copies to the device", _BESIDE: "communication",
}  # fmt: skip


def save_trace(path: str | Path, graph: Graph, plan: SwapPlan, timelines: Sequence[Timeline] | None = None) -> None:
    """Write a trace to a file atomically.

    Args:
        path: the file to write.
        graph, plan, timelines: as in `trace_json`.

    Raises:
        StowageError: an argument is of another type, the file cannot be written, or the graph, the plan and the
            timelines are not of one step.
    """
    require_arguments("save_trace", path=(path, PATH), graph=(graph, Graph), plan=(plan, SwapPlan))
    if timelines is not None and not (
        isinstance(timelines, Sequence) and all(isinstance(timeline, Timeline) for timeline in timelines)
    ):
        raise StowageError("timelines must be a list of timelines, as `Run.timelines` is")
    write_text(path, trace_json(graph, plan, timelines))


def trace_json(graph: Graph, plan: SwapPlan, timelines: Sequence[Timeline] | None = None) -> str:
    """Steps one after another: ops, copies and waits on threads of their own, and device memory by kind.

    Args:
        graph: the step.
        plan: its plan.
        timelines: of steps that ran the plan, such as `Run.timelines`; by default, the one that the plan predicts.

    Raises:
        StowageError: the plan or a timeline is for another graph.
    """
    shown = [plan.predicted] if timelines is None else timelines
    graph = own_graph(graph, plan)
    for timeline in shown:
        require_own_timeline(plan, timeline)
    events: list[Event] = [{"ph": "M", "pid": 0, "name": "process_name", "args": {"name": graph.name}}]
    threads = {thread: name for thread, name in _THREADS.items() if thread != _BESIDE or plan.communications}
    for place, (thread, name) in enumerate(threads.items()):
        events += [
            {"ph": "M", "pid": 0, "tid": thread, "name": "thread_name", "args": {"name": name}},
            {"ph": "M", "pid": 0, "tid": thread, "name": "thread_sort_index", "args": {"sort_index": place}},
        ]
    index, begin = PlanIndex(graph, plan), 0
    for number, timeline in enumerate(shown):
        events.append(_span(_STEPS, "step", f"step {number}", begin, 0.0, timeline.seconds, {}))
        events += _compute(index, timeline, begin)
        events += _copies(graph, plan, timeline, begin)
        events += _communications(graph, plan, timeline, begin)
        events += _returns(plan, timeline, begin, number)
        for seconds, sizes in bytes_by_kind(index, timeline):
            events.append(_event("C", _STEPS, "device memory", begin + _nanoseconds(seconds), {"args": sizes}))
        begin += _nanoseconds(timeline.seconds)
    facts = {
        "machine": plan.machine, "method": plan.method, "budget_bytes": plan.budget_bytes,
        "peak_bytes": plan.peak_bytes, "measured": timelines is not None,
    }  # fmt: skip
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": facts}, separators=(",", ":"))


def _compute(index: PlanIndex, timeline: Timeline, begin: int) -> Iterator[Event]:
    graph, plan = index.graph, index.plan
    repeats = set(index.repeats)
    for slot, (start, stop) in enumerate(timeline.compute.tolist()):
        op = graph.ops[plan.order[slot]]
        touched = {*index.reads[slot], *index.writes[slot], *([op.workspace] if op.workspace >= 0 else [])}
        said = {
            "op": op.id, "target": op.target, "module": op.module, "phase": op.phase.value,
            "bytes": sum(graph.storages[storage].bytes for storage in touched),
        }  # fmt: skip
        if op.source:
            said["line"] = op.source
        name = f"{op.name} (run {index.slots_of(op.id).index(slot) + 1})" if slot in repeats else op.name
        yield _span(_COMPUTE, f"op,{op.phase.value}", name, begin, start, stop, said)
    for wait in compute_waits(index, timeline):
        said_of = f"for {wait.cause(graph)}"
        yield _span(_WAITS, "wait", said_of, begin, wait.start, wait.stop, {}) | {"cname": "terrible"}


def _copies(graph: Graph, plan: SwapPlan, timeline: Timeline, begin: int) -> Iterator[Event]:
    moves = [(_OUT, "copy,out", *pair) for pair in _paired(plan.swap_outs, timeline.swap_out)]
    moves += [(_IN, "copy,in", *pair) for pair in _paired(plan.swap_ins, timeline.swap_in)]
    for thread, category, copy, (start, stop) in moves:
        storage = graph.storages[copy.storage]
        said: Event = {"storage": storage.id, "kind": storage.kind.value, "bytes": storage.bytes}
        if stop > start:
            said["GB/s"] = round(storage.bytes / (stop - start) / 1e9, 3)
        yield _span(thread, category, storage.name, begin, start, stop, said)


def _communications(graph: Graph, plan: SwapPlan, timeline: Timeline, begin: int) -> Iterator[Event]:
    for beside, (start, stop) in zip(plan.communications, timeline.communication.tolist(), strict=True):
        op = graph.ops[plan.order[beside.start]]
        said = {"op": op.id, "target": op.target, "module": op.module, "phase": op.phase.value}
        yield _span(_BESIDE, f"collective,{op.phase.value}", op.name, begin, start, stop, said)


def _returns(plan: SwapPlan, timeline: Timeline, begin: int, step: int) -> Iterator[Event]:
    """An arrow from every copy to the host to the next copy of the same storage back within the step."""
    last: dict[int, tuple[int, float]] = {}
    moves = [(span[0], False, copy.storage) for copy, span in _paired(plan.swap_outs, timeline.swap_out)]
    moves += [(span[0], True, copy.storage) for copy, span in _paired(plan.swap_ins, timeline.swap_in)]
    for number, (start, comes_back, storage) in enumerate(sorted(moves)):
        if not comes_back:
            last[storage] = (number, start)
        elif storage in last:
            left, when = last.pop(storage)
            tied = {"cat": "away", "id": f"{step}.{left}"}
            yield _event("s", _OUT, "away", begin + _nanoseconds(when), tied)
            yield _event("f", _IN, "away", begin + _nanoseconds(start), tied | {"bp": "e"})


def _paired(queue: Sequence[SwapOut | SwapIn], spans: Seconds) -> Iterator[tuple[SwapOut | SwapIn, list[float]]]:
    return zip(queue, spans.tolist(), strict=True)


def _span(
    thread: int, category: str, name: str, begin: int, start: float, stop: float, said: Mapping[str, Any]
) -> Event:
    first, last = begin + _nanoseconds(start), begin + _nanoseconds(stop)
    return _event("X", thread, name, first, {"dur": (last - first) / 1000, "cat": category, "args": said})


def _event(phase: str, thread: int, name: str, nanoseconds: int, more: Mapping[str, Any]) -> Event:
    return {"ph": phase, "pid": 0, "tid": thread, "name": name, "ts": nanoseconds / 1000, **more}


def _nanoseconds(seconds: float) -> int:
    return round(1e9 * seconds)
