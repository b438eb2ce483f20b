"""Plans as versioned JSON with a checksum; reading an untrusted file executes nothing and checks every field."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from planner import strict
from planner.errors import StowageError
from planner.files import read_text, write_text
from planner.plan.schema.lanes import COMPUTE, Lane
from planner.plan.schema.swap_plan import ENTRIES, HostResidency, Queues, Residency, SwapPlan, device_queues
from planner.plan.schema.timeline import MemorySamples, Spans, Timeline
from planner.strict import DamageError

#: Version 1 had three queues by name, and an order in which no op ran twice.
VERSION = 2
_FORMAT = "stowage-plan"


def plan_to_json(plan: SwapPlan) -> str:
    """The plan as JSON text.

    Raises:
        StowageError: its predicted timeline holds a number that is not finite, or the name of its machine or method
            is too long.
    """
    for name, text in ("machine", plan.machine), ("method", plan.method):
        if len(text) > strict.LONGEST_TEXT:
            raise StowageError(
                f"the plan's {name} has a name of {len(text):,} characters, and {strict.LONGEST_TEXT:,} can be saved; "
                "shorten it"
            )
    body: dict[str, Any] = {"format": _FORMAT, "version": VERSION}
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
    return json.dumps({"checksum": _checksum(body), **body}, separators=(",", ":"))


def plan_from_json(text: str) -> SwapPlan:
    """Read a plan from JSON text; `validate` checks whether it is valid for a graph.

    Raises:
        StowageError: the text is not a plan of this version, or was changed after it was saved.
    """
    try:
        data = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse)
    except DamageError as error:
        raise StowageError(f"this plan is damaged: {error}; make it again") from error
    except (ValueError, RecursionError) as error:
        raise StowageError("this is not a plan: the JSON breaks off or is malformed; make it again") from error
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise StowageError('this is not a plan: the JSON lacks "format": "stowage-plan"; give the file of a plan')
    version = data.get("version")
    if type(version) is not int or version != VERSION:
        raise StowageError(
            f"this plan has version {str(version)[:40]!r} and this program reads version {VERSION}; make it again"
        )
    try:
        strict.same_names(data, {"format", "version", "checksum", *_READERS}, "the plan")
        if data.pop("checksum") != _checksum(data):
            raise DamageError("its checksum does not match, so it was changed after it was saved")
        return SwapPlan(**{name: read(data[name], name) for name, read in _READERS.items()})
    except DamageError as error:
        raise StowageError(f"this plan is damaged: {error}; make it again") from error


def save_plan(plan: SwapPlan, path: str | Path) -> None:
    """Write a plan to a file atomically.

    Raises:
        StowageError: the file cannot be written; an existing one is left unchanged.
    """
    write_text(path, plan_to_json(plan))


def load_plan(path: str | Path) -> SwapPlan:
    """Read a plan from a file.

    Raises:
        StowageError: the file is missing, not a plan of this version, or was changed after it was saved.
    """
    return plan_from_json(read_text(path))


def _checksum(body: dict[str, Any]) -> str:
    text = json.dumps(body, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


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


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise DamageError("it gives a field twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise DamageError(f"it holds {constant}, which is no number")


def _lane(value: Any, where: str) -> Lane:
    """The lane of an object that has its entries."""
    strict.same_names(value, {"device", "kind", "index", "entries"}, where)
    device, index = strict.whole(value["device"], where), strict.whole(value["index"], where)
    kind = strict.text(value["kind"], where)
    if kind not in ENTRIES:
        raise DamageError(f"{where} has a lane of kind {kind[:40]!r}, which this version does not know")
    return Lane(device, kind, index)


def _by_lane(value: Any, where: str, reader: Callable[[str], Callable[[Any, str], Any]]) -> dict[Lane, Any]:
    """By lane, its entries, which `reader` reads given the lane's kind."""
    found: dict[Lane, Any] = {}
    for part in strict.objects(value, where):
        lane = _lane(part, where)
        if lane in found:
            raise DamageError(f"{where} has the lane for {lane.words} twice")
        found[lane] = reader(lane.kind)(part["entries"], f"{where} for {lane.words}")
    for lane in device_queues(()):
        if lane not in found:
            raise DamageError(f"{where} lacks the lane for {lane.words}")
    return found


def _queues(value: Any, where: str) -> Queues:
    tables = {kind: strict.wholes if entry is int else strict.table(entry) for kind, entry in ENTRIES.items()}
    return _by_lane(value, where, tables.__getitem__)


def _spans(value: Any, where: str) -> Spans:
    return _by_lane(value, where, lambda _kind: strict.spans)


def _memory(value: Any, where: str) -> dict[int, MemorySamples]:
    found: dict[int, MemorySamples] = {}
    for part in strict.objects(value, where):
        strict.same_names(part, {"device", "seconds", "bytes"}, where)
        device = strict.whole(part["device"], where)
        if device in found:
            raise DamageError(f"{where} has device {device} twice")
        found[device] = MemorySamples(strict.seconds(part["seconds"], where), strict.amounts(part["bytes"], where))
    if COMPUTE.device not in found:
        raise DamageError(f"{where} lacks device {COMPUTE.device}")
    return found


def _predicted(value: Any, where: str) -> Timeline:
    if type(value) is not dict:
        raise DamageError(f"{where} is not a timeline")
    strict.same_names(value, set(_TIMELINE), where)
    return Timeline(**{name: read(value[name], f"{where}.{name}") for name, read in _TIMELINE.items()})


_TIMELINE: dict[str, Callable[[Any, str], Any]] = {"seconds": strict.number, "spans": _spans, "memory": _memory}
_TABLES: dict[str, Callable[[Any, str], Any]] = {
    "residencies": strict.table(Residency), "host_residencies": strict.table(HostResidency),
}  # fmt: skip
_READERS: dict[str, Callable[[Any, str], Any]] = {
    "graph": strict.text, "machine": strict.text, "method": strict.text,
    "budget_bytes": strict.whole, "host_budget_bytes": strict.whole_or_none, "alignment": strict.whole,
    "queues": _queues, "workspaces": strict.pairs, **_TABLES,
    "peak_bytes": strict.whole, "host_bytes": strict.whole, "predicted": _predicted,
}  # fmt: skip
