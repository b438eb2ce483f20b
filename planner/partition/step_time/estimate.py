"""The time of a partitioned step on a machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from planner.errors import StowageError
from planner.machine import Machine, MeshLevel, collective_seconds, mesh_levels, op_seconds
from planner.partition.search import Partitioning
from planner.partition.step_time.buckets import BUCKET_BYTES, gradient_buckets
from planner.partition.step_time.conversions import Transfer
from planner.partition.step_time.local_work import local_work
from planner.partition.step_time.tasks import step_tasks
from planner.partition.step_time.transfers import transfers
from planner.partition.step_time.two_lanes import finish_times


@dataclass(frozen=True, eq=False)
class StepTime:
    """A step's time on one of the devices, which all do alike.

    Args:
        seconds: of the step, with communication behind compute where dependencies allow.
        seconds_without_overlap: of the step, one thing after the other.
        compute_seconds: of all ops.
        communication_seconds: of all collectives.
        calls: how many collectives there are.
        bytes_per_level: what all workers together receive, by level.
        op_ends: when each op ends, seconds, shape (ops,).
    """

    seconds: float
    seconds_without_overlap: float
    compute_seconds: float
    communication_seconds: float
    calls: int
    bytes_per_level: tuple[float, ...]
    op_ends: NDArray[np.float64]


def step_time(found: Partitioning, machine: Machine, bucket_bytes: int | None = BUCKET_BYTES) -> StepTime:
    """Estimate how long a partitioned step takes.

    Ops run in captured order on one lane of each device and collectives on another, each as soon as the device has
    what it sends. A fetch may run ahead of the op that needs it as far as dependencies allow, whatever memory that
    takes; an op waits for its stages. Every collective costs a launch besides its latency and bytes. Workers receive
    the mean of the bytes that are counted, and compute like the one with the largest chunks.

    Args:
        found: a partition.
        machine: its devices and links; slow links serve the outermost levels.
        bucket_bytes: of the gradients of a worker that are reduced together, if only the optimizer reads them; None to
            reduce each alone.

    Raises:
        StowageError: the machine has too few devices for the workers, or buckets would hold less than nothing.
    """
    if bucket_bytes is not None and bucket_bytes < 0:
        raise StowageError(f"bucket_bytes must be 0 or more, or None for no buckets, got {bucket_bytes}")
    graph = found.coarse.graph
    timer = _TransferTimer(
        mesh_levels(machine, [level.workers for level in found.levels]), machine.device.launch_seconds
    )
    work = local_work(found)
    compute = op_seconds(graph, machine, work.flops, work.traffic)
    moved = transfers(found)
    buckets = [] if bucket_bytes is None else gradient_buckets(found, moved, bucket_bytes)
    step = step_tasks(graph, compute.tolist(), moved, buckets, timer.seconds)
    ends = finish_times(step.tasks)
    return StepTime(
        seconds=max(ends, default=0.0),
        seconds_without_overlap=sum(task.seconds for task in step.tasks),
        compute_seconds=float(compute.sum()),
        communication_seconds=sum(task.seconds for task in step.tasks if task.communicates),
        calls=timer.calls,
        bytes_per_level=tuple(timer.bytes_per_level),
        op_ends=np.array([ends[task] for task in step.ops], np.float64),
    )


class _TransferTimer:
    """Times transfers, and counts their calls and bytes."""

    def __init__(self, levels: Sequence[MeshLevel], launch: float) -> None:
        self._levels, self._launch = levels, launch
        self._workers = prod(level.workers for level in levels)
        self.calls = 0
        self.bytes_per_level = [0.0] * len(levels)

    def seconds(self, parts: Transfer) -> float:
        """Duration of a transfer, its levels one after another."""
        total = 0.0
        for part in parts:
            level = self._levels[part.level]
            self.calls += 1
            self.bytes_per_level[part.level] += part.bytes
            received = part.bytes / self._workers
            total += self._launch + collective_seconds(part.collective, received, level.workers, level.link)
        return total
