"""The tasks of a partitioned step: for every op its fetches, itself, its stages and its stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from planner.graph import Graph
from planner.partition.step_time.buckets import Bucket
from planner.partition.step_time.conversions import LevelTransfer, Transfer
from planner.partition.step_time.transfers import OpTransfers, root_tensors
from planner.partition.step_time.two_lanes import LaneTask

_NEVER = 1 << 60


@dataclass(frozen=True, slots=True)
class StepTasks:
    """A step as tasks.

    Args:
        tasks: all of them; those of the compute lane are in captured order.
        ops: per op, the number of the task that runs it.
    """

    tasks: tuple[LaneTask, ...]
    ops: tuple[int, ...]


def step_tasks(
    graph: Graph,
    compute: Sequence[float],
    moved: Sequence[OpTransfers],
    buckets: Sequence[Bucket],
    seconds: Callable[[Transfer], float],
) -> StepTasks:
    """Lay out the tasks of a step.

    Args:
        graph: the step.
        compute: per op, how long it runs.
        moved: per op, what is communicated for it.
        buckets: the stores that are joined.
        seconds: how long a transfer takes; called once for each.
    """
    roots = root_tensors(graph)
    tasks: list[LaneTask] = []
    ops: list[int] = []
    stored: dict[int, int] = {}  # by tensor that was made, the task after which it is where it is kept
    fetched: dict[object, int] = {}
    first_reader: dict[int, int] = {}
    for op in graph.ops:
        for tensor in op.inputs:
            first_reader.setdefault(roots[tensor], op.id)
    bucket_of = {pair: number for number, bucket in enumerate(buckets) for pair in bucket}
    waiting: list[list[tuple[int, int, Transfer]]] = [[] for _ in buckets]  # what makes it, the tensor, the transfer

    def send(parts: Transfer, after: tuple[int, ...], priority: int) -> int:
        tasks.append(LaneTask(seconds(parts), after, communicates=True, priority=priority))
        return len(tasks) - 1

    def awaited_by(number: int) -> set[int]:
        """The tasks after which an op has its inputs."""
        after = set()
        moving = {root for root, _, _ in moved[number].fetches}
        for root in {roots[tensor] for tensor in graph.ops[number].inputs}:
            if root in stored and root not in moving:
                after.add(stored[root])
        for root, key, parts in moved[number].fetches:
            if key not in fetched:
                fetched[key] = send(parts, (stored[root],) if root in stored else (), number)
            after.add(fetched[key])
        return after

    stage: tuple[int, ...] = ()
    for op in graph.ops:
        after = (*awaited_by(op.id), *stage)
        tasks.append(LaneTask(float(compute[op.id]), after))
        done = len(tasks) - 1
        ops.append(done)
        stage = ()
        if moved[op.id].stages:
            done = send(moved[op.id].stages, (done,), op.id)
            stage = (done,)  # the op goes on with what its stages give, so the next one waits
        stores = dict(moved[op.id].stores)
        for tensor in op.outputs:
            stored[tensor] = done
            if tensor not in stores:
                continue
            number = bucket_of.get((op.id, tensor))
            if number is None:
                stored[tensor] = send(stores[tensor], (done,), first_reader.get(tensor, _NEVER))
                continue
            waiting[number].append((done, tensor, stores[tensor]))
            if len(waiting[number]) == len(buckets[number]):
                makers, tensors, parts = zip(*waiting[number], strict=True)
                urgent = min(first_reader.get(other, _NEVER) for other in tensors)
                together = send(_joined(parts), makers, urgent)
                stored.update(dict.fromkeys(tensors, together))
    return StepTasks(tuple(tasks), tuple(ops))


def _joined(transfers: Sequence[Transfer]) -> Transfer:
    """Transfers of one kind as one."""
    return tuple(
        LevelTransfer(parts[0].level, parts[0].collective, sum(part.bytes for part in parts))
        for parts in zip(*transfers, strict=True)
    )
