"""What a capture depends on besides tensors: Python values, PyTorch's settings, and the detection of their changes."""

from planner.guards.comparison_keys import Value
from planner.guards.concurrent_modification import undisturbed
from planner.guards.containers import KEEP, MISSING, Container, DictItems, Items, Names, Slots
from planner.guards.dict_versions import versions
from planner.guards.process_memory import WORD, memory_bytes, memory_words
from planner.guards.reach import Reach
from planner.guards.referenced_names import installed
from planner.guards.torch_settings import environment, flushes_denormals, named
from planner.guards.watch import ContainerWatch

__all__ = [
    "KEEP", "MISSING", "WORD", "Container", "ContainerWatch", "DictItems", "Items", "Names", "Reach", "Slots",
    "Value", "environment", "flushes_denormals", "installed", "memory_bytes", "memory_words", "named", "undisturbed",
    "versions",
]  # fmt: skip
