"""Partition plans as versioned JSON with a checksum; reading an untrusted file checks every field."""

from __future__ import annotations

from math import isfinite, prod
from pathlib import Path
from typing import Any, TypeVar

from planner import json_fields
from planner.errors import StowageError
from planner.files import PATH, read_parsed, require_arguments, write_text
from planner.json_fields import DamageError, Envelope
from planner.partition.plan.partition_plan import AxisDivision, Division, LinearDivision, PartitionPlan
from planner.partition.strategy import Partial, Replicated, Split, State, Unread
from planner.partition.tdl import Reduction

PARTITION_VERSION = 1
#: More workers than this are refused before anything is worked out for each of them.
_MOST_WORKERS = 1 << 20
_FIELDS = {
    "fingerprint", "mesh", "method", "seed", "bound", "gap", "bytes_per_level", "states", "state_vectors", "tensors",
    "divisions", "division_vectors", "ops",
}  # fmt: skip
_ENVELOPE = Envelope("partition plan", "stowage-partition", PARTITION_VERSION, "make it again", frozenset(_FIELDS))
_Item = TypeVar("_Item")


def partition_to_json(plan: PartitionPlan) -> str:
    """The plan as JSON text; states and vectors of states that many tensors share are written once.

    Raises:
        StowageError: a number in it is not finite, or the name of its method is too long.
    """
    if len(plan.method) > json_fields.LONGEST_TEXT:
        raise StowageError(
            f"the method's name has {len(plan.method):,} characters, and {json_fields.LONGEST_TEXT:,} can be saved; "
            "shorten it"
        )
    states, state_vectors, tensors = _indexed(plan.tensors)
    divisions, division_vectors, ops = _indexed(plan.ops)
    body: dict[str, Any] = {
        "fingerprint": plan.fingerprint, "mesh": list(plan.mesh), "method": plan.method,
        "seed": plan.seed, "bound": plan.bound, "gap": plan.gap,
        "bytes_per_level": list(plan.bytes_per_level),
        "states": [_state_row(state) for state in states], "state_vectors": state_vectors, "tensors": tensors,
        "divisions": [_division_row(division) for division in divisions], "division_vectors": division_vectors,
        "ops": ops,
    }  # fmt: skip
    try:
        return _ENVELOPE.seal(body)
    except ValueError as error:
        raise StowageError(f"the partition plan has a number of bytes that is not finite: {error}") from error


def partition_from_json(text: str) -> PartitionPlan:
    """Read a partition plan from JSON text; `validate_partition` checks whether it is valid for a graph.

    Raises:
        StowageError: the text is not a partition plan of this version, or was changed after it was saved.
    """
    data = _ENVELOPE.open(text)
    try:
        return _plan(data)
    except DamageError as error:
        raise StowageError(f"this partition plan is damaged: {error}; make it again") from error


def save_partition(plan: PartitionPlan, path: str | Path) -> None:
    """Write a partition plan to a file atomically.

    Raises:
        StowageError: an argument is of another type, or the file cannot be written; an existing one is left unchanged.
    """
    require_arguments("save_partition", plan=(plan, PartitionPlan), path=(path, PATH))
    write_text(path, partition_to_json(plan))


def load_partition(path: str | Path) -> PartitionPlan:
    """Read a partition plan from a file.

    Raises:
        StowageError: the file is missing, not a partition plan of this version, or was changed after it was saved.
    """
    return read_parsed(path, partition_from_json)


def _indexed(rows: tuple[tuple[_Item, ...], ...]) -> tuple[list[_Item], list[list[int]], list[int]]:
    """Rows as numbers of distinct vectors, which are numbers of distinct items."""
    items: dict[_Item, int] = {}
    vectors: dict[tuple[_Item, ...], int] = {}
    numbers = [vectors.setdefault(row, len(vectors)) for row in rows]
    indexed = [[items.setdefault(item, len(items)) for item in row] for row in vectors]
    return list(items), indexed, numbers


def _state_row(state: State | None) -> list[Any] | None:
    match state:
        case None:
            return None
        case Split():
            halo = ["halo"] if state.halo else []
            return ["split", state.dimension, state.outer, state.size, state.inner, *halo]
        case Partial():
            return ["partial", state.reduction.value]
        case Replicated():
            return ["replicated"]
        case Unread():
            return ["unread"]


def _division_row(division: Division) -> list[Any] | None:
    match division:
        case None:
            return None
        case AxisDivision():
            return ["axis", division.axis, division.outer, division.size, division.inner]
        case LinearDivision():
            return ["linear", *division.inputs]


def _plan(data: dict[str, Any]) -> PartitionPlan:
    mesh = json_fields.wholes(data["mesh"], "mesh")
    if any(workers < 2 for workers in mesh):
        raise DamageError(f"mesh has a level of {min(mesh)} workers, and a level has 2 or more")
    if len(mesh) > _MOST_WORKERS.bit_length() or prod(mesh) > _MOST_WORKERS:
        raise DamageError(f"mesh has more than {_MOST_WORKERS:,} workers")
    states = [_state(row) for row in json_fields.items(data["states"], "states")]
    divisions = [_division(row) for row in json_fields.items(data["divisions"], "divisions")]
    moved = tuple(
        _amount(number, "bytes_per_level") for number in json_fields.items(data["bytes_per_level"], "bytes_per_level")
    )
    if len(moved) != len(mesh):
        raise DamageError(f"bytes_per_level has {len(moved)} numbers for {len(mesh)} levels")
    return PartitionPlan(
        json_fields.text(data["fingerprint"], "fingerprint"),
        mesh,
        _vectors(data, "tensors", "state_vectors", "states", states, len(mesh)),
        _vectors(data, "ops", "division_vectors", "divisions", divisions, len(mesh)),
        moved,
        json_fields.text(data["method"], "method"),
        json_fields.whole_or_none(data["seed"], "seed"),
        None if data["bound"] is None else _amount(data["bound"], "bound"),
        None if data["gap"] is None else _amount(data["gap"], "gap"),
    )


def _vectors(
    data: dict[str, Any], name: str, vectors: str, items: str, known: list[_Item], levels: int
) -> tuple[tuple[_Item, ...], ...]:
    rows = []
    for row in json_fields.items(data[vectors], vectors):
        numbers = json_fields.wholes(row, vectors)
        if len(numbers) != levels:
            raise DamageError(f"{vectors} has a row of {len(numbers)} for {levels} levels")
        rows.append(tuple(_item(known, number, vectors, items) for number in numbers))
    return tuple(_item(rows, number, name, vectors) for number in json_fields.wholes(data[name], name))


def _item(known: list[_Item], number: int, where: str, what: str) -> _Item:
    if not 0 <= number < len(known):
        raise DamageError(f"{where} names number {number} of {what}, which has {len(known)}")
    return known[number]


def _state(row: Any) -> State | None:
    if row is None:
        return None
    kind, *values = _row(row, "states")
    if kind == "split" and len(values) in (4, 5) and (len(values) == 4 or values[4] == "halo"):
        dimension, outer, size, inner = (json_fields.whole(value, "states") for value in values[:4])
        _factors("states", dimension + 1, outer, size, inner)
        return Split(dimension, outer, size, inner, len(values) == 5)
    if kind == "partial" and len(values) == 1 and values[0] in list(Reduction):
        return Partial(Reduction(values[0]))
    if kind in _WORDS and not values:
        return _WORDS[kind]
    raise DamageError(f"states holds {repr(row)[:40]}, which is no state that this version knows")


def _division(row: Any) -> Division:
    if row is None:
        return None
    kind, *values = _row(row, "divisions")
    if kind == "axis" and len(values) == 4:
        outer, size, inner = (json_fields.whole(value, "divisions") for value in values[1:])
        _factors("divisions", 1, outer, size, inner)
        return AxisDivision(json_fields.text(values[0], "divisions"), outer, size, inner)
    if kind == "linear":
        places = json_fields.wholes(values, "divisions")
        _factors("divisions", *(place + 1 for place in places))
        return LinearDivision(places)
    raise DamageError(f"divisions holds {repr(row)[:40]}, which is no division that this version knows")


def _factors(where: str, *numbers: int) -> None:
    if any(number < 1 for number in numbers):
        raise DamageError(f"{where} holds a factor or place that is too small")


def _amount(value: Any, where: str) -> float:
    if type(value) not in (int, float) or not isfinite(value) or value < 0:
        raise DamageError(f"{where} holds {repr(value)[:40]}, which is not a number from 0 on")
    return json_fields.whole(value, where) if type(value) is int else float(value)


def _row(value: Any, where: str) -> list[Any]:
    if type(value) is not list or not value or type(value[0]) is not str:
        raise DamageError(f"{where} holds {repr(value)[:40]}, which is not a list that begins with a word")
    return value


_WORDS: dict[str, State] = {"replicated": Replicated(), "unread": Unread()}
