"""What else a step could be: its peak and speed with another batch, optimizer, precision, checkpointing or plan."""

from planner.callable_package import make_callable
from planner.levers.lever_rows import LeverRow, Levers, Numbers, Unchangeable
from planner.levers.measuring_levers import levers

make_callable(__name__)

__all__ = ["LeverRow", "Levers", "Numbers", "Unchangeable", "levers"]
