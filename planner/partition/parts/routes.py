"""How a worker computes its part of an op: the one place where it is decided which strategies workers can compute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

import torch

from planner import torch_private as private
from planner.partition.parts.formulas import formula_obstacle
from planner.partition.parts.kernels import is_in_rows, kernel_obstacle
from planner.partition.parts.op_call import OpCall
from planner.partition.parts.windows import window_obstacle, windowed_inputs
from planner.partition.strategy import Partial, Split, Strategy, Unread, strategies
from planner.partition.tdl import Operand, Reduction

_NLL = torch.ops.aten.nll_loss_forward.default
_SUM = Partial(Reduction.SUM)


class Route(Enum):
    """How a worker computes its part of an op."""

    KERNEL = "by its kernel, called on chunks"
    WINDOWS = "by its kernel, called on the regions that it reads"
    ROWS = "by its kernel, called on the rows of a table that the worker has"
    SUMS = "by its kernel, whose sums are added up over the workers"
    FORMULAS = "by the calls that its description is made of"


def computable(call: OpCall) -> tuple[Strategy, ...]:
    """The strategies of an op that workers can compute, at any level of a mesh and together with each other.

    Args:
        call: of the op.
    """
    found = [(strategy, _route(call, strategy)) for strategy in strategies(call.description)]
    by_windows = any(route is Route.WINDOWS for _, route in found)  # what a formula reads is a chunk
    return tuple(strategy for strategy, route in found if route and not (by_windows and route is Route.FORMULAS))


def route(call: OpCall, chosen: Sequence[Strategy]) -> Route:
    """How workers compute an op.

    Args:
        call: of the op.
        chosen: the computable strategies by which it is divided, in the order of levels; none if it is not.
    """
    routes = {_route(call, strategy) for strategy in chosen} - {Route.KERNEL}
    if not routes:
        return Route.KERNEL
    kernels = any(_route(call, strategy) is Route.KERNEL for strategy in chosen)
    if len(routes) > 1 or (kernels and Route.SUMS in routes):
        return Route.FORMULAS
    (only,) = routes
    assert only is not None, "a strategy that workers cannot compute is none to choose"
    return only


def _route(call: OpCall, strategy: Strategy) -> Route | None:
    """How workers compute an op that is divided in one way; None if they cannot."""
    if _SUM in _states(call, strategy) and "bool" in _summed_types(call, strategy):
        return None
    if _updates_otherwise(call, strategy):
        return None
    if windowed_inputs(call, strategy):
        return None if window_obstacle(call, strategy) else Route.WINDOWS
    if is_in_rows(call, strategy):
        return Route.ROWS
    if call.target is _NLL and isinstance(strategy.inputs[0], Split) and strategy.inputs[0].dimension == 0:
        return Route.SUMS
    if not kernel_obstacle(call, strategy):
        return Route.KERNEL
    return None if formula_obstacle(call.description) else Route.FORMULAS


def _updates_otherwise(call: OpCall, strategy: Strategy) -> bool:
    """Whether a tensor that is updated in place is read in one state and left in another, as no memory can be."""
    if call.target is None:
        return False
    written = [
        call.arguments[argument.name] for argument in private.schema(call.target).arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    ]  # fmt: skip
    updated = [operand for operand in written if isinstance(operand, Operand) and operand.place >= 0]
    return any(
        not isinstance(read := strategy.inputs[operand.place], Unread) and read != left
        for operand, left in zip(updated, call.gives(strategy), strict=False)
    )


def _states(call: OpCall, strategy: Strategy) -> Iterable[object]:
    return (*strategy.inputs, *call.gives(strategy))


def _summed_types(call: OpCall, strategy: Strategy) -> set[str]:
    """The types of what is added up."""
    types = (*(operand.dtype for operand in call.description.inputs), *call.dtypes)
    return {kind for kind, state in zip(types, _states(call, strategy), strict=True) if state == _SUM}
