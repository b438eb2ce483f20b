"""All features of the Workbench, one line each, in the order in which a page gets their messages."""

from widgets.session.state.feature import features, find_request, register
from widgets.session.tasks import capturing, comparing, exporting, partitioning, planning, running, searching, sweeping

__all__ = ["features", "find_request"]

for _feature in (
    capturing.FEATURE,  # first, for what follows refers to the graph
    sweeping.FEATURE,
    planning.FEATURE,
    searching.FEATURE,
    comparing.FEATURE,
    partitioning.FEATURE,
    running.FEATURE,
    exporting.FEATURE,
):
    register(_feature)
