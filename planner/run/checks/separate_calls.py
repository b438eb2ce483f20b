"""Every call of a plan alone, in an arena of NaN, against the same operator on ordinary tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from planner.graph import Graph
from planner.plan import PlanIndex, SwapPlan
from planner.program import BoundCall, Call, Program, ScalarRef, TensorRef, backend_of
from planner.run.checks.eager_reference import same_bits
from planner.run.devices.device import RuntimeDevice
from planner.run.executor.arena.arena_views import ArenaViews
from planner.run.executor.arena.binder import Binder, byte_span
from planner.run.executor.stress import POISON


@dataclass(frozen=True, slots=True)
class CallChecks:
    """What became of the calls of a plan, each made alone.

    Args:
        calls: how many were made.
        compared: how many tensors were compared.
        faults: a sentence for each call that does not do what its operator does, as far as they were looked for.
        scratch_bytes: the most bytes of device memory outside the arena that a call held at once.
        over: a sentence for each call that held more than the plan counts for it, and more than the budget leaves.
    """

    calls: int
    compared: int
    faults: tuple[str, ...]
    scratch_bytes: int
    over: tuple[str, ...]


def check_separate_calls(
    graph: Graph,
    plan: SwapPlan,
    device: RuntimeDevice,
    state: Mapping[str, Tensor],
    batch: Sequence[Tensor],
    report: Callable[[float], object],
) -> CallChecks:
    """Make every call of a plan where the plan has it, and the same operator on tensors with memory of their own.

    Before each call, all of the arena is NaN but its inputs. Afterwards its results must have the bits of the
    operator's, and every other byte of the arena must be what it was. Random numbers are drawn from the device's
    default generator, which is left advanced.

    Args:
        graph: the plan's graph, with its program.
        plan: valid for the graph.
        device: with an arena of `plan.peak_bytes` and a host slab of `plan.host_bytes`.
        state: tensors by the keys of the step's state.
        batch: the leaves of the batch.
        report: called with the share done, 0 to 1.

    Raises:
        StowageError: a call cannot be bound.
    """
    with torch.inference_mode(), torch.autocast(device.name, enabled=False):
        return _SeparateCalls(graph, plan, device, state, batch).check(report)


class _SeparateCalls:
    """The memory of the reference: every storage by itself, with what it holds at this place of the step."""

    def __init__(
        self, graph: Graph, plan: SwapPlan, device: RuntimeDevice, state: Mapping[str, Tensor], batch: Sequence[Tensor]
    ) -> None:
        self._graph, self._plan, self._device = graph.with_workspaces(dict(plan.workspaces)), plan, device
        self._program: Program = graph.program
        self._scalars = self._program.scalars(0)
        index = PlanIndex(self._graph, plan)
        self._views = ArenaViews(index, device.arena, device.host)
        self._binder = Binder(self._graph, self._program, plan, self._views, device.default_generator)
        self._memory: dict[int, Tensor] = {}
        given = [*((t, state[key]) for t, key in self._program.state), *self._program.constants]
        for tensor, value in [*given, *zip(self._program.batch, batch, strict=True)]:
            self._tensor(tensor, self._memory).copy_(value)
        kinds = backend_of(graph.device).undefined
        self._undefined = {
            call.results[place] for call in self._program.calls for place in kinds.get(call.target, frozenset())
        }
        self._compared = 0

    def check(self, report: Callable[[float], object]) -> CallChecks:
        faults, over, most = [], [], 0
        spare = max(self._plan.budget_bytes - self._plan.peak_bytes, 0)  # scratch memory outside of the arena is in it
        generator = self._device.default_generator
        for slot, op in enumerate(self._plan.order):
            report(slot / len(self._plan.order))
            name, before = self._graph.ops[op].name, generator.get_state()
            expected = self._expected(slot)
            after = generator.get_state()
            bound = self._binder.bind(slot, self._scalars)
            generator.set_state(before)
            fault = self._fault(slot, bound, expected, after)
            if fault:
                faults.append(f"{name}: {fault}")
            generator.set_state(before)
            held = self._scratch(slot, bound)
            most = max(most, held)
            if held > self._graph.workspace_bytes(op) + spare:
                over.append(f"{name} held {held:,} bytes and the plan counts {self._graph.workspace_bytes(op):,}")
            generator.set_state(after)
            for tensor, value in expected.items():
                self._tensor(tensor, self._memory).copy_(value)
        return CallChecks(len(self._plan.order), self._compared, tuple(faults), most, tuple(over))

    def _fault(self, slot: int, bound: BoundCall, expected: Mapping[int, Tensor], drawn: Tensor) -> str:
        """What a call does wrong; nothing if it leaves what is expected, and the generator as `drawn`."""
        op, arena = self._graph.ops[self._plan.order[slot]], self._device.arena
        self._place_inputs(slot)
        before = arena.clone()
        self._device.begin()  # after what this thread has done to the arena
        self._device.compute.launch(*bound)
        self._device.synchronize()
        if op.random and not torch.equal(drawn, self._device.default_generator.get_state()):
            return "it draws other random numbers than its operator"
        allowed = torch.zeros(len(arena), dtype=torch.bool, device=arena.device)
        # a backward pass may also write to the memory that its forward pass has left for it
        for tensor in {*expected, *self._undefined.intersection(op.inputs)}:
            first, last = (address - arena.data_ptr() for address in byte_span(self._binder.tensor(tensor, slot)))
            allowed[first:last] = True
        for tensor, value in expected.items():
            if tensor in self._undefined:
                continue
            self._compared += 1
            if not same_bits(self._binder.tensor(tensor, slot), value):
                return f"{self._graph.tensors[tensor].name} has other bits than the operator's result"
        written = (arena != before).logical_and_(~allowed).count_nonzero().item()
        return f"it writes {written:,} bytes outside of its results" if written else ""

    def _scratch(self, slot: int, bound: BoundCall) -> int:
        """The most bytes that a call holds at once outside of the arena."""
        self._place_inputs(slot)
        self._device.begin()
        held = self._device.scratch_bytes(*bound)
        self._device.synchronize()
        return held

    def _place_inputs(self, slot: int) -> None:
        """Fill the arena with NaN, and put the inputs of the op in a slot where it finds them."""
        self._device.arena.fill_(POISON)
        for tensor in self._graph.ops[self._plan.order[slot]].inputs:
            if not self._binder.takes(tensor, slot):
                continue
            place, value = self._binder.tensor(tensor, slot), self._tensor(tensor, self._memory)
            if place.numel():
                _bytes_of(place).copy_(_bytes_of(value))

    def _expected(self, slot: int) -> dict[int, Tensor]:
        """By output of the op in a slot, what its operator makes of ordinary tensors."""
        op = self._plan.order[slot]
        call = self._program.calls[op]
        memory = self._copied(op)
        args = [self._resolve(value, slot, memory) for value in call.args]
        kwargs = {name: self._resolve(value, slot, memory) for name, value in call.kwargs.items()}
        with torch.set_grad_enabled(self._needs_gradients(call)):
            values = call.target(*args, **kwargs)
        values = (values,) if isinstance(values, Tensor) or values is None else tuple(values)
        found = {t: value for t, value in zip(call.results, values, strict=True) if t >= 0 and value is not None}
        for tensor in self._graph.ops[op].outputs:
            if tensor not in found and self._graph.tensors[tensor].storage in memory:
                found[tensor] = self._tensor(tensor, memory)  # written through an argument
        return found

    def _copied(self, op: int) -> dict[int, Tensor]:
        """Copies of all storages that an op may read or write."""
        graph_op = self._graph.ops[op]
        storages = {self._graph.tensors[tensor].storage for tensor in (*graph_op.inputs, *graph_op.outputs)}
        return {storage: self._memory[storage].clone() for storage in storages if storage in self._memory}

    def _needs_gradients(self, call: Call) -> bool:
        results = [None if t < 0 else self._tensor(t, self._memory) for t in call.results]
        return backend_of(self._graph.device).keeps_gradients(call.target, results)

    def _resolve(self, value: Any, slot: int, memory: dict[int, Tensor]) -> Any:
        if isinstance(value, TensorRef):
            return self._tensor(value.tensor, memory) if self._binder.takes(value.tensor, slot) else None
        if isinstance(value, ScalarRef):
            return self._scalars[value.name]
        if isinstance(value, list | tuple):
            return type(value)(self._resolve(item, slot, memory) for item in value)
        return value

    def _tensor(self, tensor: int, memory: dict[int, Tensor]) -> Tensor:
        """A tensor of the graph in a storage of the given memory, which is made when it is first needed."""
        info = self._graph.tensors[tensor]
        if info.storage not in memory:
            size = self._graph.storages[info.storage].bytes
            memory[info.storage] = torch.zeros(size, dtype=torch.uint8, device=self._device.arena.device)
        dtype: torch.dtype = getattr(torch, info.dtype)
        flat = memory[info.storage]
        whole = flat[: len(flat) // dtype.itemsize * dtype.itemsize].view(dtype)
        return whole.as_strided(info.shape, info.strides, info.offset)


def _bytes_of(view: Tensor) -> Tensor:
    """All bytes from the first of a view to its last, `[n]` of uint8."""
    first, last = byte_span(view)
    storage = view.untyped_storage()
    flat = torch.empty(0, dtype=torch.uint8, device=view.device).set_(storage)
    offset = first - storage.data_ptr()
    return flat[offset : offset + last - first]
