"""What the search works with: for every op of a graph its description and its strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import torch

from planner import torch_private as private
from planner.graph import Graph, Op
from planner.partition.attributes import read_arguments
from planner.partition.ops import Describer, arguments_by_name, describe, described, describer_of, unknown
from planner.partition.parts import OpCall, Route, computable, route
from planner.partition.strategy import State, Strategy, input_bytes, needs, stage_bytes
from planner.partition.tdl import Description, Operand, Region

#: What was found for a graph last, and what described its operators then.
_FOUND: WeakKeyDictionary[Graph, tuple[dict[str, Describer | None], tuple[SplittableOp, ...]]] = WeakKeyDictionary()

#: By operator, its results that are tensors: the others are numbers, or made of sequences of several lengths only.
_DENSE_RESULTS = {
    "aten._scaled_dot_product_flash_attention.default": (0, 1, 6, 7, 8),
    "aten._scaled_dot_product_cudnn_attention.default": (0, 1, 6, 7),
}


@dataclass(frozen=True, eq=False)
class SplittableOp:
    """An op's description, shared by all ops with the same operator, arguments and shapes.

    Args:
        target: the operator.
        call: its call and what it computes. Inputs are those of `Op.inputs`, in the same order.
        itemsizes: bytes of an element per input.
    """

    target: str
    call: OpCall
    itemsizes: tuple[int, ...]

    @property
    def description(self) -> Description:
        """What it computes."""
        return self.call.description

    @property
    def outputs(self) -> tuple[int, ...]:
        """Per output of the op, the output of the description that it is."""
        return self.call.outputs

    @cached_property
    def strategies(self) -> tuple[Strategy, ...]:
        """All ways of splitting it that workers can compute, but that every worker computes everything."""
        return computable(self.call)

    def route(self, chosen: Sequence[Strategy]) -> Route:
        """How workers compute it by some of its strategies, one for each level at which it is divided."""
        return route(self.call, chosen)

    @cached_property
    def _input_bytes(self) -> dict[tuple[Strategy, int, State, int], int]:
        """What `input_bytes` has returned so far: with pins it is asked for the same again."""
        return {}

    @property
    def opaque(self) -> bool:
        """Whether an output is some function of its inputs that is not known more closely."""
        return self.description.opaque

    @property
    def described(self) -> bool:
        """Whether a description covers this call; every worker has to compute all of the others."""
        return not self.description.unknown

    def output_states(self, strategy: Strategy) -> tuple[State, ...]:
        """How the op's outputs are spread afterwards, in their order; whole if they have no elements."""
        return self.call.gives(strategy)

    def needs(self, strategy: Strategy, workers: int, worker: int) -> tuple[Region | None, ...]:
        """What a worker needs of every input, exactly, halos included; None for nothing of it."""
        return needs(self.description, strategy, workers, worker)

    def input_bytes(self, strategy: Strategy, place: int, have: State, workers: int) -> int:
        """Bytes that all workers together receive for an input that is spread as `have`."""
        key = strategy, place, have, workers
        if key not in self._input_bytes:
            itemsize = self.itemsizes[place]
            self._input_bytes[key] = input_bytes(self.description, strategy, place, have, workers, itemsize)
        return self._input_bytes[key]

    def stage_bytes(self, strategy: Strategy, workers: int) -> int:
        """Bytes that all workers together receive while the op runs."""
        return stage_bytes(strategy, workers, int(self.stage_dtype.itemsize))

    @property
    def stage_dtype(self) -> torch.dtype:
        """In which precision workers combine stages: the greatest of its inputs, and at least single precision."""
        types = (getattr(torch, operand.dtype) for operand in self.description.inputs)
        return torch.float64 if torch.float64 in types else torch.float32


def splittable_ops(graph: Graph) -> tuple[SplittableOp, ...]:
    """Per op of a graph its description and strategies.

    Args:
        graph: the step; it needs no program.
    """
    describers = {target: describer_of(target) for target in {op.target for op in graph.ops}}
    before = _FOUND.get(graph)
    if before is not None and before[0] == describers:
        return before[1]
    known: dict[object, SplittableOp] = {}
    found = []
    for op in graph.ops:
        signature = _signature(graph, op)
        if signature not in known:
            known[signature] = _splittable(graph, op)
        found.append(known[signature])
    _FOUND[graph] = describers, tuple(found)
    return _FOUND[graph][1]


def _signature(graph: Graph, op: Op) -> object:
    tensors = [graph.tensors[tensor] for tensor in (*op.inputs, *op.outputs)]
    return op.target, op.attributes, len(op.inputs), tuple((tensor.shape, tensor.dtype) for tensor in tensors)


def _splittable(graph: Graph, op: Op) -> SplittableOp:
    inputs = [graph.tensors[tensor] for tensor in op.inputs]
    made = [graph.tensors[tensor] for tensor in op.outputs]
    operands = [Operand(f"input {place}", t.shape, place, t.dtype) for place, t in enumerate(inputs)]
    unread = [Operand(f"output {place}", t.shape, -1, t.dtype) for place, t in enumerate(made)]
    itemsizes = tuple(int(getattr(torch, tensor.dtype).itemsize) for tensor in inputs)
    dtypes = tuple(tensor.dtype for tensor in made)
    empty = bool(made) and all(0 in tensor.shape for tensor in made)
    if op.target in described() and not op.random and not empty:
        args, kwargs = read_arguments(op.attributes, operands, unread)
        if (places := _result_places(op, args)) is not None:
            shapes: list[tuple[int, ...] | None] = [None] * (max(places, default=-1) + 1)
            for place, tensor in zip(places, made, strict=True):
                shapes[place] = tensor.shape
            description = describe(op.target, args, kwargs, operands, shapes)
            named = arguments_by_name(op.target, args, kwargs)
            return SplittableOp(
                op.target, OpCall(private.overload(op.target), named, description, places, dtypes), itemsizes
            )
    description = unknown(Description(op.target, tuple(operands), tuple(tensor.shape for tensor in made)))
    return SplittableOp(op.target, OpCall(None, {}, description, tuple(range(len(made))), dtypes), itemsizes)


def _result_places(op: Op, args: Sequence[Any]) -> tuple[int, ...] | None:
    """Which of its kernel's results each output of an op is, as far as its text tells; None if it does not."""
    overload = private.overload(op.target)
    signature = private.schema(overload)
    for number, argument in enumerate(signature.arguments):
        if argument.name in ("output_mask", "grad_input_mask"):
            wanted = tuple(place for place, flag in enumerate(args[number]) if flag)
            return wanted if len(wanted) == len(op.outputs) else None
    if op.target in _DENSE_RESULTS:
        made = _DENSE_RESULTS[op.target]
        return made if len(made) == len(op.outputs) else None
    count = len(signature.returns)
    if not signature.is_mutable:  # then what it updates without declaring it follows what it returns
        updated = private.mutated_arguments(overload, args)
        count += sum(1 for place in updated if isinstance(place, int) and args[place] is not None)
    return tuple(range(count)) if count == len(op.outputs) else None
