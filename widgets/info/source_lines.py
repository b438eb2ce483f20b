"""The lines of code that the ops and storages of a step belong to, as they are shown."""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.graph import Graph, storage_lines
from widgets.info.argument_types import require_graph

#: A notebook kernel gives the file of a cell a number that means nothing to its author.
_NUMBERED_CELL = re.compile(r"^\d+\.py:(\d+)$")


@dataclass(frozen=True, slots=True)
class SourceLines:
    """Lines of code, as `model.py:123`; `""` where none is known.

    Args:
        of_op: per op, the line that runs it.
        of_storage: per storage, the line that creates it or, if it exists before the step, first uses it.
    """

    of_op: tuple[str, ...]
    of_storage: tuple[str, ...]


def get_source_lines(graph: Graph) -> SourceLines:
    """The line of every op and storage of a step.

    Raises:
        StowageError: it is no graph.
    """
    require_graph(graph)
    return SourceLines(
        tuple(_shown(op.source) for op in graph.ops), tuple(_shown(line) for line in storage_lines(graph))
    )


def _shown(line: str) -> str:
    return _NUMBERED_CELL.sub(r"line \1 of a cell", line) if line[:1].isdigit() else line
