"""Every kind of damage that makes a partition plan wrong, applied to a plan that is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import nan, prod

from planner.graph import Graph
from planner.partition import (
    AxisDivision,
    LinearDivision,
    Partial,
    PartitionPlan,
    Reduction,
    Replicated,
    Split,
    Unread,
    splittable_ops,
)

SUM = Partial(Reduction.SUM)


class Damage:
    """Changes one plan of one graph in many ways; the mesh has levels of 3 and 2 workers.

    Args:
        plan: a plan that is right.
        graph: a captured training step of a transformer, for which it is.
    """

    def __init__(self, plan: PartitionPlan, graph: Graph) -> None:
        self.plan, self.graph = plan, graph
        self.roots: list[int] = []
        for tensor in graph.tensors:
            self.roots.append(tensor.id if tensor.base < 0 else self.roots[tensor.base])
        self.parameter = next(
            t.id for t in graph.tensors
            if t.base < 0 and len(t.shape) == 2 and graph.storages[t.storage].name.endswith("weight")
            and isinstance(plan.tensors[t.id][0], Split)
        )  # fmt: skip
        self.updated = max(
            t.id for t in graph.tensors
            if t.base < 0 and t.storage == graph.tensors[self.parameter].storage
        )  # fmt: skip
        self.activation = next(
            op.outputs[0] for op in graph.ops
            if "gelu" in op.target and isinstance(plan.tensors[op.outputs[0]][0], Split)
        )  # fmt: skip
        self.view = next(
            t.id for t in graph.tensors
            if t.base >= 0 and isinstance(plan.tensors[t.id][0], Split) and len(t.shape) == 2
            and plan.tensors[self.roots[t.id]][0] != plan.tensors[t.id][0]
        )  # fmt: skip
        self.product = next(op.id for op in graph.ops if op.target.startswith(("aten.mm", "aten.addmm")))
        self.function = next(op.id for op in graph.ops if "gelu" in op.target)

    def states(self, tensor: int, change: Callable[[tuple], tuple]) -> PartitionPlan:
        rows = list(self.plan.tensors)
        rows[tensor] = change(rows[tensor])
        return replace(self.plan, tensors=tuple(rows))

    def state(self, tensor: int, state: object, level: int = 0) -> PartitionPlan:
        return self.states(tensor, lambda row: (*row[:level], state, *row[level + 1 :]))

    def split(self, tensor: int, level: int = 0, **changes: int) -> PartitionPlan:
        return self.state(tensor, replace(self.plan.tensors[tensor][level], **changes), level)

    def divisions(self, op: int, change: Callable[[tuple], tuple]) -> PartitionPlan:
        rows = list(self.plan.ops)
        rows[op] = change(rows[op])
        return replace(self.plan, ops=tuple(rows))

    def division(self, op: int, division: object, level: int = 0) -> PartitionPlan:
        return self.divisions(op, lambda row: (*row[:level], division, *row[level + 1 :]))

    def kinds(self) -> dict[str, PartitionPlan]:
        """By what is wrong, a plan that is wrong in that way."""
        return {**self._of_the_plan(), **self._of_tensors(), **self._of_views(), **self._of_ops()}

    def _of_the_plan(self) -> dict[str, PartitionPlan]:
        plan = self.plan
        first, second = plan.bytes_per_level
        return {
            "fingerprint of another graph": replace(plan, fingerprint=plan.fingerprint[::-1]),
            "fingerprint is no text": replace(plan, fingerprint=7),
            "mesh without its inner level": replace(plan, mesh=plan.mesh[:1]),
            "mesh of other workers": replace(plan, mesh=(3, 3)),
            "mesh with its levels exchanged": replace(plan, mesh=plan.mesh[::-1]),
            "mesh with a level of one worker": replace(plan, mesh=(3, 1)),
            "mesh of a broken number": replace(plan, mesh=(3, 2.0)),
            "mesh of a negative number": replace(plan, mesh=(3, -2)),
            "mesh with a third level": replace(plan, mesh=(3, 2, 2)),
            "method is no text": replace(plan, method=None),
            "seed is negative": replace(plan, seed=-1),
            "bound is no number": replace(plan, bound=nan),
            "gap is negative": replace(plan, gap=-0.5),
            "more bytes at the outer level": replace(plan, bytes_per_level=(first + 4, second)),
            "fewer bytes at the outer level": replace(plan, bytes_per_level=(first - 4, second)),
            "more bytes at the inner level": replace(plan, bytes_per_level=(first, second + 4)),
            "no bytes at the inner level": replace(plan, bytes_per_level=(first, 0)),
            "bytes of the levels exchanged": replace(plan, bytes_per_level=(second, first)),
            "bytes of one level left out": replace(plan, bytes_per_level=(first + second,)),
            "bytes are negative": replace(plan, bytes_per_level=(first, -second)),
            "bytes are no number": replace(plan, bytes_per_level=(nan, second)),
            "bytes are a truth value": replace(plan, bytes_per_level=(True, second)),
        }

    def _of_tensors(self) -> dict[str, PartitionPlan]:
        plan, parameter, activation = self.plan, self.parameter, self.activation
        old = plan.tensors[parameter][0]
        size = self.graph.tensors[parameter].shape[old.dimension]
        other = self.graph.tensors[parameter].shape[1 - old.dimension]
        made = plan.tensors[activation][0]
        tensors = list(plan.tensors)
        swapped = next(n for n, row in enumerate(tensors) if row != tensors[parameter])
        tensors[parameter], tensors[swapped] = tensors[swapped], tensors[parameter]
        (loss, *_) = self.graph.outputs
        return {
            "a tensor left out": replace(plan, tensors=plan.tensors[:-1]),
            "a level of a tensor left out": self.states(parameter, lambda row: row[:1]),
            "a level of a tensor added": self.states(parameter, lambda row: (*row, Replicated())),
            "states of two tensors exchanged": replace(plan, tensors=tuple(tensors)),
            "parameter whole instead of split": self.state(parameter, Replicated()),
            "parameter split along the other dimension": self.state(parameter, Split(1 - old.dimension, 1, other, 1)),
            "parameter split in strides": self.state(parameter, Split(old.dimension, 1, size // 2, 2)),
            "parameter as partial sums": self.state(parameter, SUM),
            "parameter whole at the end of the step": self.state(self.updated, Replicated()),
            "parameter split otherwise at the end": self.state(self.updated, Split(1 - old.dimension, 1, other, 1)),
            "factors that do not make up the dimension": self.split(parameter, outer=3),
            "a factor of no indices": self.split(parameter, size=0),
            "a negative factor": self.split(parameter, inner=-1),
            "a factor that is not whole": self.split(parameter, inner=1.0),
            "a dimension that does not exist": self.split(parameter, dimension=2),
            "a negative dimension": self.split(parameter, dimension=-1),
            "stored with a halo": self.split(parameter, halo=True),
            "stored as unread": self.state(parameter, Unread()),
            "no state": self.state(parameter, None),
            "a word for a state": self.state(parameter, "split"),
            "activation whole instead of split": self.state(activation, Replicated()),
            "partial sums that a function reads": self.state(activation, SUM),
            "partial results that are no sums": self.state(activation, Partial(Reduction.MAX)),
            "loss as partial sums": self.state(loss, SUM),
            "factors that overlap": self.states(
                activation, lambda _: (Split(2, 1, 128, 1), Split(2, 2, 64, 1))
            ) if self.graph.tensors[activation].shape[-1] == 128 else self.state(activation, None),
            "fewer indices than parts": self.states(
                activation, lambda row: (made, replace(made, outer=made.outer * made.size // 2, size=2))
            ),
        }  # fmt: skip

    def _of_views(self) -> dict[str, PartitionPlan]:
        view = self.view
        shape = self.graph.tensors[view].shape
        split = self.plan.tensors[view][0]
        size = shape[split.dimension]
        root = self.roots[view]
        below = self.plan.tensors[root][0]
        other = 1 - split.dimension
        return {
            "view whole, its root split": self.state(view, Replicated()),
            "view as partial sums, its root split": self.state(view, SUM),
            "view split along the other dimension": self.state(view, Split(other, 1, shape[other], 1)),
            "view split in other strides": self.state(view, Split(split.dimension, 1, size // 2, 2)),
            "view split in other blocks": self.state(view, Split(split.dimension, 2, size // 2, 1)),
            "root whole, its views split": self.state(root, Replicated()),
            "root split in other strides": self.state(
                root, Split(below.dimension, 1, below.size * below.inner * below.outer // 2, 2)
            ),
        }

    def _of_ops(self) -> dict[str, PartitionPlan]:
        plan, product, function = self.plan, self.product, self.function
        division = plan.ops[product][0]
        ops = list(plan.ops)
        ops[product], ops[function] = ops[function], ops[product]
        return {
            "an op left out": replace(plan, ops=plan.ops[:-1]),
            "a level of an op left out": self.divisions(product, lambda row: row[:1]),
            "divisions of two ops exchanged": replace(plan, ops=tuple(ops)),
            "an op that every worker computes": self.division(product, None),
            "an index that does not exist": self.division(product, replace(division, axis="nothing")),
            "an index with another range": self.division(product, replace(division, size=division.size + 1)),
            "an index's factors of other product": self.division(product, replace(division, outer=2)),
            "an index's factor of no values": self.division(product, replace(division, size=0)),
            "an index's factor that is not whole": self.division(product, replace(division, inner=1.0)),
            "an index in strides": self.division(
                product, AxisDivision(division.axis, 1, prod((division.outer, division.size, division.inner)) // 4, 4)
            ),
            "another index of the op": self.other_axis(),
            "parts of an index that overlap": self.divisions(
                product, lambda row: (AxisDivision(division.axis, 1, division.size // 2, 2), division)
            ),
            "partial sums of two factors": self.division(product, LinearDivision((0, 1))),
            "partial sums under a function": self.division(function, LinearDivision((0,))),
            "partial sums of an input that does not exist": self.division(product, LinearDivision((9,))),
            "partial sums of an input twice": self.division(product, LinearDivision((1, 1))),
            "partial sums of no input": self.division(product, LinearDivision(())),
            "partial sums of a negative place": self.division(product, LinearDivision((-1,))),
            "a word for a division": self.division(product, "rows"),
            "a state for a division": self.division(product, Replicated()),
        }

    def other_axis(self) -> PartitionPlan:
        """The matrix product with another of its indices divided."""
        division = self.plan.ops[self.product][0]
        description = splittable_ops(self.graph)[self.product].description
        other = next(axis for axis in description.axes if axis.name != division.axis and axis.size >= 6)
        return self.division(self.product, AxisDivision(other.name, 1, other.size, 1))
