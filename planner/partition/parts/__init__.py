"""Parts: which ways of splitting an op workers can compute, decided once for what is offered and what is computed."""

from planner.partition.parts.compact import Compacted, compacted
from planner.partition.parts.formulas import only_variable
from planner.partition.parts.kernels import ARANGES, FILLED, SIZED, TABLES
from planner.partition.parts.op_call import OpCall
from planner.partition.parts.routes import Route, computable, route
from planner.partition.parts.windows import IMAGES, windowed_inputs

__all__ = [
    "ARANGES", "FILLED", "IMAGES", "SIZED", "TABLES", "Compacted", "OpCall", "Route", "compacted", "computable",
    "only_variable", "route", "windowed_inputs",
]  # fmt: skip
