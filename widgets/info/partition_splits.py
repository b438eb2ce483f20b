"""How a partition splits tensors: one row for tensors of equal layers, and one column per level."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from planner.errors import StowageError, given_type
from planner.graph import Graph, fingerprint
from planner.units import bytes_label, several
from widgets.info.argument_types import require_graph
from widgets.info.colour_groups import GROUP_OF, Group

if TYPE_CHECKING:
    from planner.partition import PartitionPlan

#: What is shown: gradients and optimizer states are split like their parameters.
_SHOWN = (Group.PARAMETER, Group.INPUT, Group.ACTIVATION)
_COPIES, _SUMS = "copies", "sums"


@dataclass(frozen=True, slots=True)
class SplitRow:
    """Tensors of equal layers that are split alike.

    Args:
        name: the name that they share, a star for the numbers in which they differ.
        tensors: their numbers.
        group: their kind.
        shape: the shape of each.
        bytes: of all of them.
        ways: per level, `dim 0`, `copies` on all workers, or `sums` of which each worker has a part.
    """

    name: str
    tensors: tuple[int, ...]
    group: Group
    shape: tuple[int, ...]
    bytes: int
    ways: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartitionSplits:
    """How a partition splits tensors.

    Args:
        name: of the step.
        mesh: into how many parts each level cuts.
        rows: the largest, in the order in which they are made.
        others: how many more tensors there are, and their bytes.
        bytes_moved: bytes that all workers together receive in a step.
    """

    name: str
    mesh: tuple[int, ...]
    rows: tuple[SplitRow, ...]
    others: tuple[int, int]
    bytes_moved: float

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        if not self.mesh:
            return "One worker has everything, so nothing is split."
        split = sum(row.bytes for row in self.rows if _COPIES not in row.ways)
        total = sum(row.bytes for row in self.rows)
        share = f"{100 * split / total:.0f} % of the bytes shown" if total else "Nothing"
        mesh = " \N{MULTIPLICATION SIGN} ".join(map(str, self.mesh))
        return (
            f"{share} are split over all {several(prod(self.mesh), 'worker')} ({mesh}), which exchange "
            f"{bytes_label(self.bytes_moved)} a step."
        )


def get_partition_splits(graph: Graph, plan: PartitionPlan, most_rows: int = 24) -> PartitionSplits:
    """Find how a partition splits the largest tensors.

    Args:
        graph: the step.
        plan: its partition.
        most_rows: limit on the number of rows.

    Raises:
        StowageError: `graph` is no graph, the plan is for another graph, or the limit is below 1.
    """
    require_graph(graph)
    require_same_graph(graph, plan)
    if most_rows < 1:
        raise StowageError(f"most_rows must be 1 or more, got {most_rows}")
    found: dict[object, list[int]] = {}
    seen: set[int] = set()
    for tensor in graph.tensors:
        storage = graph.storages[tensor.storage]
        if tensor.base >= 0 or storage.id in seen or GROUP_OF[storage.kind] not in _SHOWN:
            continue
        seen.add(storage.id)  # what is updated in place stays split as it was
        ways = tuple(_way(state) for state in plan.tensors[tensor.id])
        key = re.sub(r"\d+", "*", tensor.name), tensor.shape, storage.kind, ways
        found.setdefault(key, []).append(tensor.id)
    rows = []
    for numbers in found.values():
        first = graph.tensors[numbers[0]]
        rows.append(
            SplitRow(
                _shared_name([graph.tensors[tensor].name for tensor in numbers]), tuple(numbers),
                GROUP_OF[graph.storages[first.storage].kind], first.shape,
                sum(graph.storages[graph.tensors[tensor].storage].bytes for tensor in numbers),
                tuple(_way(state) for state in plan.tensors[first.id]),
            )
        )  # fmt: skip
    largest = sorted(rows, key=lambda row: (-row.bytes, row.tensors))
    shown = set(largest[:most_rows])
    rest = largest[most_rows:]
    return PartitionSplits(
        graph.name, tuple(plan.mesh), tuple(row for row in rows if row in shown),
        (sum(len(row.tensors) for row in rest), sum(row.bytes for row in rest)), plan.bytes_moved,
    )  # fmt: skip


def require_same_graph(graph: Graph, plan: PartitionPlan) -> None:
    """Refuse to draw a partition over another graph.

    Raises:
        StowageError: it is for another graph, or no plan.
    """
    if not hasattr(plan, "fingerprint"):
        raise StowageError(f"{given_type(plan)} is no partition plan; pass the plan that search.wait() returns")
    if plan.fingerprint != fingerprint(graph):
        raise StowageError(f"this partition is not one of {graph.name}; draw it with the graph it was made for")


def _way(state: object) -> str:
    dimension = getattr(state, "dimension", None)
    if dimension is not None:
        return f"dim {dimension}"
    return _SUMS if hasattr(state, "reduction") else _COPIES


def _shared_name(names: Sequence[str]) -> str:
    """The name with a star for each number in which names differ."""
    parts = [re.split(r"(\d+)", name) for name in names]
    return "".join(
        pieces[0] if len(set(pieces)) == 1 else "*" for pieces in zip(*parts, strict=True)
    )  # fmt: skip
