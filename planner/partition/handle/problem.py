"""What is partitioned, over how many workers and within which limits, and one solution of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import prod

from planner.graph import Graph
from planner.machine import Machine, OpClass, mesh_levels, op_class
from planner.partition.baselines import BASELINES
from planner.partition.coarse import CoarseGraph, MergedOp, Variant
from planner.partition.handle.meshes import factorizations
from planner.partition.handle.pins import (
    REPLICATED,
    OpPin,
    Pinned,
    Pins,
    assignment,
    axis_name,
    check_pins,
    combined,
    resolve_pins,
)
from planner.partition.handle.worker_memory import WorkerMemory, worker_memory
from planner.partition.op_strategies import SplittableOp
from planner.partition.plan import PartitionPlan, division_of
from planner.partition.search import Partitioning, Pin, optimize, recurse
from planner.partition.strategy import Replicated

Solver = Callable[..., Partitioning]
#: How a mesh is searched: level after level, or all levels at once.
SOLVERS: dict[str, Solver] = {"recursion": recurse, "exact": optimize}


@dataclass(frozen=True, slots=True)
class PartitionTrial:
    """What one evaluation solves.

    Args:
        mesh: into how many parts each level cuts.
        solver: a name in `SOLVERS` or `BASELINES`.
        price: the cost of a byte that a worker stores, in bytes moved; None if nothing is replicated that can be split.
    """

    mesh: tuple[int, ...]
    solver: str
    price: float | None

    @property
    def method(self) -> str:
        """How it is solved, in words: `exact over 2 x 4`."""
        mesh = " x ".join(map(str, self.mesh)) or "1 worker"
        return f"{self.solver} over {mesh}{'' if self.price is None else ' with copies'}"


@dataclass(frozen=True)
class Solution:
    """A partition with what it costs.

    Args:
        plan: the partition.
        partitioning: the same in terms of the coarse graph.
        trial: how it was found.
        cost: what the search makes least: the bytes moved, those over slow links weighted.
        memory: what each worker takes.
        bound: lower bound on the cost of any partition over the same mesh, plus the price of what is stored; None if
            none is known.
    """

    plan: PartitionPlan
    partitioning: Partitioning
    trial: PartitionTrial
    cost: float
    memory: WorkerMemory
    bound: float | None

    @property
    def bytes_moved(self) -> float:
        """Bytes that all workers together receive in a step."""
        return self.plan.bytes_moved


@dataclass(frozen=True, eq=False)
class PartitionProblem:
    """What is partitioned.

    Args:
        graph: the step.
        ops: its ops with their strategies.
        coarse: its coarse graph.
        workers: how many there are.
        machine: what they are; its slow links make bytes more expensive. None if all links are alike.
        memory: bytes that each worker may take; None to take as little as splitting gives.
        pins: what is fixed, by name.
        mesh: the levels that are tried first, and the only ones if a pin has a split for each.
    """

    graph: Graph
    ops: tuple[SplittableOp, ...]
    coarse: CoarseGraph
    workers: int
    machine: Machine | None
    memory: int | None
    pins: Pins
    mesh: tuple[int, ...]

    def resolved(self, mesh: Sequence[int]) -> tuple[Pinned, ...]:
        """What the pins stand for on a mesh.

        Raises:
            StowageError: one of them cannot be met.
        """
        return resolve_pins(self.coarse, mesh, self.pins)

    def weights(self, mesh: Sequence[int]) -> tuple[float, ...]:
        """The cost of a byte at each level of a mesh; 1 over the fastest links."""
        if self.machine is None or not mesh:
            return (1.0,) * len(mesh)
        speeds = [level.link.bandwidth for level in mesh_levels(self.machine, mesh)]
        return tuple(max(speeds) / speed for speed in speeds)

    def other_meshes(self) -> tuple[tuple[int, ...], ...]:
        """Every other mesh, but those of which a level has some of its workers within a host and others not."""
        meshes = (mesh for mesh in factorizations(self.workers) if mesh != self.mesh)
        if self.machine is None:
            return tuple(meshes)
        host = prod(level.workers for level in mesh_levels(self.machine, self.mesh) if not level.between_hosts)
        return tuple(mesh for mesh in meshes if host in (prod(mesh[level:]) for level in range(len(mesh) + 1)))

    @property
    def by_level(self) -> bool:
        """Whether a pin has a split for each level, so that no other mesh can be tried."""
        return any(not isinstance(value, int | str) for value in self.pins.values())

    def with_pins(self, pins: Pins) -> PartitionProblem:
        """The same with other pins; what was found out about the graph is kept.

        Raises:
            StowageError: they cannot be met.
        """
        other = replace(self, pins=pins)
        check_pins(other.coarse, other.mesh, other.resolved(other.mesh))
        return other

    def with_memory(self, memory: int | None) -> PartitionProblem:
        """The same with another memory limit in bytes; what was found out about the graph is kept."""
        return replace(self, memory=memory)

    def solve(self, trial: PartitionTrial) -> Solution:
        """Find the partition with the fewest bytes.

        Raises:
            StowageError: a pin cannot be met on this mesh, or a baseline is not possible.
        """
        if trial.solver in BASELINES:
            found = BASELINES[trial.solver](self.coarse, self.workers)
            return self._solution(replace(trial, mesh=found.mesh), found)
        return self._solution(trial, self._search(trial))

    def resolve_plan(self, plan: PartitionPlan) -> Solution:
        """The partition that stores every tensor and divides every op as a plan does.

        Args:
            plan: for this graph and mesh.

        Raises:
            StowageError: a tensor cannot be split so, or an op not be divided.
        """
        divisions = {id(merged): {*chain(*(plan.ops[op] for op in merged.ops))} for merged in self.coarse.merged}
        pins: dict[int, Sequence[Pin]] = {}
        for number, group in enumerate(self.coarse.groups):
            first = min(group.members)
            labels: dict[object, Pin] = {split: label for label, split in self.coarse.labels[first]}
            pins[number] = tuple(
                REPLICATED if isinstance(state, Replicated) else labels.get(state) for state in plan.tensors[first]
            )
        solver = list(SOLVERS)[-1]
        found = SOLVERS[solver](
            self.coarse, plan.mesh, pins=pins,
            allowed_variant=lambda merged, variant: division_of(variant) in divisions[id(merged)],
        )  # fmt: skip
        return self._solution(PartitionTrial(plan.mesh, solver, None), found)

    def _solution(self, trial: PartitionTrial, found: Partitioning) -> Solution:
        plan = PartitionPlan.of(found, method=trial.method)
        cost = sum(w * moved for w, moved in zip(self.weights(plan.mesh), plan.bytes_per_level, strict=True))
        return Solution(plan, found, trial, cost, worker_memory(self.graph, plan, self.ops), found.bound)

    def _search(self, trial: PartitionTrial) -> Partitioning:
        mesh, solver = trial.mesh, SOLVERS[trial.solver]
        weights = self.weights(mesh)
        pinned = self.resolved(mesh)
        check_pins(self.coarse, mesh, pinned)
        axes = {pin.merged: pin.axis for pin in pinned if isinstance(pin, OpPin)}
        numbers = {id(merged): number for number, merged in enumerate(self.coarse.merged)}

        def allowed_variant(merged: MergedOp, variant: Variant) -> bool:
            axis = axes.get(numbers[id(merged)])
            if axis is not None:
                return axis_name(variant) == axis
            return variant.strategy is not None or id(merged) not in self._divided

        wanted = combined(pinned, mesh)
        several = {group for group, labels in wanted.items() if any(each and len(each) > 1 for each in labels)}
        exact: dict[int, Sequence[Pin]] = {}
        for group, labels in wanted.items():
            if group not in several:
                exact[group] = tuple(_only(each) for each in labels)
        if several:  # a dimension of several atoms: those that serve best when nothing is replicated
            open_labels = {
                group: frozenset().union(*(each for each in wanted[group] if each is not None)) for group in several
            }
            first = solver(
                self.coarse, mesh, weights=weights, pins=exact, allowed_variant=allowed_variant,
                allowed=lambda group, label: group not in open_labels or label in open_labels[group],
            )  # fmt: skip
            for group in several:
                chosen = tuple(level.labels[group] for level in first.levels)
                fits = all(each is None or label in each for each, label in zip(wanted[group], chosen, strict=True))
                pins = chosen if fits else assignment(self.coarse.groups[group], mesh, wanted[group])
                exact[group] = tuple(
                    None if each is None else label  # type: ignore[misc]
                    for each, label in zip(wanted[group], pins or (), strict=True)
                )
        return solver(
            self.coarse, mesh, weights=weights, pins=exact, allowed_variant=allowed_variant,
            replicate=trial.price,
        )  # fmt: skip

    @cached_property
    def _divided(self) -> frozenset[int]:
        """The merged ops that have most of the arithmetic, so that workers must share it."""
        graph = self.graph
        return frozenset(
            id(merged) for merged in self.coarse.merged
            if op_class(graph, graph.ops[merged.ops[0]]) is not OpClass.MEMORY
        )  # fmt: skip


def _only(labels: frozenset[int | None] | None) -> Pin:
    if labels is None:
        return None
    (label,) = labels
    return REPLICATED if label is None else label
