"""Bytes moved against memory per worker: how much memory buys how much less communication."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.partition.handle.problem import SOLVERS, PartitionProblem, PartitionTrial
from planner.partition.plan import PartitionPlan
from planner.progress import ShowProgress, reporting

#: Prices of a stored byte, in bytes moved; None replicates nothing that can be split.
PRICES = (None, 64.0, 16.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125, 1 / 32, 0.0)


@dataclass(frozen=True)
class MemoryPoint:
    """A partition that no other beats in both.

    Args:
        peak_bytes: memory of the worker that takes the most.
        bytes_moved: bytes that all workers together receive in a step.
        plan: the partition.
    """

    peak_bytes: int
    bytes_moved: float
    plan: PartitionPlan


def sweep_memory(problem: PartitionProblem, progress: ShowProgress = True) -> tuple[MemoryPoint, ...]:
    """Solve at several prices of memory; the points are in order of memory, and each moves fewer bytes than the last.

    Args:
        problem: what is partitioned; its memory limit does not count.
        progress: as in `PartitionSearch.pareto`.
    """
    problem, solver = replace(problem, memory=None), list(SOLVERS)[-1]
    points = []
    with reporting(progress) as report:
        for number, price in enumerate(PRICES):
            report(number / len(PRICES), "weighing memory against bytes moved")
            solution = problem.solve(PartitionTrial(problem.mesh, solver, price))
            points.append(MemoryPoint(solution.memory.most, solution.bytes_moved, solution.plan))
    points.sort(key=lambda point: (point.peak_bytes, point.bytes_moved))
    front: list[MemoryPoint] = []
    for point in points:
        if not front or point.bytes_moved < front[-1].bytes_moved:
            front.append(point)
    return tuple(front)
