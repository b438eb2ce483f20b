"""PartitionPlan: how every tensor of a step is spread over workers and how every op is divided, as plain data.

Workers form a mesh: a worker's number, written in the mixed radix of the mesh with the outermost digit first, gives its
place at each level. At a level a tensor is stored in one state; an op divides the values of one index variable of its
description, takes partial sums, or is computed by every worker. What an op needs of an input beyond its stored state is
fetched before it runs, and what it leaves of an output is brought to its stored state when it is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from planner.errors import StowageError
from planner.graph import fingerprint
from planner.partition.coarse import Variant
from planner.partition.search import Partitioning
from planner.partition.strategy import Partial, Split, State
from planner.units import format_bytes


@dataclass(frozen=True, slots=True)
class AxisDivision:
    """An op computes on each worker what belongs to a part of the values of one index variable.

    Args:
        axis: the variable's name in the op's description.
        outer, size, inner: the variable's range seen in the shape (outer, size, inner), of which the middle one is cut;
            contiguous chunks have an outer and inner of 1.
    """

    axis: str
    outer: int
    size: int
    inner: int


@dataclass(frozen=True, slots=True)
class LinearDivision:
    """Every worker runs the whole op on its partial sums.

    Args:
        inputs: the places of the inputs that are partial sums; the op is linear in them.
    """

    inputs: tuple[int, ...]


#: How an op is divided at one level; None if every worker computes everything.
Division = AxisDivision | LinearDivision | None


@dataclass(frozen=True)
class PartitionPlan:
    """How a step is split over workers; plain data, safe to load from an untrusted source.

    Args:
        fingerprint: of the graph that it is for.
        mesh: into how many parts each level cuts, the outermost level (the slowest links) first.
        tensors: per tensor and level, its state; for a view its state as a view, None where no split of the view is the
            split of the tensor that it views.
        ops: per op and level, how it is divided.
        bytes_per_level: what all workers together receive in a step; whole numbers where they are whole.
        method: which search made it.
        seed: of the search; None if it used none.
        bound: no partition that the search could choose costs less; None if that is not known.
        gap: by which share of its cost it may be too expensive; None if that is not known.
    """

    fingerprint: str
    mesh: tuple[int, ...]
    tensors: tuple[tuple[State | None, ...], ...]
    ops: tuple[tuple[Division, ...], ...]
    bytes_per_level: tuple[float, ...]
    method: str = "recursion"
    seed: int | None = None
    bound: float | None = None
    gap: float | None = None

    def __repr__(self) -> str:
        """One line, because all states would fill pages."""
        return f"<PartitionPlan: {self.describe()}>"

    @property
    def workers(self) -> int:
        """How many there are."""
        return prod(self.mesh)

    @property
    def bytes_moved(self) -> float:
        """Bytes that all workers together receive in a step."""
        return sum(self.bytes_per_level)

    def describe(self) -> str:
        """Its workers, what is split and what moves, in one line."""
        split = sum(any(isinstance(state, Split) for state in states) for states in self.tensors)
        levels = f" ({' x '.join(map(str, self.mesh))})" if len(self.mesh) > 1 else ""
        workers = f"{self.workers:,} worker{'s' if self.workers != 1 else ''}{levels}"
        moved = f"{format_bytes(self.bytes_moved)} received in a step"
        return f"{workers}, {split:,} of {len(self.tensors):,} tensors split, {moved}"

    def place(self, worker: int) -> tuple[int, ...]:
        """A worker's place at each level.

        Raises:
            StowageError: there is no such worker.
        """
        if not 0 <= worker < self.workers:
            raise StowageError(f"there is no worker {worker}: workers are numbered 0 to {self.workers - 1}")
        digits = []
        for workers in reversed(self.mesh):
            worker, digit = divmod(worker, workers)
            digits.append(digit)
        return tuple(reversed(digits))

    def tensor_states(self, tensor: int) -> tuple[State | None, ...]:
        """Per level, how a tensor is spread; see `tensors`."""
        return self.tensors[tensor]

    @classmethod
    def of(cls, found: Partitioning, *, method: str = "recursion", seed: int | None = None) -> PartitionPlan:
        """What a search has found, as a plan.

        Args:
            found: a partition of a coarse graph.
            method: the name of the search.
            seed: of the search.
        """
        graph = found.coarse.graph
        by_labels: dict[object, tuple[State | None, ...]] = {}
        tensors = []
        for tensor in graph.tensors:
            states = found.tensor_states(tensor.id)
            tensors.append(by_labels.setdefault(states, states))
        known: dict[tuple[int, ...], tuple[Division, ...]] = {}
        variants: list[tuple[Variant, ...]] = []  # kept, so that their numbers are not given to others
        ops = []
        for op in graph.ops:
            chosen = found.op_variants(op.id)
            key = tuple(map(id, chosen))
            if key not in known:
                variants.append(chosen)
                known[key] = tuple(division_of(variant) for variant in chosen)
            ops.append(known[key])
        moved = tuple(_whole(level.bytes_moved) for level in found.levels)
        return cls(
            fingerprint(graph), found.mesh, tuple(tensors), tuple(ops), moved, method, seed, found.bound, found.gap
        )


def division_of(variant: Variant) -> Division:
    """How a variant that the search chose divides an op."""
    strategy = variant.strategy
    if strategy is None:
        return None
    if strategy.axis is None:
        return LinearDivision(tuple(p for p, state in enumerate(strategy.inputs) if isinstance(state, Partial)))
    axis = strategy.axis
    if variant.atom < 0:
        return AxisDivision(axis.name, 1, axis.size, 1)
    whole = next(state for state in strategy.inputs + strategy.outputs if isinstance(state, Split))
    part = next(state for state in variant.states if isinstance(state, Split))
    inner = part.inner // whole.inner
    return AxisDivision(axis.name, axis.size // (part.size * inner), part.size, inner)


def _whole(number: float) -> float:
    return int(number) if number == int(number) else float(number)
