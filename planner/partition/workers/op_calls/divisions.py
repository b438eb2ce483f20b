"""What a plan's division of an op means: the states that the op needs of its inputs and leaves of its outputs."""

from __future__ import annotations

from dataclasses import dataclass

from planner.partition.op_strategies import SplittableOp
from planner.partition.plan import AxisDivision, Division, LinearDivision
from planner.partition.strategy import Partial, Replicated, Split, State, Strategy, Unread
from planner.partition.tdl import regions
from planner.partition.workers.events.worker_events import refuse


@dataclass(frozen=True, slots=True)
class Divided:
    """How an op is divided at one level.

    Args:
        strategy: the strategy; None if every worker computes everything.
        wants: per input, how it must be spread before.
        gives: per output, how it is spread afterwards.
        axis: how the index variable's values are divided, as a tensor of them would be split; None if none is.
    """

    strategy: Strategy | None
    wants: tuple[State, ...]
    gives: tuple[State, ...]
    axis: Split | None = None


def divided(name: str, op: SplittableOp, division: Division, outputs: int) -> Divided:
    """The states around an op that is divided in a way.

    Raises:
        StowageError: the op has no such strategy.
    """
    if division is None:
        read = regions(op.description, op.description.outputs.values(), {})
        wants: tuple[State, ...] = tuple(Unread() if region is None else Replicated() for region in read)
        return Divided(None, wants, (Replicated(),) * outputs)
    if isinstance(division, LinearDivision):
        for strategy in op.strategies:
            partial = tuple(place for place, state in enumerate(strategy.inputs) if isinstance(state, Partial))
            if strategy.axis is None and partial == division.inputs:
                return Divided(strategy, strategy.inputs, op.output_states(strategy))
        raise refuse(name, f"it is not linear in its inputs {list(division.inputs)}")
    for strategy in op.strategies:
        if strategy.axis is not None and strategy.axis.name == division.axis:
            wants = tuple(_part(state, division) for state in strategy.inputs)
            gives = tuple(_part(state, division) for state in op.output_states(strategy))
            return Divided(strategy, wants, gives, Split(0, division.outer, division.size, division.inner))
    raise refuse(name, f"no strategy divides {division.axis!r}")


def _part(state: State, division: AxisDivision) -> State:
    if not isinstance(state, Split) or (division.outer == 1 and division.inner == 1):
        return state
    return Split(state.dimension, state.outer * division.outer, division.size, state.inner * division.inner, state.halo)
