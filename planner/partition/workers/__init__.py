"""Worker graphs: what each worker of a partition computes, with collectives as ops of its graph."""

from planner.partition.workers.average_worker import average_worker
from planner.partition.workers.events.counted_bytes import counted_bytes
from planner.partition.workers.part_boxes import PartBox, part_boxes
from planner.partition.workers.part_values import local_value, whole_value
from planner.partition.workers.validate_workers import validate_workers
from planner.partition.workers.worker_graph import worker_graph

__all__ = [
    "PartBox", "average_worker", "counted_bytes", "local_value", "part_boxes", "validate_workers", "whole_value",
    "worker_graph",
]  # fmt: skip
