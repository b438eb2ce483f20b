"""How much of a graph the descriptions cover, and which ops each worker has to compute whole."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from planner.graph import Graph
from planner.partition.op_strategies import splittable_ops


@dataclass(frozen=True, slots=True)
class OperatorCoverage:
    """The ops of one operator.

    Args:
        target: the operator.
        kind: `described` by formulas, `opaque` along some of its axes and split along others, or `whole` on each
            worker.
        ops: how many there are.
        bytes: bytes that they read and write.
        strategies: the names of the axes along which any of them can be split, `partial sums` among them.
    """

    target: str
    kind: str
    ops: int
    bytes: int
    strategies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a graph is described.

    Args:
        operators: by operator and kind, those with the most bytes first.
    """

    operators: tuple[OperatorCoverage, ...]

    def percent(self, kind: str) -> tuple[float, float]:
        """The share of ops and that of bytes of one kind, in percent."""
        ops = sum(entry.ops for entry in self.operators)
        size = sum(entry.bytes for entry in self.operators)
        here = [entry for entry in self.operators if entry.kind == kind]
        return (
            100 * sum(entry.ops for entry in here) / max(ops, 1),
            100 * sum(entry.bytes for entry in here) / max(size, 1),
        )


def coverage(graph: Graph) -> Coverage:
    """How much of a graph's ops is described, opaque or computed whole by every worker."""
    counts: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    axes: dict[tuple[str, str], dict[str, None]] = {}
    for op, splittable in zip(graph.ops, splittable_ops(graph), strict=True):
        kind = "whole" if not splittable.described else "opaque" if splittable.opaque else "described"
        key = op.target, kind
        counts[key] += 1
        sizes[key] += op.bytes
        axes.setdefault(key, {}).update(dict.fromkeys(strategy.name for strategy in splittable.strategies))
    entries = [
        OperatorCoverage(target, kind, counts[target, kind], sizes[target, kind], tuple(axes[target, kind]))
        for target, kind in counts
    ]
    return Coverage(tuple(sorted(entries, key=lambda entry: (-entry.bytes, entry.target, entry.kind))))
