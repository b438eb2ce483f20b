"""Binding of the program's calls: every argument and result becomes a view of its memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from planner.errors import StowageError
from planner.graph import Graph
from planner.plan import Residency, SwapPlan
from planner.program import BoundCall, Call, Program, ScalarRef, TensorRef, backend_of, bind, writes_directly
from planner.run.executor.arena.arena_views import ArenaViews

Scalars = Mapping[str, float]


class Binder:
    """Binds the calls of a plan, slot by slot.

    Args:
        graph: with the plan's workspaces.
        program: its calls.
        plan, views: the plan and its arena views.
        generator: the generator that random ops draw from.
    """

    def __init__(
        self, graph: Graph, program: Program, plan: SwapPlan, views: ArenaViews, generator: torch.Generator
    ) -> None:
        self._graph, self._program, self._plan, self._views = graph, program, plan, views
        self._generator, self._backend = generator, backend_of(graph.device)
        self._repeats = frozenset(views.index.repeats)

    def bind(self, slot: int, scalars: Scalars) -> BoundCall:
        """The call in a slot.

        Raises:
            StowageError: it reads a tensor that is not on the device, or would overwrite an input that its kernel still
                needs.
        """
        op = self._plan.order[slot]
        call = self._program.calls[op]
        args = [self._resolve(value, slot, scalars) for value in call.args]
        kwargs = {name: self._resolve(value, slot, scalars) for name, value in call.kwargs.items()}
        results = [None if t < 0 else self.tensor(t, slot) for t in call.results]
        if not call.in_place and writes_directly(self._backend, call):
            self._refuse_overlap(op, call, slot)
        if self._graph.ops[op].random:
            kwargs["generator"] = self._generator
        return bind(self._backend, call, args, kwargs, results)

    def tensor(self, tensor: int, slot: int) -> torch.Tensor:
        """A tensor of the graph where the op in a slot finds it."""
        return self._views.tensor(tensor, self._residency(tensor, slot))

    def takes(self, tensor: int, slot: int) -> bool:
        """Whether the call in a slot is given an operand of its op: one that ran before goes without some."""
        storage = self._graph.tensors[tensor].storage
        return slot not in self._repeats or storage not in self._graph.ops[self._plan.order[slot]].first_run_only

    def scalar_names(self, op: int) -> frozenset[str]:
        """The names of the numbers that an op's call takes and that change from step to step."""
        call = self._program.calls[op]
        return frozenset(r.name for r in _references((*call.args, *call.kwargs.values())) if isinstance(r, ScalarRef))

    def _resolve(self, value: Any, slot: int, scalars: Scalars) -> Any:
        if isinstance(value, TensorRef):
            return self.tensor(value.tensor, slot) if self.takes(value.tensor, slot) else None
        if isinstance(value, ScalarRef):
            return scalars[value.name]
        if isinstance(value, list | tuple):
            return type(value)(self._resolve(item, slot, scalars) for item in value)
        return value

    def _residency(self, tensor: int, slot: int) -> Residency | None:
        """The residency of a tensor in a slot; that of an input which the op overwrites stops at that slot."""
        storage = self._graph.tensors[tensor].storage
        residency = self._views.index.residency(storage, slot)
        if residency is not None:
            return residency
        op = self._graph.ops[self._plan.order[slot]]
        if any(self._graph.tensors[reused_buffer].storage == storage for reused_buffer in op.overwrites):
            reuser = self._views.index.residency(self._graph.tensors[op.outputs[0]].storage, slot)
            reused_residency = self._views.index.residency_until(storage, slot)
            if reuser is not None and reused_residency is not None and reuser.offset == reused_residency.offset:
                return reused_residency
        return None

    def _refuse_overlap(self, op: int, call: Call, slot: int) -> None:
        """Refuse a result that overlaps an input, unless they coincide exactly and the kernel is known to allow it."""
        written = [t for t in call.results if t >= 0]
        for position, argument in enumerate((*call.args, *call.kwargs.values())):
            for reference in _references((argument,)):
                if not isinstance(reference, TensorRef) or not self.takes(reference.tensor, slot):
                    continue
                for result in written:
                    a = self.tensor(reference.tensor, slot)
                    b = self.tensor(result, slot)
                    if _overlap(a, b) and not (_same(a, b) and self._backend.may_overwrite(call.target, position)):
                        name = self._graph.ops[op].name
                        raise StowageError(f"the plan lets {name} write over an input that it still reads; plan again")


def _references(values: Iterable[Any]) -> Iterable[TensorRef | ScalarRef]:
    for value in values:
        if isinstance(value, TensorRef | ScalarRef):
            yield value
        elif isinstance(value, list | tuple):
            yield from _references(value)


def _overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    (a_start, a_stop), (b_start, b_stop) = byte_span(a), byte_span(b)
    return a_start < b_stop and b_start < a_stop


def byte_span(tensor: torch.Tensor) -> tuple[int, int]:
    """The address of a tensor's first byte, and the one after its last."""
    if tensor.numel() == 0:
        return 0, 0
    reach = 1 + sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), tensor.data_ptr() + reach * tensor.element_size()


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.data_ptr() == b.data_ptr() and a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride()
