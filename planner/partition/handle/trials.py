"""What a search for partitions tries, one trial after another; each depends on what the last ones gave."""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import dataclass
from math import inf, sqrt

from planner.partition.baselines import BASELINES
from planner.partition.handle.problem import SOLVERS, PartitionProblem, PartitionTrial, Solution

#: The first price of a stored byte that is tried between none and any, the factor of the next ones, how many are tried,
#: and how many where it is about known.
_PRICE, _FACTOR, _PRICES, _FEW_PRICES = 1.0, 4.0, 8, 3
#: A price at which nothing is copied that can be split: if that is too much, other prices do not help.
_DEAR = 64.0
#: Meshes whose recursion is this much worse than the best partition are not solved exactly.
_HOPELESS = 1.5
#: Most meshes that are tried; a number of workers with more is tried with some of them at random.
_MESHES = 64


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial gave: its cost, the memory of the worker that takes the most, and a bound if there is one.

    What is not possible over its mesh has none of these.
    """

    cost: float | None
    peak_bytes: int
    bound: float | None = None


#: Trials of one mesh and solver, which end with the least cost and the price of memory at which it was reached.
MeshTrials = Generator[PartitionTrial, Outcome, tuple[float, float]]


def trials(problem: PartitionProblem, seed: int) -> Generator[PartitionTrial, Outcome, None]:
    """Yield what to try next, and be sent what it gave; the same outcomes lead to the same trials.

    The recursion comes first, for an answer at once; then all levels together; then the baselines; then other meshes,
    each by recursion, and the promising ones with all levels together.

    Args:
        problem: what is partitioned.
        seed: for the order of meshes.
    """
    exact = list(SOLVERS)[1:]
    best, price = yield from _within_memory(problem, problem.mesh, "recursion")
    for solver in exact:
        best = min(best, (yield from _within_memory(problem, problem.mesh, solver, price))[0])
    for baseline in BASELINES if problem.workers > 1 else ():
        yield PartitionTrial(problem.mesh, baseline, None)
    if problem.by_level:
        return
    meshes = list(problem.other_meshes())
    random.Random(seed).shuffle(meshes)
    found = []
    for mesh in meshes[:_MESHES]:
        found.append((*(yield from _within_memory(problem, mesh, "recursion")), mesh))
        best = min(best, found[-1][0])
    for reached, price, mesh in sorted(found):
        for solver in exact if reached <= _HOPELESS * best else ():
            best = min(best, (yield from _within_memory(problem, mesh, solver, price))[0])


def solve_within_memory(problem: PartitionProblem, mesh: tuple[int, ...], price: float | None) -> Solution:
    """Find the partition over a mesh with the least cost that a memory limit allows, if there is one.

    Args:
        problem: what is partitioned.
        mesh: into how many parts each level cuts.
        price: about the price of a stored byte at which the limit is met; None if that is not known.

    Returns:
        The partition, or the one that takes the least memory of those that were tried if none is within the limit.

    Raises:
        StowageError: a pin cannot be met on this mesh.
    """
    tried: list[Solution] = []
    trying = _within_memory(problem, mesh, list(SOLVERS)[-1], price)
    trial = next(trying)
    while True:
        tried.append(problem.solve(trial))
        try:
            trial = trying.send(Outcome(tried[-1].cost, tried[-1].memory.most))
        except StopIteration:
            break
    limit = problem.memory
    fitting = [found for found in tried if limit is None or found.memory.most <= limit]
    return min(fitting, key=lambda found: found.cost) if fitting else min(tried, key=lambda found: found.memory.most)


def _within_memory(
    problem: PartitionProblem, mesh: tuple[int, ...], solver: str, around: float | None = None
) -> MeshTrials:
    """Try a mesh; with a memory limit, at the prices of memory around the one from which on it is met.

    Args:
        problem: what is partitioned.
        mesh: into how many parts each level cuts.
        solver: a name in `SOLVERS`.
        around: about that price, if it is known.
    """
    best, low, high, price = inf, 0.0, inf, around or 0.0
    if problem.memory is None or around is None or around == inf:
        without = yield PartitionTrial(mesh, solver, None)
        if without.cost is None or problem.memory is None:
            return inf if without.cost is None else without.cost, inf
        price = 0.0
        if without.peak_bytes <= problem.memory:  # else copies may still fit, because less is fetched at once
            best = without.cost
    for _ in range(_PRICES if around is None else _FEW_PRICES):
        outcome = yield PartitionTrial(mesh, solver, price)
        if outcome.cost is None:
            break
        if outcome.peak_bytes <= problem.memory:
            best, high = min(best, outcome.cost), price
        else:
            low = price
        if high == 0.0 or (high == inf and low >= _DEAR):
            break
        if high == inf:
            price = _PRICE if low == 0.0 else low * _FACTOR
        else:
            price = sqrt(low * high) if low else high / _FACTOR
    return best, high
