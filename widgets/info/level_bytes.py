"""The bytes that workers exchange at each level of a partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.graph import Graph
from planner.units import bytes_label, several
from widgets.info.argument_types import require_graph
from widgets.info.partition_splits import require_same_graph

if TYPE_CHECKING:
    from planner.partition import PartitionPlan


@dataclass(frozen=True, slots=True)
class LevelBytes:
    """The bytes of each level.

    Args:
        name: of the step.
        mesh: into how many parts each level cuts, the outermost first.
        bytes: per level, what all workers together receive in a step.
    """

    name: str
    mesh: tuple[int, ...]
    bytes: tuple[float, ...]

    @property
    def total(self) -> float:
        """Bytes of all levels."""
        return sum(self.bytes)

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        if not self.total:
            return "Workers exchange nothing."
        most = max(range(len(self.bytes)), key=lambda level: self.bytes[level])
        return (
            f"Workers exchange {bytes_label(self.total)} a step over {several(len(self.mesh), 'level')}, most of it, "
            f"{bytes_label(self.bytes[most])}, at level {most + 1}."
        )


def get_level_bytes(graph: Graph, plan: PartitionPlan) -> LevelBytes:
    """Find the bytes that workers exchange at each level.

    Raises:
        StowageError: `graph` is no graph, or the plan is for another one.
    """
    require_graph(graph)
    require_same_graph(graph, plan)
    return LevelBytes(graph.name, tuple(plan.mesh), tuple(plan.bytes_per_level))
