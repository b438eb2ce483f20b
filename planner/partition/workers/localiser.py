"""The graph of one worker: every op on the worker's chunks, with collectives where tensors are spread otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import torch

from planner.capture import PersistentTensor, Trace, lower
from planner.errors import StowageError
from planner.graph import Graph, Kind, Op, fingerprint
from planner.partition.op_strategies import SplittableOp, splittable_ops
from planner.partition.plan import PartitionPlan, worker_chunks
from planner.partition.strategy import Partial, Split, State, Unread
from planner.partition.tdl import Reduction, Variable
from planner.partition.workers.boxes import places
from planner.partition.workers.divisions import Divided, divided
from planner.partition.workers.events import WorkerEvents, dense, permuted, refuse
from planner.partition.workers.fake_calls import FakeCalls
from planner.partition.workers.formula_calls import FormulaCalls
from planner.partition.workers.local_calls import local_arguments, local_range, obstacle
from planner.partition.workers.redistribution import redistribute
from planner.partition.workers.spreads import (
    Cut,
    Spread,
    Whole,
    chunks,
    cut_of,
    local_part,
    refined,
    splits_of,
)
from planner.program import Call, Layout, Program, TensorRef, backend_of

_ATEN = torch.ops.aten
_NLL = _ATEN.nll_loss_forward.default
_MEAN, _SUM = 1, 2


def worker_graph(plan: PartitionPlan, graph: Graph, worker: int) -> Graph:
    """The graph of one worker, with its program, for which everything that works on a graph works unchanged.

    Args:
        plan: the partition.
        graph: the captured step that it is for, with its program.
        worker: which worker.

    Raises:
        StowageError: the plan is for another graph, there is no such worker, or an op cannot be computed in the parts
            that the plan chose.
    """
    if not isinstance(graph.program, Program):
        raise StowageError(f"the graph {graph.name} has no program: capture the step again")
    if plan.fingerprint != fingerprint(graph):
        raise StowageError(f"the partition plan is for another graph than {graph.name}")
    if graph.program.effects is not None or graph.program.readings.calls:
        raise StowageError(f"{graph.name} changes Python variables or reads its batch in Python, so it stays whole")
    plan.place(worker)
    return _Localiser(plan, graph, graph.program, worker).graph_of_worker()


def local_value(value: torch.Tensor, plan: PartitionPlan, tensor: int, worker: int) -> torch.Tensor:
    """A worker's part of a value, as a copy; all of it if it is not split.

    Args:
        value: a parameter, an optimizer state or a tensor of the batch, whole.
        plan: how the step is split.
        tensor: the tensor of the step that has the value.
        worker: which worker.
    """
    own = worker_chunks(plan, tensor, worker)
    for split in sorted(own, key=lambda split: -split.inner):
        first, last = own[split]
        shape = value.shape
        outer = value.shape[split.dimension] // (split.size * split.inner)
        apart = value.reshape(*shape[: split.dimension], outer, split.size, split.inner, *shape[split.dimension + 1 :])
        kept = list(shape)
        kept[split.dimension] = outer * (last - first) * split.inner
        value = apart.narrow(split.dimension + 1, first, last - first).reshape(kept)
    return value.clone()


@dataclass(frozen=True, slots=True)
class _Held:
    """Where a worker holds what a storage of the whole graph holds."""

    storage: int
    spread: Spread


class _Localiser:
    def __init__(self, plan: PartitionPlan, graph: Graph, program: Program, worker: int) -> None:
        self.plan, self.graph, self.program = plan, graph, program
        self.mesh, self.place, self.worker = plan.mesh, plan.place(worker), worker
        self.whole: Spread = (Whole.EVERYWHERE,) * len(plan.mesh)
        self.calls = WorkerEvents(plan.mesh, self.place)
        self.held: dict[int, _Held] = {}  # by storage of the graph
        self.fetched: dict[tuple[int, Layout | None, Spread], int] = {}  # by storage, part of it if not all, and spread
        self.backend = backend_of(graph.device)
        self.fakes = FakeCalls(self.backend)

    def graph_of_worker(self) -> Graph:
        graph, program, calls = self.graph, self.program, self.calls
        held = []
        for tensor, key in program.state:
            storage = graph.storages[graph.tensors[tensor].storage]
            held.append(PersistentTensor(storage.name, key, storage.kind, "", self._existing(tensor)))
        batch = [(graph.tensors[tensor].name, self._existing(tensor)) for tensor in program.batch]
        constants = []
        for tensor, value in program.constants:
            mine = local_value(value, self.plan, tensor, self.worker)
            constants.append((self._existing(tensor), mine))
        ops = splittable_ops(graph)
        for op, call in zip(graph.ops, program.calls, strict=True):
            if op.phase != calls.phase:
                self.fetched.clear()  # so that gathered weights are not kept from the forward to the backward pass
            calls.phase, calls.module, calls.source = op.phase, op.module, op.source
            ways = tuple(divided(op.name, ops[op.id], division, len(op.outputs)) for division in self.plan.ops[op.id])
            self._op(op, call, ops[op.id], ways)
        outputs = [self._fetch(tensor, self.whole, "the step") for tensor in graph.outputs]
        constants.append((calls.token, torch.empty(0, dtype=torch.uint8)))
        gradients = {
            storage.name.removesuffix(".grad"): dense(self.held[storage.id].storage, (0,), torch.uint8)
            for storage in graph.storages
            if storage.kind is Kind.GRADIENT and storage.id in self.held
        }
        nothing = cast(Any, None)
        trace = Trace(
            graph.name, calls.events, calls.storage_bytes, held, batch, outputs, gradients, constants, set(),
            dict(graph.modules), nothing, {}, {}, None, program.returned, nothing, None, program.readings,
            program.guessed,
        )  # fmt: skip
        return lower(trace, program.scalars, self.backend)

    def _layout(self, tensor: int) -> Layout:
        """A tensor as it is on a single device."""
        found = self.graph.tensors[tensor]
        return Layout(found.storage, found.shape, found.strides, found.offset, getattr(torch, found.dtype))

    def _covers(self, layout: Layout) -> bool:
        return layout.dense and layout.offset == 0 and layout.bytes == self.graph.storages[layout.storage].bytes

    def _spread(self, tensor: int, states: Sequence[State | None], where: str) -> Spread:
        """A tensor's states as a spread of its storage."""
        return self._spread_in(self._layout(tensor), states, where)

    def _spread_in(self, layout: Layout, states: Sequence[State | None], where: str) -> Spread:
        found: list[Whole | Cut] = []
        for state in states:
            if isinstance(state, Partial):
                if state.reduction is not Reduction.SUM:
                    raise refuse(where, f"{state.reduction.value} over workers is not supported")
                found.append(Whole.SUMMED)
            elif isinstance(state, Split):
                if state.halo:
                    raise refuse(where, "its workers would need more than their chunks")
                found.append(cut_of(layout, state))
            else:
                found.append(Whole.EVERYWHERE)
        spread = refined(tuple(found), self.mesh)
        if not all(self._serves_all(spread)):
            raise refuse(where, f"a tensor of shape {list(layout.shape)} has no chunk for every worker")
        return spread

    def _serves_all(self, spread: Spread) -> Iterator[bool]:
        if any(isinstance(level, Cut) for level in spread):
            for place in places(self.mesh):
                yield all(last > first for first, last in chunks(spread, self.mesh, place).values())

    def _local(self, layout: Layout, storage: int, spread: Spread) -> Layout | None:
        """A tensor of the graph in the worker's storage; None if the spread divides what is no factor of it."""
        found = local_part(layout, spread, self.mesh, self.place)
        return None if found is None else found._replace(storage=storage)

    def _hold(self, tensor: int, spread: Spread) -> Layout:
        """A new storage for a whole tensor in a spread."""
        layout = self._layout(tensor)
        name = self.graph.tensors[tensor].name
        if not self._covers(layout) and spread != self.whole:
            raise refuse(name, "it does not fill its memory")
        size = self.graph.storages[layout.storage].bytes
        for cut, (first, last) in chunks(spread, self.mesh, self.place).items():
            size = size // cut.size * (last - first)
        local = self._local(layout, self.calls.storage(size), spread)
        if local is None:
            raise refuse(name, "its split is not one of its memory")
        return local

    def _existing(self, tensor: int) -> Layout:
        """A tensor that exists before the step; tensors that share memory share it here."""
        storage = self.graph.tensors[tensor].storage
        name = self.graph.tensors[tensor].name
        if storage not in self.held:
            spread = self._spread(tensor, self.plan.tensors[tensor], name)
            if Whole.SUMMED in spread:
                raise refuse(name, "it exists before the step and cannot be a partial sum")
            self.held[storage] = _Held(self._hold(tensor, spread).storage, spread)
        held = self.held[storage]
        local = self._local(self._layout(tensor), held.storage, held.spread)
        if local is None:
            raise refuse(name, "the split of its memory is none of its own")
        return local

    def _fetch(self, tensor: int, want: Spread, where: str) -> Layout:
        """A tensor in a spread, the cut in terms of its own layout."""
        layout = self._layout(tensor)
        held = self.held.get(layout.storage)
        if held is None:
            raise refuse(where, f"{self.graph.tensors[tensor].name} is read before it is written")
        if held.spread == want:
            local = self._local(layout, held.storage, want)
            if local is not None:
                return local
        if self._covers(layout):
            converted = self._converted(layout.storage, layout.dtype, held, want)
            local = self._local(layout, converted, want)
            if local is None:
                raise refuse(where, f"a split of {self.graph.tensors[tensor].name} is none of its memory")
            return local
        return self._fetch_view(tensor, layout, held, want, where)

    def _converted(self, storage: int, dtype: torch.dtype, held: _Held, want: Spread) -> int:
        """A storage's contents in another spread, brought there once per phase."""
        if held.spread == want:
            return held.storage
        key = storage, None, want
        if key not in self.fetched:
            elements = self.graph.storages[storage].bytes // dtype.itemsize
            self.fetched[key] = redistribute(self.calls, held.storage, dtype, elements, held.spread, want)
        return self.fetched[key]

    def _fetch_view(self, tensor: int, layout: Layout, held: _Held, want: Spread, where: str) -> Layout:
        """A tensor that is only a part of its memory: that part alone is copied and brought to the spread."""
        if held.spread == want == self.whole:
            return layout._replace(storage=held.storage)
        order = tuple(sorted(range(len(layout.shape)), key=lambda dimension: -layout.strides[dimension]))
        back = tuple(order.index(dimension) for dimension in range(len(order)))
        layout = permuted(layout, order)  # a view and its transpose are fetched once
        splits = splits_of(layout, held.spread)
        if splits is None:
            whole = self._converted(layout.storage, layout.dtype, held, self.whole)
            held, splits = _Held(whole, self.whole), (None,) * len(self.whole)
            if want == self.whole:
                return permuted(layout._replace(storage=whole), back)
        rows = dense(0, layout.shape, layout.dtype)  # the copy's own memory is that of its rows
        spread = _in_rows(rows, splits, held.spread)
        asked = splits_of(layout, want)
        if asked is None:
            raise refuse(where, f"{self.graph.tensors[tensor].name} does not have the split it is read in")
        want = _in_rows(rows, asked, want)
        key = layout.storage, layout, want
        if key not in self.fetched:
            source = self._local(layout, held.storage, held.spread)
            assert source is not None
            copy = self.calls.clone(source)
            self.fetched[key] = redistribute(self.calls, copy.storage, layout.dtype, layout.elements, spread, want)
        found = self._local(rows, self.fetched[key], want)
        assert found is not None
        return permuted(found, back)

    def _op(self, op: Op, call: Call, splittable: SplittableOp, ways: tuple[Divided, ...]) -> None:
        wants = {tensor: tuple(way.wants[place] for way in ways) for place, tensor in enumerate(op.inputs)}
        gives = {tensor: tuple(way.gives[place] for way in ways) for place, tensor in enumerate(op.outputs)}
        written = {self.graph.tensors[tensor].storage for tensor in op.outputs}
        updated = self._updated(op, wants, gives)
        locals_: dict[int, Layout] = {}
        for place, tensor in enumerate(op.inputs):
            if self.graph.tensors[tensor].storage in updated:
                locals_[tensor] = self._to_update(op, tensor, wants[tensor], updated)
            elif any(isinstance(want, Unread) for want in wants[tensor]):
                locals_[tensor] = self._shaped(op, tensor, gives)
            else:
                locals_[tensor] = self._fetch(tensor, self._spread(tensor, wants[tensor], op.name), op.name)
                if self._leaves_out(ways, place):
                    source = locals_[tensor]
                    if not source.dense:
                        source = dense(source.storage, source.shape, source.dtype)
                    locals_[tensor] = self.calls.zeros_like(source)
        fresh: dict[int, tuple[Layout, Spread]] = {}
        for tensor in op.outputs:
            spread = self._spread(tensor, gives[tensor], op.name)
            storage = self.graph.tensors[tensor].storage
            if storage in updated:
                locals_[tensor] = self._to_update(op, tensor, gives[tensor], updated)
            else:
                locals_[tensor] = self._hold(tensor, spread)
                fresh[tensor] = locals_[tensor], spread
        self._call(op, call, splittable, ways, locals_, frozenset(fresh))
        for storage in written:
            for key in [key for key in self.fetched if key[0] == storage]:
                del self.fetched[key]
        for storage, copy in updated.items():
            self._write_back(storage, copy)
        for tensor, (layout, spread) in fresh.items():
            stored = self._spread(tensor, self.plan.tensors[tensor], op.name)
            elements = prod(self.graph.tensors[tensor].shape)
            found = redistribute(self.calls, layout.storage, layout.dtype, elements, spread, stored)
            self.held[self.graph.tensors[tensor].storage] = _Held(found, stored)

    def _call(
        self, op: Op, call: Call, splittable: SplittableOp, ways: tuple[Divided, ...], locals_: dict[int, Layout],
        fresh: frozenset[int],
    ) -> None:  # fmt: skip
        """Add the op's own call on chunks, or what its description says where the kernel would be wrong on them."""
        results = tuple(None if tensor < 0 else locals_[tensor] for tensor in call.results)
        args = tuple(_filled(value, locals_) for value in call.args)
        kwargs = {name: _filled(value, locals_) for name, value in call.kwargs.items()}
        levels = [level for level, way in enumerate(ways) if way.strategy is not None]
        if call.target is _NLL and levels and _divides_rows([ways[level] for level in levels]):
            self._nll(op, args, levels, results)
            return
        if any(obstacle(call.target, args, ways[level], results) for level in levels):
            self._formulas(op, splittable, ways, locals_, fresh)
            return
        target = call.target
        if levels:
            args = local_arguments(target, args, results)
            spread = self._spread(op.outputs[0], [way.gives[0] for way in ways], op.name)
            elements = prod(self.graph.tensors[op.outputs[0]].shape)
            target, args = local_range(op.name, target, args, elements, chunks(spread, self.mesh, self.place))
        self.fakes.check(op.name, target, args, kwargs, results)
        self.calls.add(target, args, *results, **kwargs)

    def _formulas(
        self, op: Op, splittable: SplittableOp, ways: tuple[Divided, ...], locals_: dict[int, Layout],
        fresh: frozenset[int],
    ) -> None:  # fmt: skip
        description = splittable.description
        by_axis: dict[Variable, list[State | None]] = {}
        reduced: dict[str, tuple[Reduction, list[int]]] = {}
        for level, way in enumerate(ways):
            if way.strategy is None or way.strategy.axis is None:
                continue
            by_axis.setdefault(way.strategy.axis, [None] * len(ways))[level] = way.axis
            for stage in way.strategy.stages:
                reduced.setdefault(stage.name, (stage.reduction, []))[1].append(level)
        spreads = {
            axis: self._spread_in(dense(0, (axis.size,), torch.int64), states, op.name)
            for axis, states in by_axis.items()
        }
        tensors = {operand: locals_[tensor] for operand, tensor in zip(description.inputs, op.inputs, strict=True)}
        formulas = FormulaCalls(self.calls, self.fakes, op.name, description, tensors, spreads, reduced)
        outputs = zip(splittable.outputs, op.outputs, strict=True)
        formulas.add([(number, locals_[tensor], tensor not in fresh) for number, tensor in outputs])

    def _leaves_out(self, ways: Sequence[Divided], place: int) -> bool:
        """Whether only another worker may use an input, so that it is not added up several times."""
        return any(
            number and way.strategy is not None and place in way.strategy.once
            for way, number in zip(ways, self.place, strict=True)
        )

    def _updated(
        self, op: Op, wants: dict[int, tuple[State, ...]], gives: dict[int, tuple[State, ...]]
    ) -> dict[int, _Held]:
        """By storage that an op updates in place, where it does so: a copy if the op needs it spread otherwise."""
        found: dict[int, _Held] = {}
        for tensor in op.outputs:
            storage = self.graph.tensors[tensor].storage
            if storage not in self.held or storage in found:
                continue
            held, spread = self.held[storage], self._spread(tensor, gives[tensor], op.name)
            layout = self._layout(tensor)
            if held.spread == spread:
                found[storage] = held
            elif not self._covers(layout):
                name = self.graph.tensors[tensor].name
                raise refuse(op.name, f"it writes into a part of {name}, which is stored otherwise")
            elif any(
                self.graph.tensors[read].storage == storage and not any(isinstance(want, Unread) for want in states)
                for read, states in wants.items()
            ):
                copy = redistribute(self.calls, held.storage, layout.dtype, layout.elements, held.spread, spread)
                if copy in (held.storage, *self.fetched.values()):
                    copy = self.calls.clone(self._flat(copy, layout, spread)).storage
                found[storage] = _Held(copy, spread)
            else:
                local = self._flat(0, layout, spread)
                found[storage] = _Held(self.calls.empty(local.shape, local.dtype).storage, spread)
        return found

    def _flat(self, storage: int, layout: Layout, spread: Spread) -> Layout:
        """All that the worker has of a storage, as a flat tensor."""
        elements = layout.elements
        for cut, (first, last) in chunks(spread, self.mesh, self.place).items():
            elements = elements // cut.size * (last - first)
        return dense(storage, (elements,), layout.dtype)

    def _to_update(self, op: Op, tensor: int, states: Sequence[State], updated: dict[int, _Held]) -> Layout:
        """A tensor that an op reads and writes in place, or writes."""
        name, layout = self.graph.tensors[tensor].name, self._layout(tensor)
        found = updated[layout.storage]
        unread = any(isinstance(state, Unread) for state in states)
        if not unread and self._spread(tensor, states, op.name) != found.spread:
            raise refuse(op.name, f"it reads {name} in one spread and writes it in another")
        local = self._local(layout, found.storage, found.spread)
        if local is None:
            raise refuse(op.name, f"it writes into a part of {name} across chunks")
        return local

    def _write_back(self, storage: int, copy: _Held) -> None:
        """Bring what was updated in a copy to where it is stored."""
        held = self.held[storage]
        if copy.storage == held.storage:
            return
        tensor = next(tensor for tensor in self.graph.tensors if tensor.storage == storage and tensor.base < 0)
        layout = self._layout(tensor.id)
        found = redistribute(self.calls, copy.storage, layout.dtype, layout.elements, copy.spread, held.spread)
        self.calls.copy(self._flat(found, layout, held.spread), self._flat(held.storage, layout, held.spread))

    def _shaped(self, op: Op, tensor: int, gives: dict[int, tuple[State, ...]]) -> Layout:
        """What stands for an input of which only the shape matters: memory that nothing is written to."""
        layout = self._layout(tensor)
        like = next((output for output in op.outputs if self.graph.tensors[output].shape == layout.shape), None)
        given: Sequence[State | None] = (None,) * len(self.mesh) if like is None else gives[like]
        states = [state if isinstance(state, Split) else None for state in given]
        held = self.held.get(layout.storage)
        if held is not None:
            shaped = tuple(Whole.EVERYWHERE if level is Whole.SUMMED else level for level in held.spread)
            local = self._local(layout, held.storage, held.spread)
            if local is not None and shaped == self._spread(tensor, states, op.name):
                return local
        if not layout.shape:
            return self.calls.new((), layout.dtype)
        rows = dense(0, layout.shape, layout.dtype)
        part = local_part(rows, self._spread_in(rows, states, op.name), self.mesh, self.place)
        assert part is not None
        return self.calls.empty(part.shape, layout.dtype)

    def _nll(self, op: Op, args: tuple[Any, ...], levels: Sequence[int], results: tuple[Layout | None, ...]) -> None:
        """Rows are divided: losses and weights are added up over all workers, and then divided."""
        scores, target, weight, reduction, ignored = args
        if len(results) != 2 or None in results:
            raise refuse(op.name, "the weights of its rows are not kept")
        loss, total = cast(tuple[Layout, Layout], results)
        parts = [self.calls.new((), layout.dtype) for layout in (loss, total)]
        self.calls.add(_NLL, (scores, target, weight, _SUM, ignored), *parts)
        sums = [self.calls.all_reduce(layout, levels) for layout in parts]
        if reduction == _MEAN:
            self.calls.add(_ATEN.div.Tensor, (sums[0], sums[1]), loss)
        else:
            self.calls.add(_ATEN.clone.default, (sums[0],), loss)
        self.calls.add(_ATEN.clone.default, (sums[1],), total)


def _divides_rows(ways: Sequence[Divided]) -> bool:
    states = [way.wants[0] for way in ways]
    return all(isinstance(state, Split) and state.dimension == 0 for state in states)


def _in_rows(rows: Layout, splits: Sequence[Split | None], spread: Spread) -> Spread:
    """A spread of the tensor in which splits of rows are cuts of the memory of a copy of them."""
    return tuple(level if split is None else cut_of(rows, split) for split, level in zip(splits, spread, strict=True))


def _filled(value: Any, tensors: dict[int, Layout]) -> Any:
    if isinstance(value, TensorRef):
        return tensors[value.tensor]
    if type(value) is tuple or type(value) is list:
        return tuple(_filled(item, tensors) for item in value)
    return value
