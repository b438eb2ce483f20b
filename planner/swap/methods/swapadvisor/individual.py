"""Individuals of the genetic search, how two breed four, and their form as plain data."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.swap.methods import checkpoint_validation as valid
from planner.swap.methods.swapadvisor.allocation_gene import (
    Allocation,
    average_counts,
    cross_classes,
    cross_counts,
    mutate_classes,
    mutate_counts,
)
from planner.swap.methods.swapadvisor.pool import Demand, fit_counts
from planner.swap.methods.swapadvisor.schedule_gene import cross_schedules, mutate_schedule
from planner.swap.problem.problem import Ints, Problem

Genes = tuple[Ints, Allocation]


@dataclass(frozen=True, eq=False)
class Individual:
    """An order, a pool, and the step time with them in seconds; infinite if the pool is infeasible."""

    order: Ints
    allocation: Allocation
    seconds: float


@dataclass(frozen=True)
class Rates:
    """How genes mutate: the probability per op, size and class, and the Gaussian of the counts.

    `width` is its standard deviation as a share of the old count and `spread` the least, in objects.
    """

    mutation: float
    width: float
    spread: float


def random_schedule(problem: Problem, order: Ints, random: np.random.Generator) -> Ints:
    """A random order of the ops: each is drawn from those that are ready."""
    uniforms = random.random((2, len(order)))
    return mutate_schedule(order, problem.predecessors, problem.successors, 1.0, uniforms)


def breed_schedules(
    problem: Problem, first: Ints, second: Ints, rates: Rates, random: np.random.Generator
) -> tuple[Ints, ...]:
    """Two children of two orders: crossed at a random cut both ways, then mutated."""
    cut = int(random.integers(0, len(first) + 1))
    return tuple(
        mutate_schedule(
            cross_schedules(one, other, cut),
            problem.predecessors, problem.successors, rates.mutation, random.random((2, len(first))),
        )
        for one, other in ((first, second), (second, first))
    )  # fmt: skip


def breed_allocations(
    demand: Demand, first: Allocation, second: Allocation, rates: Rates, random: np.random.Generator
) -> tuple[Allocation, ...]:
    """Two children of two pools: crossed at a random cut both ways, then mutated, then repaired."""
    sizes = len(demand.sizes)
    cut = int(random.integers(0, sizes + 1))
    children = []
    for one, other in ((first, second), (second, first)):
        classes = cross_classes(one.classes, other.classes, cut)
        counts = cross_counts(one, other, cut, classes)
        mutated = mutate_classes(classes, random.random(max(0, sizes - 1)) < rates.mutation)
        counts = average_counts(counts[classes], mutated)
        chosen = random.random(len(counts)) < rates.mutation
        counts = mutate_counts(counts, chosen, random.standard_normal(len(counts)), rates.width, rates.spread)
        children.append(fit_counts(demand, mutated, counts))
    return tuple(children)


def to_data(individuals: list[Individual]) -> dict[str, Any]:
    """Individuals as JSON data; an order that several share is written once, as base64 of little-endian int32."""
    orders: dict[str, int] = {}
    rows = []
    for one in individuals:
        text = b64encode(one.order.astype("<i4").tobytes()).decode()
        seconds = one.seconds if np.isfinite(one.seconds) else None
        place = orders.setdefault(text, len(orders))
        rows.append([place, one.allocation.classes.tolist(), one.allocation.counts.tolist(), seconds])
    return {"orders": list(orders), "individuals": rows}


def from_data(problem: Problem, demand: Demand, data: dict[str, Any]) -> list[Individual]:
    """Individuals from what `to_data` returned, for the same problem.

    Raises:
        LookupError, TypeError, ValueError: the data are not individuals for it.
    """
    orders = [valid.order(problem, np.frombuffer(b64decode(text), "<i4").tolist()) for text in data["orders"]]
    return [
        Individual(
            orders[valid.whole(place, 0, len(orders) - 1)],
            _pool(demand, classes, counts),
            valid.seconds(seconds),
        )
        for place, classes, counts, seconds in data["individuals"]
    ]


def _pool(demand: Demand, classes: Any, counts: Any) -> Allocation:
    of_sizes = valid.wholes(classes, len(demand.sizes), 0, len(demand.sizes) - 1)
    if len(of_sizes) and (of_sizes[0] != 0 or not np.isin(np.diff(of_sizes), (0, 1)).all()):
        raise ValueError("classes do not rise by 0 or 1 from 0 on")
    number = int(of_sizes[-1]) + 1 if len(of_sizes) else 0
    return Allocation(of_sizes, valid.wholes(counts, number, 1, max(1, int(demand.members.sum()))))
