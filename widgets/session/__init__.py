"""The background work of a workbench: capture, plans, searches and runs, independent of widgets and browser."""

from widgets.session.interrupts import in_message
from widgets.session.session import Session
from widgets.session.state.buffers_as_step import buffers_as_step
from widgets.session.state.plan_table import PlanRow, PlanTable

__all__ = ["PlanRow", "PlanTable", "Session", "buffers_as_step", "in_message"]
