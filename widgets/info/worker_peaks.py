"""The memory of each worker of a partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.graph import Graph
from planner.memory import parse_budget, step_peak
from planner.units import bytes_label, format_percent, several
from widgets.info.argument_types import require_graph
from widgets.info.partition_splits import require_same_graph

if TYPE_CHECKING:
    from planner.partition import PartitionPlan

#: Workers that each have a row; of more, those that take equally much to three digits share one.
_FEW = 16


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """Workers that take equally much.

    Args:
        workers: their numbers.
        peak_bytes: the most that one of them takes at once.
        persistent_bytes: what one of them has at most when a step starts.
    """

    workers: tuple[int, ...]
    peak_bytes: int
    persistent_bytes: int

    @property
    def label(self) -> str:
        """`worker 0`, `24 workers`."""
        return f"worker {self.workers[0]}" if len(self.workers) == 1 else several(len(self.workers), "worker")


@dataclass(frozen=True, slots=True)
class WorkerPeaks:
    """The memory of each worker.

    Args:
        name: of the step.
        rows: the workers, in order of the first of each row.
        single_bytes: what the step takes on one device.
        limit_bytes: what each worker may take, if there is a limit.
    """

    name: str
    rows: tuple[WorkerRow, ...]
    single_bytes: int
    limit_bytes: int | None

    @property
    def most(self) -> int:
        """Bytes of the worker that takes the most."""
        return max(row.peak_bytes for row in self.rows)

    @property
    def summary(self) -> str:
        """The picture in one sentence."""
        workers = sum(len(row.workers) for row in self.rows)
        share = format_percent(self.most / self.single_bytes) if self.single_bytes else "0 %"
        over = ""
        if self.limit_bytes is not None and self.most > self.limit_bytes:
            over = f", {bytes_label(self.most - self.limit_bytes)} above the limit"
        return (
            f"Each of {several(workers, 'worker')} takes at most {bytes_label(self.most)}{over}, {share} of the "
            f"{bytes_label(self.single_bytes)} on one device."
        )


def get_worker_peaks(graph: Graph, plan: PartitionPlan, limit: str | int | None = None) -> WorkerPeaks:
    """Estimate what each worker takes.

    Args:
        graph: the step.
        plan: its partition.
        limit: what each worker may take, such as `"8GiB"` or `"40%"` of the step on one device.

    Raises:
        StowageError: `graph` is no graph, the plan is for another graph, or the limit is invalid.
    """
    require_graph(graph)
    from planner.partition import worker_memory

    require_same_graph(graph, plan)
    single = step_peak(graph)
    memory = worker_memory(graph, plan)
    alike: dict[object, list[int]] = {}
    for worker, peak in enumerate(memory.peak_bytes):
        alike.setdefault(worker if plan.workers <= _FEW else bytes_label(peak), []).append(worker)
    rows = [
        WorkerRow(
            tuple(workers), max(memory.peak_bytes[worker] for worker in workers),
            max(memory.persistent_bytes[worker] for worker in workers),
        )
        for workers in alike.values()
    ]  # fmt: skip
    allowed = None if limit is None else parse_budget(limit, single, "memory limit")
    return WorkerPeaks(graph.name, tuple(rows), single, allowed)
