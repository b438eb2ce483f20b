"""Searching for partitions in the background, with pins and within a memory limit."""

from planner.partition.handle.driver import PartitionPoint
from planner.partition.handle.handle import (
    PartitionProgress,
    PartitionSearch,
    load_partition_search,
    search_partition,
)
from planner.partition.handle.inputs import make_partition_problem
from planner.partition.handle.memory_sweep import MemoryPoint
from planner.partition.handle.pins import Pins, PinValue, axes_of, axis_name
from planner.partition.handle.problem import PartitionProblem, PartitionTrial, Solution
from planner.partition.handle.trials import solve_within_memory
from planner.partition.handle.worker_memory import WorkerMemory, worker_memory

__all__ = [
    "MemoryPoint",
    "PartitionPoint",
    "PartitionProblem",
    "PartitionProgress",
    "PartitionSearch",
    "PartitionTrial",
    "PinValue",
    "Pins",
    "Solution",
    "WorkerMemory",
    "axes_of",
    "axis_name",
    "load_partition_search",
    "make_partition_problem",
    "search_partition",
    "solve_within_memory",
    "worker_memory",
]  # fmt: skip
