"""All features of the Workbench, one line each, in the order in which a page gets their messages."""

from widgets.session.partition import partitioning, worker_views
from widgets.session.plans import listing
from widgets.session.state.feature import cancel_features, carry_out, close_features, register
from widgets.session.tasks import capturing, comparing, exporting, planning, running, searching, sweeping

__all__ = ["cancel_features", "carry_out", "close_features"]

for _feature in (
    capturing.FEATURE,  # first, for what follows refers to the graph
    sweeping.FEATURE,
    planning.FEATURE,
    searching.FEATURE,
    comparing.FEATURE,
    partitioning.FEATURE,
    worker_views.FEATURE,  # after what it sends again for a worker
    listing.FEATURE,
    running.FEATURE,
    exporting.FEATURE,
):
    register(_feature)
