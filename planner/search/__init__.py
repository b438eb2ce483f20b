"""Searches that run in threads and can be observed, cancelled, resumed and saved."""

from planner.search.search_handle import SECONDS, STOPPED, SearchHandle, check_limits
from planner.search.search_thread import SearchStatus, SearchThread, StepwiseSearch
from planner.search.time_limit import TimeLimit

__all__ = [
    "SECONDS",
    "STOPPED",
    "SearchHandle",
    "SearchStatus",
    "SearchThread",
    "StepwiseSearch",
    "TimeLimit",
    "check_limits",
]  # fmt: skip
