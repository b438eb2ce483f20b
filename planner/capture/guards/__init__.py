"""What a capture depends on besides tensors: Python's values, PyTorch's settings, and how changes to them are seen."""

from planner.capture.guards.code import installed
from planner.capture.guards.containers import Container, DictItems
from planner.capture.guards.environment import environment, named
from planner.capture.guards.memory import WORD, octets, words
from planner.capture.guards.reach import Reach
from planner.capture.guards.values import Value
from planner.capture.guards.versions import versions
from planner.capture.guards.watch import ContainerWatch

__all__ = [
    "WORD", "Container", "ContainerWatch", "DictItems", "Reach", "Value", "environment", "installed", "named", "octets",
    "versions", "words",
]  # fmt: skip
