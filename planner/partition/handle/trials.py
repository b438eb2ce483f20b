"""What a search for partitions tries, one trial after another; each depends on what the last ones gave."""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import dataclass
from math import inf, sqrt

from planner.partition.baselines import BASELINES
from planner.partition.handle.problem import SOLVERS, PartitionProblem, PartitionTrial

#: The first price of a stored byte that is tried between none and any, the factor of the next ones, how many are tried,
#: and how many where it is about known.
_PRICE, _FACTOR, _PRICES, _FEW_PRICES = 1.0, 16.0, 8, 3
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
    best, low, high = inf, 0.0, inf
    if problem.memory is None or around is None or around == inf:
        without = yield PartitionTrial(mesh, solver, None)
        if without.cost is None or problem.memory is None:
            return inf if without.cost is None else without.cost, inf
        if without.peak_bytes > problem.memory:  # copies take more memory yet
            return inf, inf
        best = without.cost
    price = 0.0 if around is None or around == inf else around
    for _ in range(_PRICES if around is None else _FEW_PRICES):
        outcome = yield PartitionTrial(mesh, solver, price)
        if outcome.cost is None:
            break
        if outcome.peak_bytes <= problem.memory:
            best, high = min(best, outcome.cost), price
        else:
            low = price
        if high == 0.0:
            break
        if high == inf:
            price = _PRICE if low == 0.0 else low * _FACTOR
        else:
            price = sqrt(low * high) if low else high / _FACTOR
    return best, high
