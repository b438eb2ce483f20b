"""The line of code that each storage belongs to."""

from __future__ import annotations

from planner.graph.types import Graph


def storage_lines(graph: Graph) -> tuple[str, ...]:
    """Per storage, the user's line that it belongs to, as `model.py:123`; `""` if none is known.

    That is the line of the op that creates it. Where that op has none, or if the storage exists before the step (a
    parameter, or optimizer state), it is the first line that touches it.
    """
    found: dict[int, str] = {}
    for op in graph.ops:
        if op.source:
            for storage in (*graph.writes[op.id], *graph.reads[op.id], op.workspace):
                found.setdefault(storage, op.source)
    return tuple(found.get(storage.id, "") for storage in graph.storages)
