"""The derivative of dropout as one kernel; dropout itself draws numbers, so every worker draws all of them."""

from __future__ import annotations

from typing import Any

from planner.partition.ops.tensors.pointwise import elementwise
from planner.partition.tdl import Expression


@elementwise("native_dropout_backward.default")
def dropout_backward(grad_output: Any, mask: Any, scale: Any) -> Expression:
    """The gradient where the mask kept x, as much larger as x was."""
    found: Expression = grad_output * mask * scale
    return found
