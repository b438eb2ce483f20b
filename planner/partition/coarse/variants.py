"""A strategy for each atom of its axis: the ways of splitting an op that the search chooses from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from planner.partition.atoms import Atoms
from planner.partition.coarse.partial_sums import adds_up
from planner.partition.op_strategies import SplittableOp
from planner.partition.strategy import Replicated, Split, State, Strategy, Unread
from planner.partition.tdl import regions


@dataclass(frozen=True, eq=False)
class Variant:
    """A strategy that divides one atom of its axis.

    Args:
        strategy: the strategy; None if every worker computes everything.
        states: how the inputs must be spread before and then how the outputs are afterwards, in the op's order.
        size: how many indices are divided.
        atom: which atom of the axis, the outermost first; -1 for contiguous chunks of the whole axis.
    """

    strategy: Strategy | None
    states: tuple[State, ...]
    size: int
    atom: int = -1

    @property
    def name(self) -> str:
        """The axis, and the atom of it if it has several."""
        if self.strategy is None:
            return "everything"
        return self.strategy.name if self.atom < 0 else f"{self.strategy.name}.{self.atom}"


def variants(op: SplittableOp, tensors: Sequence[int], atoms: Atoms) -> tuple[Variant, ...]:
    """The ways of splitting an op, the last of which is that every worker computes everything.

    Of the strategies that take partial sums those are left out that also read something else in full.

    Args:
        op: the op.
        tensors: its inputs and then its outputs.
        atoms: of the graph.
    """
    found = []
    for strategy in op.strategies:
        states = (*strategy.inputs, *op.output_states(strategy))
        if strategy.axis is None:
            if adds_up(strategy):
                found.append(Variant(strategy, states, strategy.workers()))
            continue
        borders = {
            tuple(atoms.borders(tensor, state) or ()) for tensor, state in zip(tensors, states, strict=True)
            if isinstance(state, Split)
        }  # fmt: skip
        cuts = borders.pop() if strategy.strided and len(borders) == 1 else ()
        if len(cuts) < 3:
            found.append(Variant(strategy, states, strategy.axis.size))
            continue
        for atom, (inner, outer) in enumerate(reversed(list(pairwise(cuts)))):
            parts = tuple(_part(state, inner, outer) if isinstance(state, Split) else state for state in states)
            found.append(Variant(strategy, parts, outer // inner, atom))
    read = regions(op.description, op.description.outputs.values(), {})
    states = tuple(Unread() if region is None else Replicated() for region in read)
    return (*found, Variant(None, states + (Replicated(),) * (len(tensors) - len(states)), 1 << 62))


def _part(split: Split, inner: int, outer: int) -> Split:
    return Split(split.dimension, split.outer * (split.size // outer), outer // inner, split.inner * inner)
