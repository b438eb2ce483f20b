"""Tofu: how the ops of a step can be split over workers, derived from what each op computes."""

from planner.partition.atoms import Atoms, atoms
from planner.partition.baselines import BASELINES, Placement, baselines, place_operators
from planner.partition.coarse import CoarseGraph, Fetch, MergedOp, Option, TensorGroup, Variant, coarsen
from planner.partition.coverage import Coverage, OperatorCoverage, coverage
from planner.partition.explain import MovedMore, SplitAlternative, SplitExplanation, explain
from planner.partition.handle import (
    MemoryPoint,
    PartitionPoint,
    PartitionProblem,
    PartitionProgress,
    PartitionSearch,
    Solution,
    WorkerMemory,
    load_partition_search,
    search_partition,
    worker_memory,
)
from planner.partition.op_strategies import SplittableOp, splittable_ops
from planner.partition.ops import Describer, describe, described, describes
from planner.partition.plan import (
    AxisDivision,
    Division,
    LinearDivision,
    PartitionPlan,
    load_partition,
    partition_from_json,
    partition_to_json,
    save_partition,
    stored_bytes,
    validate_partition,
    worker_chunks,
)
from planner.partition.search import LevelChoice, Partitioning, evaluate, optimize, recurse
from planner.partition.step_time import BUCKET_BYTES, StepTime, step_time
from planner.partition.strategy import (
    Partial,
    Replicated,
    Split,
    StageReduction,
    State,
    Strategy,
    Unread,
    chunk,
    conversion_bytes,
    held,
    strategies,
)
from planner.partition.tdl import Description, Digit, Reduction, Region, chunk_ranges, regions
from planner.partition.verify import Fault, KernelCall, Proof, prove
from planner.partition.workers import (
    PartBox,
    average_worker,
    counted_bytes,
    local_value,
    part_boxes,
    validate_workers,
    whole_value,
    worker_graph,
)

__all__ = [
    "BASELINES", "BUCKET_BYTES", "Atoms", "AxisDivision", "CoarseGraph", "Coverage", "Describer", "Description",
    "Digit", "Division", "Fault", "Fetch", "KernelCall", "LevelChoice", "LinearDivision", "MemoryPoint", "MergedOp",
    "MovedMore", "OperatorCoverage", "Option", "PartBox", "Partial", "PartitionPlan", "PartitionPoint",
    "PartitionProblem", "PartitionProgress", "PartitionSearch", "Partitioning", "Placement", "Proof", "Reduction",
    "Region", "Replicated", "Solution", "Split", "SplitAlternative", "SplitExplanation", "SplittableOp",
    "StageReduction", "State", "StepTime", "Strategy", "TensorGroup", "Unread", "Variant", "WorkerMemory", "atoms",
    "average_worker", "baselines", "chunk", "chunk_ranges", "coarsen", "conversion_bytes", "counted_bytes", "coverage",
    "describe", "described", "describes", "evaluate", "explain", "held", "load_partition", "load_partition_search",
    "local_value", "optimize", "part_boxes", "partition_from_json", "partition_to_json", "place_operators", "prove",
    "recurse", "regions", "save_partition", "search_partition", "splittable_ops", "step_time", "stored_bytes",
    "strategies", "validate_partition", "validate_workers", "whole_value", "worker_chunks", "worker_graph",
    "worker_memory",
]  # fmt: skip
