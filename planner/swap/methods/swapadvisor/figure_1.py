"""The first figure of SwapAdvisor (ASPLOS 2020): two schedules of five ops, neither of which is best in both pools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from planner.graph import GraphBuilder, Kind
from planner.machine import Device, Link, Machine
from planner.swap.draft.absences import NEVER
from planner.swap.methods.swapadvisor.allocation_gene import Allocation
from planner.swap.methods.swapadvisor.control_edges import run_edges
from planner.swap.methods.swapadvisor.pool import demand_of, pool_of
from planner.swap.methods.swapadvisor.pool_planner import PoolPlanner, pool_planner
from planner.swap.problem.problem import Ints, Problem, build_problem

Stream = Literal["compute", "out", "in"]

_MB = 1 << 20
_OPS = {
    "Data": ((), "A0"), "Conv1": (("A0", "W1"), "A1"), "Conv2": (("A0", "W2"), "A2"),
    "Conv3": (("A2", "W3"), "A3"), "Conv4": (("A3", "W4"), "A4"), "Concat": (("A1", "A4"), "A5"),
}  # fmt: skip
_LARGE = ("A2", "A5")  # of 2 MB; all others of 1
_NEEDED = ("A4", "A3", "A2", "A1", "A0")
_SCHEDULES = {
    "left branch first": ("Data", "Conv1", "Conv2", "Conv3", "Conv4", "Concat"),
    "right branch first": ("Data", "Conv2", "Conv3", "Conv4", "Conv1", "Concat"),
}
_POOLS = {
    "5 \N{MULTIPLICATION SIGN} 2 MB": Allocation(np.array([0, 0]), np.array([5])),
    "8 \N{MULTIPLICATION SIGN} 1 MB and 1 \N{MULTIPLICATION SIGN} 2 MB": Allocation(np.array([0, 1]), np.array([8, 1])),
}


@dataclass(frozen=True, slots=True)
class Span:
    """An op or a copy of a tensor by name, on its stream, from `start` until `stop` in units of time."""

    stream: Stream
    name: str
    start: float
    stop: float


@dataclass(frozen=True, slots=True)
class Case:
    """One case: its schedule, its pool, how many units of time it takes until Concat is done, and its spans."""

    schedule: str
    pool: str
    units: float
    spans: tuple[Span, ...]


def figure_1() -> tuple[Case, ...]:
    """Both schedules in both pools, by the paper's control edges: 6 and 7 units in the coarse, 7 and 6 in the fine.

    An op takes a unit and so does copying a MB, both ways at once; 12 MB of tensors meet 10 MB of memory. The figure
    does not say what follows Concat. Here it is training: activations are needed again, so evicting means copying.
    """
    return tuple(_case(schedule, pool) for pool in _POOLS for schedule in _SCHEDULES)


def _problem() -> Problem:
    """The five ops and the one that loads the data; then ops that take no time need all activations again."""
    build = GraphBuilder("figure 1")
    tensors: dict[str, int] = {}
    kinds = {"W": Kind.PARAMETER, "A": Kind.ACTIVATION}
    for name in sorted({each for inputs, output in _OPS.values() for each in (*inputs, output)}):
        size = (2 if name in _LARGE else 1) * _MB
        kind = {"A0": Kind.INPUT, "A5": Kind.OUTPUT}.get(name, kinds[name[0]])
        tensors[name] = build.add_tensor(name, build.add_storage(name, size, kind), (size // 4,))
    for name, (inputs, output) in _OPS.items():
        reads, writes = (inputs, (output,)) if inputs else ((output,), ())
        build.add_op(name, "aten.op.default", [tensors[each] for each in reads], [tensors[each] for each in writes])
    for name in _NEEDED:
        build.add_op(f"needs {name}", "aten.op.default", [tensors[name]], [])
    device = Device("figure 1", "cpu", 1 << 30, 1e11, {"float32": 1e12}, alignment=64)
    machine = Machine("figure 1", (device,), Link(_MB, 2 * _MB, 0.0), 1 << 40)
    return build_problem(
        build.build([tensors["A5"]]), machine, 10 * _MB, np.array([1.0] * len(_OPS) + [0.0] * len(_NEEDED))
    )


def _case(schedule: str, pool: str) -> Case:
    problem = _problem()
    planner = pool_planner(problem, demand_of(problem), victim_threshold=1.0)
    names = [op.name for op in problem.graph.ops]
    slots = [*_SCHEDULES[schedule], *names[len(_OPS) :]]
    order = np.array([names.index(name) for name in slots], np.int32)
    cyclic_pool = planner.find_cyclic(order, pool_of(planner.demand, _POOLS[pool]))
    assert cyclic_pool is not None
    spans = tuple(_spans(planner, order, cyclic_pool.absence_count))
    units = next(span.stop for span in spans if span.name == "Concat")
    return Case(schedule, pool, units, tuple(span for span in spans if span.start < units))


def _spans(planner: PoolPlanner, order: Ints, count: int) -> Iterator[Span]:
    """The times of each op and copy: a copy in begins when the one before it and all that it waits for are done."""
    problem, scratch = planner.problem, planner.scratch
    absences, moves = scratch.absences, scratch.moves
    seconds = problem.seconds[order]
    names = [storage.name for storage in problem.graph.storages]
    outs, ins, begin, done = run_edges(
        seconds, absences, moves, count, planner.work, problem.link.shared, scratch.waiting, scratch.ready
    )
    for slot in range(len(_OPS)):
        yield Span("compute", problem.graph.ops[order[slot]].name, float(begin[slot]), float(begin[slot] + 1))
    for k in outs.tolist():
        storage = int(absences.storage[k])
        yield Span("out", names[storage], float(done[k] - planner.work[storage]), float(done[k]))
    link_free = 0.0
    for k in ins.tolist():
        assert absences.use[k] != NEVER
        slot = int(max(moves.free_since[k], absences.ready[k] + 1)) - 1
        waits = [link_free, float(begin[slot] + seconds[slot]) if slot >= 0 else 0.0]
        waits += [float(done[k])] if absences.copy[k] else []
        waits += [float(done[moves.after_copy_out[k]])] if moves.after_copy_out[k] >= 0 else []
        storage = int(absences.storage[k])
        start, link_free = max(waits), max(waits) + float(planner.work[storage])
        yield Span("in", names[storage], start, link_free)
