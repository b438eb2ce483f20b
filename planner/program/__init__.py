"""Executable programs: kernel calls on recorded or live tensors, and the effects of a step."""

from planner.program.argument_references import ScalarRef, TensorRef
from planner.program.isolated_generator import as_default, drawing_from
from planner.program.kernels.backend import Backend
from planner.program.kernels.backend_registry import absent_backend, backend_of, capturing_backend
from planner.program.kernels.collectives import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    COLLECTIVES,
    REDUCE_SCATTER,
    Communicator,
    all_reduce_scratch,
    collective_scratch,
    communicate_by,
)
from planner.program.kernels.rewrites import BoundCall, operands
from planner.program.mesh_places import members, places
from planner.program.out_variants import bind, takes_generator, writes_directly
from planner.program.outputs import ExtrasForm, Outputs, taken_apart
from planner.program.program import Call, Program, StepScalars
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
from planner.program.replayed_readings import Memory, reading_changed

__all__ = [
    "ALLOCATIONS",
    "ALL_GATHER",
    "ALL_REDUCE",
    "ALL_TO_ALL",
    "COLLECTIVES",
    "REDUCE_SCATTER",
    "Backend",
    "BoundCall",
    "Call",
    "Communicator",
    "Effects",
    "Event",
    "ExtrasForm",
    "Layout",
    "Leaf",
    "LiveRef",
    "Memory",
    "NextRef",
    "OutputRef",
    "Outputs",
    "Program",
    "Reading",
    "Readings",
    "Ref",
    "ScalarRef",
    "StepScalars",
    "TensorRef",
    "Value",
    "absent_backend",
    "all_reduce_scratch",
    "argument_text",
    "as_default",
    "backend_of",
    "bind",
    "capturing_backend",
    "clone_with_alignment",
    "collective_scratch",
    "communicate_by",
    "drawing_from",
    "find_effects",
    "members",
    "operands",
    "places",
    "reading_changed",
    "substituted",
    "taken_apart",
    "takes_generator",
    "writes_directly",
]  # fmt: skip
