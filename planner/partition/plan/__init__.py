"""PartitionPlan: what a search for a partition has found, as plain data with a file format and a validator."""

from planner.partition.plan.memory import stored_bytes, worker_chunks
from planner.partition.plan.partition_plan import AxisDivision, Division, LinearDivision, PartitionPlan, division_of
from planner.partition.plan.store import (
    load_partition,
    partition_from_json,
    partition_to_json,
    save_partition,
)
from planner.partition.plan.validator import validate_partition

__all__ = [
    "AxisDivision", "Division", "LinearDivision", "PartitionPlan", "division_of", "load_partition",
    "partition_from_json", "partition_to_json", "save_partition", "stored_bytes", "validate_partition", "worker_chunks",
]  # fmt: skip
