"""Recomputation: a search for what to run again, and plans for what it finds."""

from planner.swap.methods.recomputing.recomputing import Recomputing, without_copies
from planner.swap.methods.recomputing.refining import Refining

__all__ = ["Recomputing", "Refining", "without_copies"]
