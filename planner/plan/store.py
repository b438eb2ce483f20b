"""Plans as versioned JSON with a checksum; reading an untrusted file executes nothing and checks every field."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from planner import json_fields
from planner.errors import StowageError
from planner.files import PATH, read_parsed, require_arguments, write_text
from planner.json_fields import DamageError, Envelope
from planner.plan.schema.lanes import COMPUTE, Lane
from planner.plan.schema.swap_plan import ENTRIES, HostResidency, Queues, Residency, SwapPlan, device_queues
from planner.plan.schema.timeline import MemorySamples, Spans, Timeline

#: Version 1 had three queues by name, and an order in which no op ran twice.
VERSION = 2


def plan_to_json(plan: SwapPlan) -> str:
    """The plan as JSON text.

    Raises:
        StowageError: its predicted timeline holds a number that is not finite, or the name of its machine or method
            is too long.
    """
    for name, text in ("machine", plan.machine), ("method", plan.method):
        if len(text) > json_fields.LONGEST_TEXT:
            raise StowageError(
                f"the plan's {name} has a name of {len(text):,} characters, and {json_fields.LONGEST_TEXT:,} can be "
                "saved; shorten it"
            )
    body: dict[str, Any] = {}
    for name in _READERS:
        value = getattr(plan, name)
        if name in _TABLES:
            body[name] = [astuple(row) for row in value]
        elif name == "queues":
            body[name] = [{**lane.fields(), "entries": _rows(entries)} for lane, entries in value.items()]
        elif name == "predicted":
            body[name] = _plain(value)
        else:
            body[name] = value
    try:
        json.dumps(body["predicted"], allow_nan=False)
    except ValueError as error:
        raise StowageError("the plan's predicted times are no numbers, so it is not saved; plan again") from error
    return _ENVELOPE.seal(body)


def plan_from_json(text: str) -> SwapPlan:
    """Read a plan from JSON text; `validate` checks whether it is valid for a graph.

    Raises:
        StowageError: the text is not a plan of this version, or was changed after it was saved.
    """
    data = _ENVELOPE.open(text)
    try:
        return SwapPlan(**{name: read(data[name], name) for name, read in _READERS.items()})
    except DamageError as error:
        raise StowageError(f"this plan is damaged: {error}; make it again") from error


def save_plan(plan: SwapPlan, path: str | Path) -> None:
    """Write a plan to a file atomically.

    Raises:
        StowageError: an argument is of another type, or the file cannot be written; an existing one is left unchanged.
    """
    require_arguments("save_plan", plan=(plan, SwapPlan), path=(path, PATH))
    write_text(path, plan_to_json(plan))


def load_plan(path: str | Path) -> SwapPlan:
    """Read a plan from a file.

    Raises:
        StowageError: the file is missing, not a plan of this version, or was changed after it was saved.
    """
    return read_parsed(path, plan_from_json)


def _rows(entries: tuple[Any, ...]) -> list[Any]:
    return [entry if isinstance(entry, int) else astuple(entry) for entry in entries]


def _plain(timeline: Timeline) -> dict[str, Any]:
    def exact(values: Any, dtype: type) -> Any:
        return np.asarray(values, dtype).tolist()

    return {
        "seconds": exact(timeline.seconds, np.float64),
        "spans": [{**lane.fields(), "entries": exact(spans, np.float64)} for lane, spans in timeline.spans.items()],
        "memory": [
            {"device": device, "seconds": exact(samples.seconds, np.float64), "bytes": exact(samples.bytes, np.int64)}
            for device, samples in timeline.memory.items()
        ],
    }


def _lane(value: Any, where: str) -> Lane:
    """The lane of an object that has its entries."""
    json_fields.same_names(value, {"device", "kind", "index", "entries"}, where)
    device, index = json_fields.whole(value["device"], where), json_fields.whole(value["index"], where)
    kind = json_fields.text(value["kind"], where)
    if kind not in ENTRIES:
        raise DamageError(f"{where} has a lane of kind {kind[:40]!r}, which this version does not know")
    return Lane(device, kind, index)


def _by_lane(value: Any, where: str, reader: Callable[[str], Callable[[Any, str], Any]]) -> dict[Lane, Any]:
    """By lane, its entries, which `reader` reads given the lane's kind."""
    found: dict[Lane, Any] = {}
    for part in json_fields.objects(value, where):
        lane = _lane(part, where)
        if lane in found:
            raise DamageError(f"{where} has the lane for {lane.words} twice")
        found[lane] = reader(lane.kind)(part["entries"], f"{where} for {lane.words}")
    for lane in device_queues(()):
        if lane not in found:
            raise DamageError(f"{where} lacks the lane for {lane.words}")
    return found


def _queues(value: Any, where: str) -> Queues:
    tables = {kind: json_fields.wholes if entry is int else json_fields.table(entry) for kind, entry in ENTRIES.items()}
    return _by_lane(value, where, tables.__getitem__)


def _spans(value: Any, where: str) -> Spans:
    return _by_lane(value, where, lambda _kind: json_fields.spans)


def _memory(value: Any, where: str) -> dict[int, MemorySamples]:
    found: dict[int, MemorySamples] = {}
    for part in json_fields.objects(value, where):
        json_fields.same_names(part, {"device", "seconds", "bytes"}, where)
        device = json_fields.whole(part["device"], where)
        if device in found:
            raise DamageError(f"{where} has device {device} twice")
        found[device] = MemorySamples(
            json_fields.seconds(part["seconds"], where), json_fields.amounts(part["bytes"], where)
        )
    if COMPUTE.device not in found:
        raise DamageError(f"{where} lacks device {COMPUTE.device}")
    return found


def _predicted(value: Any, where: str) -> Timeline:
    if type(value) is not dict:
        raise DamageError(f"{where} is not a timeline")
    json_fields.same_names(value, set(_TIMELINE), where)
    return Timeline(**{name: read(value[name], f"{where}.{name}") for name, read in _TIMELINE.items()})


_TIMELINE: dict[str, Callable[[Any, str], Any]] = {"seconds": json_fields.number, "spans": _spans, "memory": _memory}
_TABLES: dict[str, Callable[[Any, str], Any]] = {
    "residencies": json_fields.table(Residency), "host_residencies": json_fields.table(HostResidency),
}  # fmt: skip
_READERS: dict[str, Callable[[Any, str], Any]] = {
    "graph": json_fields.text, "machine": json_fields.text, "method": json_fields.text,
    "budget_bytes": json_fields.whole, "host_budget_bytes": json_fields.whole_or_none, "alignment": json_fields.whole,
    "queues": _queues, "workspaces": json_fields.pairs, **_TABLES,
    "peak_bytes": json_fields.whole, "host_bytes": json_fields.whole, "predicted": _predicted,
}  # fmt: skip
_ENVELOPE = Envelope("plan", "stowage-plan", VERSION, "make it again", frozenset(_READERS))
