"""What is drawn, in numbers: one frozen dataclass for each picture, and the function that fills it."""

from widgets.info.address_map import AddressMap, get_address_map
from widgets.info.compare_peaks import ComparePeaks, Peak, get_compare_peaks
from widgets.info.dataflow import Dataflow, End, Flow, OpBox, get_dataflow
from widgets.info.groups import Group
from widgets.info.holders import Holder, get_holders
from widgets.info.memory_by_kind import MemoryByKind, get_memory_by_kind
from widgets.info.module_edges import Edge
from widgets.info.module_graph import Box, ModuleGraph, get_module_graph
from widgets.info.pareto import Pareto, get_pareto
from widgets.info.predicted_and_measured import PredictedAndMeasured, get_predicted_and_measured
from widgets.info.schedule_and_pool import ScheduleAndPool, get_schedule_and_pool
from widgets.info.search_history import Found, SearchHistory, get_search_history
from widgets.info.streams import Copy, Stall, Streams, get_streams
from widgets.info.swap_edges import Swap

__all__ = [
    "AddressMap", "Box", "ComparePeaks", "Copy", "Dataflow", "Edge", "End", "Flow", "Found", "Group", "Holder",
    "MemoryByKind", "ModuleGraph", "OpBox", "Pareto", "Peak", "PredictedAndMeasured", "ScheduleAndPool",
    "SearchHistory", "Stall", "Streams", "Swap", "get_address_map", "get_compare_peaks", "get_dataflow", "get_holders",
    "get_memory_by_kind", "get_module_graph", "get_pareto", "get_predicted_and_measured", "get_schedule_and_pool",
    "get_search_history", "get_streams",
]  # fmt: skip
