"""What a capture depends on besides tensors: Python's values, PyTorch's settings, and how changes to them are seen."""

from planner.capture.guards.containers import Container
from planner.capture.guards.environment import environment, named
from planner.capture.guards.reach import Reach
from planner.capture.guards.values import Value
from planner.capture.guards.watch import ContainerWatch

__all__ = ["Container", "ContainerWatch", "Reach", "Value", "environment", "named"]
