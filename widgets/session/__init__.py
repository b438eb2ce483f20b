"""The background work of a workbench: capture, plans, searches and runs, independent of widgets and browser."""

from widgets.session.interrupts import in_message
from widgets.session.session import Session
from widgets.session.state.plan_table import PlanRow

__all__ = ["PlanRow", "Session", "in_message"]
