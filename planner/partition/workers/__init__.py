"""Worker graphs: what each worker of a partition computes, with collectives as ops of its graph."""

from planner.partition.workers.collectives import COLLECTIVES, counted_bytes
from planner.partition.workers.localiser import local_value, worker_graph

__all__ = ["COLLECTIVES", "counted_bytes", "local_value", "worker_graph"]
