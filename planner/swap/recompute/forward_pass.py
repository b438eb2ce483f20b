"""What a step's forward pass makes, and which of it ops could make again.

Ops that write into the same storage, such as a convolution and an activation in place, form a group: what they leave
is made again by all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from planner.graph import Csr, Graph, Phase, csr
from planner.machine import is_collective
from planner.swap.problem.problem import Flags, Ints, Problem, Seconds
from planner.swap.recompute.min_cut import SINK, SOURCE, FlowNetwork, flow_network
from planner.swap.schedule.base_orders import eager_optimizer_order

#: Namespaces of operators that keep nothing between their runs.
_STATELESS = frozenset({"aten", "stowage"})
#: A moment at which this many times the least is held counts as least, too.
_NEARLY = 1.02


@dataclass(frozen=True, eq=False)
class ForwardPass:
    """The forward pass of a step.

    Args:
        sequence: `[ops]`, the captured order, with the optimizer's ops last.
        forward: `[ops]`, whether an op is part of the forward pass.
        rank: `[ops]`, where each op comes if the optimizer's ops come as early as they can.
        group_of: `[storages]`, the group that makes a storage in the forward pass, or -1.
        groups: the ops of each group, in captured order.
        repeatable: `[groups]`, whether they may run again.
        first_only: `[touches]`, whether an op touches a storage only when it runs for the first time in a step.
        seconds: `[groups]`, how long they run.
        needed: `[storages]`, whether a group made it and an op beyond the forward pass reads it.
        bytes: `[storages]`, bytes of what groups make, 0 for all else.
        made_at: `[storages]`, when a storage is complete, in seconds from the start of the step.
        cut_points: storages that are alive where the forward pass holds least, one list for each such moment.
        network: source and sink, then storages, then groups; keeping a storage and running a group again are arcs.
        keep, again, fixed: which of the arcs keep a storage, run a group again, and are never cut.
        made: the storages that groups make, in the order of `keep`.
    """

    sequence: Ints
    forward: Flags
    rank: Seconds
    group_of: Ints
    groups: Csr
    repeatable: Flags
    first_only: Flags
    seconds: Seconds
    needed: Flags
    bytes: Seconds
    made_at: Seconds
    cut_points: tuple[Ints, ...]
    network: FlowNetwork
    keep: Ints
    again: Ints
    fixed: Ints
    made: Ints

    @property
    def useful(self) -> bool:
        """Whether there is anything that is needed later and can be made again."""
        return bool(self.repeatable[self.group_of[self.needed]].any())


def forward_pass(problem: Problem) -> ForwardPass:
    """Find what the forward pass of a problem makes.

    Args:
        problem: one in which each op has one instance.

    Raises:
        Cancelled: cancellation was requested.
    """
    graph = problem.graph
    forward = [op.phase is Phase.FORWARD for op in graph.ops]
    sequence, optimizer_last = _sequence(graph)
    group_of, groups = _groups(graph, forward)
    problem.stop.check()
    repeatable = _repeatable(graph, group_of, groups, optimizer_last)
    problem.stop.check()
    made = np.flatnonzero(group_of >= 0).astype(np.int32)
    needed = np.zeros(problem.storages, np.bool_)
    for op, reads in enumerate(graph.reads):
        if not forward[op]:
            needed[list(reads)] = True
    needed &= group_of >= 0
    starts = np.append(0.0, np.cumsum(problem.seconds[sequence]))
    slot = np.empty(problem.ops, np.int64)
    slot[sequence] = np.arange(problem.ops)
    made_at = np.zeros(problem.storages)
    for group, ops in enumerate(groups):
        for storage in {s for op in ops for s in graph.writes[op] if group_of[s] == group}:
            made_at[storage] = max(starts[slot[op] + 1] for op in ops if storage in graph.writes[op])
    arcs, keep, again, fixed = _arcs(graph, group_of, groups, made, needed)
    rank = np.empty(problem.ops)
    rank[eager_optimizer_order(problem)] = np.arange(problem.ops)
    return ForwardPass(
        sequence, np.array(forward, np.bool_), rank, group_of, csr(groups), repeatable, _first_only(problem),
        np.array([problem.seconds[list(ops)].sum() for ops in groups], np.float64), needed,
        np.where(group_of >= 0, problem.arrays.bytes, 0).astype(np.float64), made_at,
        tuple(_cut_points(problem, forward, sequence, group_of)),
        flow_network(2 + len(made) + len(groups), arcs), keep, again, fixed, made,
    )  # fmt: skip


def _sequence(graph: Graph) -> tuple[Ints, bool]:
    """The captured order with the optimizer's ops last, if nothing else waits for them; and whether that is so."""
    optimizer = [op.phase is Phase.OPTIMIZER for op in graph.ops]
    last = not any(
        optimizer[earlier] and not optimizer[op] for op, ops in enumerate(graph.dependencies) for earlier in ops
    )
    found = sorted(range(len(graph.ops)), key=lambda op: last and optimizer[op])
    return np.array(found, np.int32), last


def _groups(graph: Graph, forward: list[bool]) -> tuple[Ints, list[list[int]]]:
    """By storage, the group that makes it in the forward pass or -1, and the ops of each group."""
    parent = list(range(len(graph.ops)))

    def root(op: int) -> int:
        while parent[op] != op:
            parent[op] = op = parent[parent[op]]
        return op

    writers: dict[int, list[int]] = defaultdict(list)
    for op, written in enumerate(graph.writes):
        for storage in written:
            if not graph.storages[storage].live_in:
                writers[storage].append(op)
    ours = {storage: ops for storage, ops in writers.items() if all(forward[op] for op in ops)}
    for ops in ours.values():
        for op in ops[1:]:
            one, other = root(ops[0]), root(op)
            parent[max(one, other)] = min(one, other)
    numbers: dict[int, int] = {}
    groups: list[list[int]] = []
    for op in sorted({op for ops in ours.values() for op in ops}):
        number = numbers.setdefault(root(op), len(groups))
        if number == len(groups):
            groups.append([])
        groups[number].append(op)
    group_of = np.full(len(graph.storages), -1, np.int32)
    for storage, ops in ours.items():
        group_of[storage] = numbers[root(ops[0])]
    return group_of, groups


def _first_only(problem: Problem) -> Flags:
    touches = problem.arrays.touches
    found = np.zeros(len(touches.items), np.bool_)
    for op in problem.graph.ops:
        if op.first_run_only:
            entries = slice(touches.start[op.id], touches.start[op.id + 1])
            found[entries] = np.isin(touches.items[entries], op.first_run_only)
    return found


def _repeatable(graph: Graph, group_of: Ints, groups: list[list[int]], optimizer_last: bool) -> Flags:
    """`[groups]`, whether its ops do the same when they run again later in the step."""
    writers: dict[int, list[int]] = defaultdict(list)
    for op, written in enumerate(graph.writes):
        for storage in written:
            writers[storage].append(op)
    collective = {
        storage for op in graph.ops if is_collective(op) for storage in (*graph.reads[op.id], *graph.writes[op.id])
    }

    def alike(op: int, group: int) -> bool:
        """Whether an op finds what it read before."""
        for storage in graph.reads_again[op]:
            later = [writer for writer in writers[storage] if writer > op]
            if group_of[storage] != group and any(
                not optimizer_last or graph.ops[writer].phase is not Phase.OPTIMIZER for writer in later
            ):
                return False
        return True

    def writes_only_its_own(op: int, group: int) -> bool:
        return bool(graph.writes_again[op]) and all(
            group_of[storage] == group and storage not in graph.output_storages and storage not in collective
            for storage in graph.writes_again[op]
        )

    def keeps_nothing(op: int) -> bool:
        """Whether nothing outside of the graph is left between two runs: operators of others may count their calls."""
        namespace, captured, _ = graph.ops[op].target.partition(".")
        return not captured or namespace in _STATELESS

    found = np.array(
        [
            all(keeps_nothing(op) and writes_only_its_own(op, group) and alike(op, group) for op in ops)
            for group, ops in enumerate(groups)
        ],
        np.bool_,
    )

    def updated_before(reader: int, group: int) -> bool:
        """Whether an optimizer's op finds updated what the group, or what makes its inputs again, reads."""
        seen, stack = {group}, [group]
        while stack:
            for op in groups[stack.pop()]:
                for storage in graph.reads_again[op]:
                    maker = int(group_of[storage])
                    if maker >= 0 and maker not in seen:
                        seen.add(maker)
                        stack.append(maker)
                    elif any(op < writer < reader for writer in writers[storage] if writer not in groups[group]):
                        return True
        return False

    for op, reads in enumerate(graph.reads):
        for storage in reads:
            group = int(group_of[storage])
            if group < 0 or op in groups[group]:
                continue
            unfinished = op < max(writers[storage])
            if unfinished or (graph.ops[op].phase is Phase.OPTIMIZER and updated_before(op, group)):
                found[group] = False
    return found


def _arcs(
    graph: Graph, group_of: Ints, groups: list[list[int]], made: Ints, needed: Flags
) -> tuple[list[tuple[int, int]], Ints, Ints, Ints]:
    """The arcs of the network; which of them keep a storage, run a group again, and are never cut."""
    node = {storage: 2 + place for place, storage in enumerate(made.tolist())}
    first_group = 2 + len(node)
    keep = [(node[storage], first_group + int(group_of[storage])) for storage in node]
    again = [(first_group + group, SINK) for group in range(len(groups))]
    fixed = [(SOURCE, node[storage]) for storage in node if needed[storage]]
    for group, ops in enumerate(groups):
        inputs: Iterable[int] = dict.fromkeys(storage for op in ops for storage in graph.reads[op])
        fixed += [(first_group + group, node[s]) for s in inputs if s in node and group_of[s] != group]
    arcs = keep + again + fixed
    numbers = np.arange(len(arcs), dtype=np.int32)
    first_fixed = len(keep) + len(again)
    return arcs, numbers[: len(keep)], numbers[len(keep) : first_fixed], numbers[first_fixed:]


def _cut_points(problem: Problem, forward: list[bool], sequence: Ints, group_of: Ints) -> list[Ints]:
    """The storages that later forward ops still read, at every moment when those take least memory nearby."""
    graph = problem.graph
    ops = [op for op in sequence.tolist() if forward[op]]
    born: dict[int, int] = {}
    last: dict[int, int] = {}
    for place, op in enumerate(ops):
        for storage in graph.reads[op]:
            last[storage] = place
        for storage in graph.writes[op]:
            born.setdefault(storage, place)
    storages = [s for s in born if group_of[s] >= 0 and last.get(s, -1) > born[s]]
    change = np.zeros(len(ops) + 1, np.int64)
    for storage in storages:
        change[born[storage]] += problem.arrays.bytes[storage]
        change[last[storage]] -= problem.arrays.bytes[storage]
    live = np.cumsum(change)[: len(ops)]
    reach = max(6, len(ops) // 100)
    found: dict[bytes, Ints] = {}
    for place in range(len(ops) - 1):
        if live[place] <= _NEARLY * live[max(0, place - reach) : place + reach + 1].min():
            alive = np.array([s for s in storages if born[s] <= place < last[s]], np.int32)
            found.setdefault(alive.tobytes(), alive)
    return [alive for alive in found.values() if len(alive)]
