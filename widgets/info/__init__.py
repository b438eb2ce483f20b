"""The data behind each picture: one frozen dataclass per picture, and the function that computes it."""

from widgets.info.address_map import AddressMap, address_map_of, get_address_map
from widgets.info.budget_answers import Answer, Reasons, get_cost, get_fit, get_reasons, unswapped_peak
from widgets.info.collectives import Collectives, get_collectives
from widgets.info.colour_groups import GROUP_OF, STACK, Group
from widgets.info.compare_methods import CompareMethods, MethodSpeeds, get_compare_methods
from widgets.info.compare_plans import ComparePlans, get_compare_plans
from widgets.info.compare_speeds import CompareSpeeds, Speed, get_compare_speeds
from widgets.info.compare_step_peaks import ComparePeaks, Peak, get_compare_peaks
from widgets.info.dataflow import Dataflow, End, Flow, OpBox, get_dataflow
from widgets.info.fit_curves import FitAnswer, FitCurves, get_fit_curves
from widgets.info.forward_ops import get_forward_of
from widgets.info.holder_parts import GroupBy, HolderPart, get_holder_parts
from widgets.info.holders import Holder, get_holders
from widgets.info.level_bytes import LevelBytes, get_level_bytes
from widgets.info.lever_points import LeverKind, LeverPoint, LeverPoints, get_levers
from widgets.info.live_memory import LiveMemory, MeasuredMemory, get_live_memory, measured_memory
from widgets.info.memory_by_kind import MemoryByKind, get_memory_by_kind
from widgets.info.module_edges import Edge
from widgets.info.module_graph import Box, ModuleGraph, get_module_graph
from widgets.info.module_swaps import Swap
from widgets.info.op_touches import get_touches
from widgets.info.pareto import Pareto, get_pareto
from widgets.info.partition_splits import PartitionSplits, SplitRow, get_partition_splits
from widgets.info.peak_holders import PeakHolders, get_peak_holders
from widgets.info.peak_icicle import IcicleBox, IcicleLevels, PeakIcicle, get_peak_icicle
from widgets.info.predicted_and_measured import Curve, PredictedAndMeasured, get_predicted_and_measured
from widgets.info.recompute_text import recompute_text
from widgets.info.residency_spans import Axis, Flags, Floats, Ints, spans_of
from widgets.info.search_history import Found, SearchHistory, get_search_history
from widgets.info.snapshot_map import HELD, Held, SnapshotMap, get_snapshot_map
from widgets.info.source_lines import SourceLines, get_source_lines
from widgets.info.span_sums import SpanSums, get_span_sums
from widgets.info.step_facts import get_step_facts
from widgets.info.step_requirements import Feasibility, assess_feasibility
from widgets.info.streams import Copy, Stall, Streams, get_streams, streams_of
from widgets.info.swapadvisor_figure_1 import ScheduleAndPool, get_schedule_and_pool
from widgets.info.tensor_blocks import TensorBlock, TensorBlocks, get_tensor_blocks
from widgets.info.worker_peaks import WorkerPeaks, WorkerRow, get_worker_peaks

__all__ = [
    "GROUP_OF",
    "HELD",
    "STACK",
    "AddressMap",
    "Answer",
    "Axis",
    "Box",
    "Collectives",
    "CompareMethods",
    "ComparePeaks",
    "ComparePlans",
    "CompareSpeeds",
    "Copy",
    "Curve",
    "Dataflow",
    "Edge",
    "End",
    "Feasibility",
    "FitAnswer",
    "FitCurves",
    "Flags",
    "Floats",
    "Flow",
    "Found",
    "Group",
    "GroupBy",
    "Held",
    "Holder",
    "HolderPart",
    "IcicleBox",
    "IcicleLevels",
    "Ints",
    "LevelBytes",
    "LeverKind",
    "LeverPoint",
    "LeverPoints",
    "LiveMemory",
    "MeasuredMemory",
    "MemoryByKind",
    "MethodSpeeds",
    "ModuleGraph",
    "OpBox",
    "Pareto",
    "PartitionSplits",
    "Peak",
    "PeakHolders",
    "PeakIcicle",
    "PredictedAndMeasured",
    "Reasons",
    "ScheduleAndPool",
    "SearchHistory",
    "SnapshotMap",
    "SourceLines",
    "SpanSums",
    "Speed",
    "SplitRow",
    "Stall",
    "Streams",
    "Swap",
    "TensorBlock",
    "TensorBlocks",
    "WorkerPeaks",
    "WorkerRow",
    "address_map_of",
    "assess_feasibility",
    "get_address_map",
    "get_collectives",
    "get_compare_methods",
    "get_compare_peaks",
    "get_compare_plans",
    "get_compare_speeds",
    "get_cost",
    "get_dataflow",
    "get_fit",
    "get_fit_curves",
    "get_forward_of",
    "get_holder_parts",
    "get_holders",
    "get_level_bytes",
    "get_levers",
    "get_live_memory",
    "get_memory_by_kind",
    "get_module_graph",
    "get_pareto",
    "get_partition_splits",
    "get_peak_holders",
    "get_peak_icicle",
    "get_predicted_and_measured",
    "get_reasons",
    "get_schedule_and_pool",
    "get_search_history",
    "get_snapshot_map",
    "get_source_lines",
    "get_span_sums",
    "get_step_facts",
    "get_streams",
    "get_tensor_blocks",
    "get_touches",
    "get_worker_peaks",
    "measured_memory",
    "recompute_text",
    "spans_of",
    "streams_of",
    "unswapped_peak",
]
