"""What a session remembers of partitions: the search, what is pinned, and everything that was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from planner.errors import StowageError
from planner.graph import Graph
from planner.units import bytes_label
from widgets.info import get_level_bytes, get_partition_splits, get_worker_peaks
from widgets.messages import FoundPartition
from widgets.session.partition.worker_state import WorkerViews

if TYPE_CHECKING:
    from planner.partition import PartitionPlan, PartitionSearch

Value = int | str | None
#: What is fixed: by name of a tensor, for each level a dimension, `"replicated"`, or None for what the search chooses.
Pins = Mapping[str, Sequence[Value]]

#: What the best partition is kept for: the number of workers, what each may take, and the pins.
Key = tuple[int, int | None, str]

_WORKERS = 8
_MOST_ROWS = 80


@dataclass(eq=False)
class PartitionState:
    """The partitions of a session; hold the message bus's lock to read or change it.

    Attributes:
        workers: how many there are.
        pins: what is fixed, by name of a tensor, for each level.
        memory: what each worker may take, in bytes; None for as little as splitting gives.
        search: the last search for as many workers, None before there is one.
        plan, shown: the partition that is shown, with what the page shows of it.
        storage: whose blocks are shown; -1 before one was chosen.
        views: the workers that were looked at.
    """

    workers: int = _WORKERS
    pins: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    memory: int | None = None
    search: PartitionSearch | None = None
    plan: PartitionPlan | None = None
    shown: FoundPartition | None = None
    storage: int = -1
    views: WorkerViews = field(default_factory=WorkerViews)
    _found: dict[Key, tuple[PartitionPlan, FoundPartition, dict[str, tuple[Value, ...]]]] = field(default_factory=dict)

    @property
    def listed(self) -> list[FoundPartition]:
        """The best of each number of workers and pins, as found one after another."""
        return [found for _, found, _ in self._found.values()]

    def choose(self, workers: int, pins: Pins | None) -> None:
        """Choose what the next search is for.

        Args:
            workers: how many there are.
            pins: what is fixed; None for what it was, if there are as many workers.

        Raises:
            StowageError: there can be no so many workers.
        """
        if workers < 2:
            raise StowageError(f"a partition needs 2 workers or more, got {workers}")
        if workers != self.workers:
            self.workers, self.search, self.pins = workers, None, {}
        if pins is not None:
            self.pins = {name: tuple(values) for name, values in pins.items()}

    def pinned(self, graph: Graph, row: int, level: int, value: Value) -> dict[str, tuple[Value, ...]]:
        """What is fixed once the tensors of a row are fixed at a level, too, or are left to the search again."""
        if self.shown is None or prod(self.shown.splits.mesh) != self.workers:
            raise StowageError("there is no partition yet whose splits could be pinned; search for one first")
        mesh = self.shown.splits.mesh
        if self.search is not None and self.search.best is not None:
            mesh = self.search.problem.mesh
        levels = range(len(mesh)) if mesh != self.shown.splits.mesh else [level]  # levels of another mesh are others
        pins = dict(self.pins)
        free: tuple[Value, ...] = (None,) * len(mesh)
        for tensor in self.shown.splits.rows[row].tensors:
            name = graph.tensors[tensor].name
            values = list(pins.get(name, free))
            for each in levels:
                values[each] = value
            pins[name] = tuple(values)
        return {name: values for name, values in pins.items() if values != free}

    def describe(self, graph: Graph, plan: PartitionPlan) -> FoundPartition:
        """What the page shows of a partition for the present pins; takes a moment for a large graph."""
        splits = get_partition_splits(graph, plan, _MOST_ROWS)
        storages = tuple(
            tuple(dict.fromkeys(graph.tensors[tensor].storage for tensor in row.tensors)) for row in splits.rows
        )
        free = self._found.get((plan.workers, self.memory, ""))
        pins = sum(value is not None for values in self.pins.values() for value in values)
        before = self._found.get(self._key(plan))
        return FoundPartition(
            before[1].number if before else len(self._found) + 1, pins, splits, get_worker_peaks(graph, plan), storages,
            get_level_bytes(graph, plan).bytes, None if plan.gap is None else 100 * plan.gap,
            plan.bytes_moved - free[0].bytes_moved if free and pins else None, self.memory,
        )  # fmt: skip

    def add(self, plan: PartitionPlan, found: FoundPartition) -> None:
        """Remember a partition for the present pins, in place of the one before, and show it."""
        self._found[self._key(plan)] = plan, found, dict(self.pins)
        self.plan, self.shown = plan, found

    def show(self, number: int) -> bool:
        """Show a partition that was found earlier; returns whether there is one of this number."""
        for plan, found, pins in self._found.values():
            if found.number == number:
                if plan.workers != self.workers:
                    self.search = None
                self.plan, self.shown, self.pins, self.workers = plan, found, dict(pins), plan.workers
                self.memory = found.limit_bytes
                return True
        return False

    def pins_by_row(self, graph: Graph) -> dict[int, tuple[Value, ...]]:
        """What is fixed for the rows of the partition that is shown."""
        if self.shown is None or prod(self.shown.splits.mesh) != self.workers:
            return {}
        names = [graph.tensors[row.tensors[0]].name for row in self.shown.splits.rows]
        levels = len(self.shown.splits.mesh)
        return {row: self.pins[name][:levels] for row, name in enumerate(names) if name in self.pins}

    def largest(self) -> int:
        """The storage of the largest tensor that is shown."""
        assert self.shown is not None
        rows = self.shown.splits.rows
        most = max(range(len(rows)), key=lambda row: rows[row].bytes / len(rows[row].tensors))
        return self.shown.storages[most][0]

    def sentence(self, state: str) -> str:
        """How a search has ended."""
        if self.shown is None:
            return ""
        gap, moved = self.shown.gap_percent, bytes_label(sum(self.shown.bytes_per_level))
        if gap is not None and gap <= 0:
            return f"No partition {'with these pins ' if self.pins else ''}moves less than {moved} a step."
        bound = "" if gap is None else f" at most {gap:.1f} % more than the least possible,"
        return f"{moved} a step,{bound} {'the time is up' if state == 'paused' else 'nothing is left to try'}."

    def _key(self, plan: PartitionPlan) -> Key:
        return plan.workers, self.memory, repr(sorted(self.pins.items())) if self.pins else ""
