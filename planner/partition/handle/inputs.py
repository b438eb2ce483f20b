"""Checks the inputs of a search for partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from planner.cancel import CancelToken
from planner.errors import StowageError, given_type
from planner.graph import Graph
from planner.machine import Machine, mesh_levels, usable_bytes
from planner.memory import parse_budget, step_peak
from planner.partition.coarse import coarsen
from planner.partition.handle.pins import Pins, check_pins
from planner.partition.handle.problem import PartitionProblem
from planner.partition.op_strategies import splittable_ops
from planner.partition.search import mesh_of

#: More workers than any machine has; every one has a row in a plan.
MOST_WORKERS = 4096
_HUGE = 1 << 60


def check_inputs(
    graph: Graph, workers: int, machine: Machine | None, memory: str | int | None, seed: int, pins: Pins | None
) -> None:
    """Run the checks that take no time.

    Args:
        graph, workers, machine, memory, seed, pins: as in `search_partition`.

    Raises:
        StowageError: one of them is not what it should be.
    """
    if not isinstance(graph, Graph):
        raise StowageError(f"a partition is of a graph, not {given_type(graph)}; pass planner.capture(step)")
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise StowageError(f"workers must be a whole number, at least 1, got {workers!r}")
    if workers > MOST_WORKERS:
        raise StowageError(f"{workers:,} workers are too many: a step is split over {MOST_WORKERS:,} at most")
    if machine is not None and not isinstance(machine, Machine):
        raise StowageError(f'{machine!r} is not a machine; pass planner.machine("h100x8"), for example')
    if machine is not None:
        mesh_levels(machine, workers)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise StowageError(f"seed must be a whole number of 0 or more, got {seed!r}")
    check_pin_form(pins or {})
    if memory is not None:
        parse_budget(memory, _HUGE, "memory limit")


def check_pin_form(pins: Pins) -> None:
    """Refuse what is not a mapping of names to splits.

    Raises:
        StowageError: it is not.
    """
    if not isinstance(pins, Mapping):
        raise StowageError(f'pins are given by name, as in {{"layers.0.weight": 0}}, not as {given_type(pins)}')
    for name, value in pins.items():
        levels = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        named = isinstance(name, str) and (levels is value or value is not None)
        if not named or not all(_is_split(each) for each in levels):
            raise StowageError(
                f'the pin {name!r}: {value!r} is not a name with a dimension, "replicated" or an axis, or a list with '
                "one of them, or None, for each level"
            )


def memory_limit(graph: Graph, memory: str | int | None, stop: CancelToken | None = None) -> int | None:
    """What a worker may take, in bytes; None without a limit.

    Raises:
        StowageError: it is not an amount of memory.
        Cancelled: cancellation was requested.
    """
    if memory is None:
        return None
    share = isinstance(memory, str) and memory.strip().endswith("%")
    return parse_budget(memory, step_peak(graph, stop=stop) if share else 1, "memory limit")


def _is_split(value: object) -> bool:
    return value is None or isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool))


def make_partition_problem(
    graph: Graph,
    workers: int | tuple[int, ...],
    machine: Machine | None,
    memory: str | int | None,
    pins: Pins | None,
    stop: CancelToken | None = None,
) -> PartitionProblem:
    """Find the strategies of all ops and the groups of all tensors, and resolve the pins.

    Args:
        graph, machine, memory, pins: as in `search_partition`.
        workers: how many there are, or into how many parts each level cuts.
        stop: cancels the call.

    Raises:
        StowageError: an input is wrong, or the pins cannot be met.
        Cancelled: cancellation was requested.
    """
    count = workers if isinstance(workers, int) else prod(workers)
    check_inputs(graph, count, machine, memory, 0, pins)
    limit = memory_limit(graph, memory, stop)
    if limit is None and machine is not None:
        limit = usable_bytes(machine)
    mesh = mesh_of(workers)
    if machine is not None and isinstance(workers, int):
        mesh = tuple(level.workers for level in mesh_levels(machine, workers))
    ops = splittable_ops(graph)
    problem = PartitionProblem(graph, ops, coarsen(graph, ops), count, machine, limit, dict(pins or {}), mesh)
    check_pins(problem.coarse, problem.mesh, problem.resolved(problem.mesh))
    return problem
