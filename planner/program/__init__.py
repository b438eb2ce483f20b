"""Executable programs: kernel calls on recorded or live tensors, and the effects of a step."""

from planner.program.argument_references import ScalarRef, TensorRef
from planner.program.backend import Backend
from planner.program.backend_registry import CALL_SOURCES, backend_of
from planner.program.isolated_generator import as_default, drawing_from
from planner.program.out_variants import bind, takes_generator, writes_directly
from planner.program.program import Call, Program
from planner.program.python_side_effects import (
    Effects,
    LiveRef,
    NextRef,
    OutputRef,
    Ref,
    clone_with_alignment,
    find_effects,
)
from planner.program.readings import Leaf, Reading, Readings, Value
from planner.program.recorded_calls import ALLOCATIONS, Event, Layout, argument_text, substituted
from planner.program.replay_readings import Memory, reading_changed
from planner.program.rewrites import BoundCall, operands

__all__ = [
    "ALLOCATIONS",
    "CALL_SOURCES",
    "Backend",
    "BoundCall",
    "Call",
    "Effects",
    "Event",
    "Layout",
    "Leaf",
    "LiveRef",
    "Memory",
    "NextRef",
    "OutputRef",
    "Program",
    "Reading",
    "Readings",
    "Ref",
    "ScalarRef",
    "TensorRef",
    "Value",
    "argument_text",
    "as_default",
    "backend_of",
    "bind",
    "clone_with_alignment",
    "drawing_from",
    "find_effects",
    "operands",
    "reading_changed",
    "substituted",
    "takes_generator",
    "writes_directly",
]  # fmt: skip
