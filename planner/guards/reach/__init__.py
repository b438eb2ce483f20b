"""What a step's Python code can reach: the traversal, and what is read and recorded of each value."""

from planner.guards.reach.reach import Reach

__all__ = ["Reach"]
