"""The graphs of a step of all sizes, from those of two sizes in which the same ops run.

Where the graphs of two sizes have the same ops on the same storages, bytes and arithmetic are taken to be affine in the
size: right for nearly every op over the batch. It is a guess, which `SizedGraphs` holds against captured graphs.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.graph import Graph
from planner.machine import op_class

Amounts = NDArray[np.float64]
#: Whole numbers up to here are exact in an array; a step with more bytes or FLOP in one op is not predicted.
_EXACT = 2.0**53


def structure(graph: Graph) -> tuple[Any, ...]:
    """All of a graph that a plan depends on, except amounts: equal for graphs in which the same ops run."""
    return (
        tuple((storage.name, storage.kind) for storage in graph.storages),
        tuple((tensor.storage, tensor.dtype) for tensor in graph.tensors),
        tuple(
            (
                op.name, op.target, op.inputs, op.outputs, op.phase, op.module, op.random, op.overwrites, op.workspace,
                op.first_run_only, op.draws_as, op_class(graph, op),
            )
            for op in graph.ops
        ),
        graph.outputs,
    )  # fmt: skip


def amounts(graph: Graph) -> Amounts:
    """The bytes of each storage, then the arithmetic of each op, then its memory traffic."""
    sizes = [storage.bytes for storage in graph.storages]
    return np.array(sizes + [op.flops for op in graph.ops] + [op.bytes for op in graph.ops], np.float64)


class SizeModel:
    """Graphs of all sizes, affine in the size; make one with `between`.

    Args:
        value: a size.
        graph: its graph.
        slope: by how much each of its amounts grows from one size to the next.
        outside_slope: by how much grows what lies outside of the arena, which is the most of several amounts.
    """

    def __init__(self, value: int, graph: Graph, slope: Amounts, outside_slope: Fraction) -> None:
        self.graph, self.structure = graph, structure(graph)
        self._value, self._at, self._slope, self._outside_slope = value, amounts(graph), slope, outside_slope

    @classmethod
    def between(cls, first: tuple[int, Graph], second: tuple[int, Graph]) -> SizeModel | None:
        """The model through the graphs of two sizes; None if other ops run, or an amount does not grow evenly.

        Args:
            first, second: a size and its captured graph, each.
        """
        (value, graph), (other, another) = first, second
        if structure(graph) != structure(another):
            return None
        ends = amounts(graph), amounts(another)
        slope, rest = np.divmod(ends[1] - ends[0], other - value)
        if rest.any() or max(end.max(initial=0) for end in ends) > _EXACT:
            return None
        return cls(value, graph, slope, Fraction(another.outside_bytes - graph.outside_bytes, other - value))

    def _amounts(self, value: int) -> Amounts | None:
        """What the graph of a size should have; None if an amount would be negative, or too large to be exact."""
        found = self._at + self._slope * (value - self._value)
        return found if found.min(initial=0) >= 0 and found.max(initial=0) <= _EXACT else None

    def storage_bytes(self, value: int) -> Amounts | None:
        """`[storages]`, the bytes that the storages of a size should have, or None if it cannot be predicted."""
        found = self._amounts(value)
        return None if found is None else found[: len(self.graph.storages)]

    def outside_bytes(self, value: int) -> int:
        """About what lies outside of the arena in the graph of a size."""
        return max(0, ceil(self.graph.outside_bytes + self._outside_slope * (value - self._value)))

    def predict(self, value: int) -> Graph:
        """The graph that a size should have, for planning alone: shapes and arguments are those of another size.

        Args:
            value: a size that has `storage_bytes`.
        """
        found = self._amounts(value)
        assert found is not None
        ends = [len(self.graph.storages), len(self.graph.storages) + len(self.graph.ops)]
        sizes, flops, traffic = np.split(found.astype(np.int64), ends)
        storages = zip(self.graph.storages, sizes.tolist(), strict=True)
        ops = zip(self.graph.ops, flops.tolist(), traffic.tolist(), strict=True)
        return replace(
            self.graph,
            storages=tuple(replace(storage, bytes=size) for storage, size in storages),
            ops=tuple(replace(op, flops=work, bytes=moved) for op, work, moved in ops),
            outside_bytes=self.outside_bytes(value),
            program=None,
        )

    def is_right(self, value: int, graph: Graph) -> bool:
        """Whether a captured graph is the one that is predicted, but for what lies outside of the arena."""
        found = self._amounts(value)
        return found is not None and structure(graph) == self.structure and bool((found == amounts(graph)).all())
