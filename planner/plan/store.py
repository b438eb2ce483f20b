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
from planner.plan.swap_plan import (
    HostResidency,
    Residency,
    SwapIn,
    SwapOut,
    SwapPlan,
)
from planner.plan.timeline import Timeline
from planner.strict import DamageError

VERSION = 1
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


def _plain(timeline: Timeline) -> dict[str, Any]:
    exact = {part: np.int64 if part == "sample_bytes" else np.float64 for part in _TIMELINE}
    return {part: np.asarray(getattr(timeline, part), dtype).tolist() for part, dtype in exact.items()}


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise DamageError("it gives a field twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise DamageError(f"it holds {constant}, which is no number")


def _predicted(value: Any, where: str) -> Timeline:
    if type(value) is not dict:
        raise DamageError(f"{where} is not a timeline")
    strict.same_names(value, set(_TIMELINE), where)
    return Timeline(**{name: read(value[name], f"{where}.{name}") for name, read in _TIMELINE.items()})


_TIMELINE: dict[str, Callable[[Any, str], Any]] = {
    "seconds": strict.number, "compute": strict.spans, "swap_out": strict.spans, "swap_in": strict.spans,
    "sample_seconds": strict.seconds, "sample_bytes": strict.amounts,
}  # fmt: skip
_TABLES: dict[str, Callable[[Any, str], Any]] = {
    "residencies": strict.table(Residency), "host_residencies": strict.table(HostResidency),
    "swap_outs": strict.table(SwapOut), "swap_ins": strict.table(SwapIn),
}  # fmt: skip
_READERS: dict[str, Callable[[Any, str], Any]] = {
    "graph": strict.text, "machine": strict.text, "method": strict.text,
    "budget_bytes": strict.whole, "host_budget_bytes": strict.whole_or_none, "alignment": strict.whole,
    "order": strict.wholes, "workspaces": strict.pairs, **_TABLES,
    "peak_bytes": strict.whole, "host_bytes": strict.whole, "predicted": _predicted,
}  # fmt: skip
