"""How long a step takes that is split over workers: local compute, collectives, and how far they overlap."""

from planner.partition.step_time.buckets import BUCKET_BYTES
from planner.partition.step_time.conversions import LevelTransfer, Transfer, fetched_bytes, spread_bytes
from planner.partition.step_time.estimate import StepTime, step_time
from planner.partition.step_time.local_work import LocalWork, local_work
from planner.partition.step_time.transfers import OpTransfers, transfers

__all__ = [
    "BUCKET_BYTES", "LevelTransfer", "LocalWork", "OpTransfers", "StepTime", "Transfer", "fetched_bytes", "local_work",
    "spread_bytes", "step_time", "transfers",
]  # fmt: skip
