"""The largest batch, sequence or other size of a step that fits on a machine."""

from planner.callable_package import make_callable
from planner.fit.argument_checks import check_kind
from planner.fit.bisection import Largest
from planner.fit.failing_sizes import Failure
from planner.fit.fitting import Fit, fit
from planner.fit.open_ranges import StillFitsError
from planner.fit.remarks import remarks, value_stopped_by_host, why_none
from planner.fit.time_and_memory import FULL_SPEED, Needs, share_text
from planner.machine import Reserve, reserve_of, usable_bytes

make_callable(__name__)

__all__ = [
    "FULL_SPEED",
    "Failure",
    "Fit",
    "Largest",
    "Needs",
    "Reserve",
    "StillFitsError",
    "check_kind",
    "fit",
    "remarks",
    "reserve_of",
    "share_text",
    "usable_bytes",
    "value_stopped_by_host",
    "why_none",
]
