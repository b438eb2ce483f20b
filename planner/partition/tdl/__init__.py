"""The tensor description language: an operator as a formula from output coordinates to a value."""

from planner.partition.tdl.description import Description, Formula, OutputTarget, StageTarget
from planner.partition.tdl.evaluate import FUNCTIONS, evaluate
from planner.partition.tdl.expression import (
    Apply,
    Constant,
    Expression,
    FirstMax,
    Max,
    Min,
    Number,
    Opaque,
    Operand,
    PaddedOperand,
    Position,
    Prod,
    Read,
    Reduce,
    Reduction,
    Sum,
    apply,
    as_expression,
    equal,
    opaque,
    reads,
    walk,
    where,
    within,
)
from planner.partition.tdl.index import Affine, Index, Variable, as_index, counted, digits, exactly, index, indices
from planner.partition.tdl.interval import Range, attained
from planner.partition.tdl.region import Digit, Extent, Region, chunk_ranges, read_region, regions

__all__ = [
    "FUNCTIONS", "Affine", "Apply", "Constant", "Description", "Digit", "Expression", "Extent", "FirstMax", "Formula",
    "Index", "Max", "Min", "Number", "Opaque", "Operand", "OutputTarget", "PaddedOperand", "Position", "Prod", "Range",
    "Read", "Reduce", "Reduction", "Region", "StageTarget", "Sum", "Variable", "apply", "as_expression", "as_index",
    "attained", "chunk_ranges", "counted", "digits", "equal", "evaluate", "exactly", "index", "indices", "opaque",
    "read_region", "reads", "regions", "walk", "where", "within",
]  # fmt: skip
