"""Graphs as versioned JSON, and the fingerprint that ties a plan to its graph."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from planner.errors import StowageError
from planner.files import PATH, read_parsed, require_arguments, write_text
from planner.graph.check import check
from planner.graph.types import Graph, Kind, Op, Phase, Storage, Tensor

VERSION = 3
#: Columns that are written only where an entry differs from what it is by default.
_OPTIONAL = frozenset({"draws_as"})
_FORMAT = "stowage-graph"
_NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?|-?\d+e[+-]?\d+")
#: A search asks for its graph's at every plan that it makes.
_FINGERPRINTS: WeakKeyDictionary[Graph, str] = WeakKeyDictionary()


def to_json(graph: Graph) -> str:
    """The graph as JSON text; its program is left out, so that loading an untrusted file executes nothing."""
    return json.dumps(
        {
            "format": _FORMAT,
            "version": VERSION,
            "name": graph.name,
            "device": graph.device,
            **({"approximate": True} if graph.approximate else {}),
            **({"outside_bytes": graph.outside_bytes} if graph.outside_bytes else {}),
            "modules": dict(graph.modules),
            "outputs": graph.outputs,
            "storages": _table(graph.storages, Storage),
            "tensors": _table(graph.tensors, Tensor),
            "ops": _table(graph.ops, Op),
        },
        separators=(",", ":"),
    )


def from_json(text: str) -> Graph:
    """Read a graph from JSON text.

    Raises:
        StowageError: the text is not a graph of this version, or contradicts itself.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StowageError("this is not a graph: the JSON breaks off or is malformed; capture it again") from error
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise StowageError('this is not a graph: the JSON lacks "format": "stowage-graph"; capture it again')
    if data.get("version") != VERSION:
        raise StowageError(
            f"this graph has version {data.get('version')!r} and this program reads version {VERSION}; capture it again"
        )
    try:
        graph = Graph(
            name=_text(data["name"]),
            ops=tuple(_op(row) for row in _rows(data["ops"], Op)),
            tensors=tuple(_tensor(row) for row in _rows(data["tensors"], Tensor)),
            storages=tuple(_storage(row) for row in _rows(data["storages"], Storage)),
            outputs=_ints(data["outputs"]),
            modules={path: _text(kind) for path, kind in data["modules"].items()},
            device=_text(data["device"]),
            approximate=_flag(data.get("approximate", False)),
            outside_bytes=_int(data.get("outside_bytes", 0)),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise StowageError(f"this graph is damaged ({type(error).__name__}: {error}); capture it again") from error
    problems = check(graph)
    if problems:
        raise StowageError(f"this graph is damaged: {problems[0]}; capture it again")
    return graph


def save(graph: Graph, path: str | Path) -> None:
    """Write a graph to a file atomically.

    Raises:
        StowageError: an argument is of another type, or the file cannot be written; an existing one is left unchanged.
    """
    require_arguments("graph.save", graph=(graph, Graph), path=(path, PATH))
    write_text(path, to_json(graph))


def load(path: str | Path) -> Graph:
    """Read a graph from a file.

    Raises:
        StowageError: the file is missing, not a graph of this version, or contradicts itself.
    """
    return read_parsed(path, from_json)


def fingerprint(graph: Graph) -> str:
    """A hash of everything that a plan depends on, except workspaces, which differ between devices.

    Names, modules and source lines do not count, so a renamed model keeps its plans.
    """
    if graph not in _FINGERPRINTS:
        _FINGERPRINTS[graph] = _digest(graph, lambda attributes: attributes)
    return _FINGERPRINTS[graph]


def structure(graph: Graph) -> str:
    """The same hash without floating-point op arguments: a plan for one graph of a structure fits all of them."""
    return _digest(graph, lambda attributes: _NUMBER.sub("#", attributes))


def _digest(graph: Graph, normalized: Callable[[str], str]) -> str:
    digest = hashlib.sha256()
    for storage in graph.storages:
        if storage.kind is not Kind.WORKSPACE:
            digest.update(f"s{storage.bytes},{storage.kind};".encode())
    for tensor in graph.tensors:
        digest.update(f"t{tensor.storage},{tensor.shape},{tensor.strides},{tensor.offset},{tensor.dtype};".encode())
    for op in graph.ops:
        digest.update(f"o{op.target},{op.inputs},{op.outputs},{normalized(op.attributes)},{op.overwrites}".encode())
        digest.update(f",{op.first_run_only}{f',{op.draws_as}' if op.draws_as >= 0 else ''};".encode())
    digest.update(f"r{graph.outputs}".encode())
    return digest.hexdigest()[:32]


def _table(items: tuple[Any, ...], row_type: type) -> dict[str, Any]:
    columns = [
        column.name
        for column in fields(row_type)
        if column.name not in _OPTIONAL or any(getattr(item, column.name) != column.default for item in items)
    ]
    return {"columns": columns, "rows": [[getattr(item, name) for name in columns] for item in items]}


def _rows(table: dict[str, Any], row_type: type) -> list[list[Any]]:
    expected = [column.name for column in fields(row_type)]
    if table["columns"] not in (expected, [name for name in expected if name not in _OPTIONAL]):
        raise ValueError(f"{row_type.__name__} columns are {table['columns']}, expected {expected}")
    rows, columns = list(table["rows"]), fields(row_type)[: len(table["columns"])]
    if any(len(row) != len(columns) for row in rows):
        raise ValueError(f"a {row_type.__name__} has not {len(columns)} values")
    for place, column in enumerate(columns):
        if column.name in _OPTIONAL and all(row[place] == column.default for row in rows):
            raise ValueError(f"no {row_type.__name__} has a {column.name}")
    return rows


def _storage(row: list[Any]) -> Storage:
    identity, name, size, kind = row
    return Storage(_int(identity), _text(name), _int(size), Kind(kind))


def _tensor(row: list[Any]) -> Tensor:
    identity, name, storage, shape, strides, offset, dtype, base, view, attributes = row
    return Tensor(
        _int(identity), _text(name), _int(storage), _ints(shape), _ints(strides), _int(offset), _text(dtype),
        _int(base), _text(view), _text(attributes),
    )  # fmt: skip


def _op(row: list[Any]) -> Op:
    (
        identity, name, target, inputs, outputs, attributes, phase, module, source, flops, moved, random,
        overwrites, workspace, first_run_only, *draws_as,
    ) = row  # fmt: skip
    return Op(
        _int(identity), _text(name), _text(target), _ints(inputs), _ints(outputs), _text(attributes), Phase(phase),
        _text(module), _text(source), _int(flops), _int(moved), _flag(random), _ints(overwrites), _int(workspace),
        _ints(first_run_only), *map(_int, draws_as),
    )  # fmt: skip


def _ints(values: list[Any]) -> tuple[int, ...]:
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is not a list")
    return tuple(_int(value) for value in values)


def _int(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value
