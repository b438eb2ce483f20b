"""The graph of one worker: every op on the worker's chunks, with collectives where tensors are spread otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, cast

import torch

from planner import torch_private as private
from planner.capture import PersistentTensor, Trace, lower
from planner.errors import StowageError
from planner.graph import Graph, Kind, Op, fingerprint
from planner.partition.op_strategies import splittable_ops
from planner.partition.plan import PartitionPlan
from planner.partition.strategy import Partial, Split, State, Unread, chunk
from planner.partition.tdl import Reduction
from planner.partition.workers.cuts import Cut, Spread, Whole, counts, cut_of, part, split_of
from planner.partition.workers.divisions import Divided, divided
from planner.partition.workers.events import WorkerEvents, dense, permuted, refuse
from planner.partition.workers.local_calls import local_arguments, local_range
from planner.program import Call, Layout, Program, ScalarRef, TensorRef, backend_of

_ATEN = torch.ops.aten
_NLL = _ATEN.nll_loss_forward.default
_MEAN, _SUM = 1, 2


def worker_graph(plan: PartitionPlan, graph: Graph, worker: int) -> Graph:
    """The graph of one worker, with its program, for which everything that works on a graph works unchanged.

    Args:
        plan: the partition, of one level.
        graph: the captured step that it is for, with its program.
        worker: which worker.

    Raises:
        StowageError: the plan is for another graph or has several levels, there is no such worker, or an op cannot be
            computed in the parts that the plan chose.
    """
    if not isinstance(graph.program, Program):
        raise StowageError(f"the graph {graph.name} has no program: capture the step again")
    if plan.fingerprint != fingerprint(graph):
        raise StowageError(f"the partition plan is for another graph than {graph.name}")
    if len(plan.mesh) != 1:
        raise StowageError(f"worker graphs of {len(plan.mesh)} levels cannot be made yet: search with one level")
    if graph.program.effects is not None or graph.program.readings.calls:
        raise StowageError(f"{graph.name} changes Python variables or reads its batch in Python, so it stays whole")
    plan.place(worker)
    return _Localiser(plan, graph, graph.program, worker).graph_of_worker()


def local_value(value: torch.Tensor, state: State | None, workers: int, worker: int) -> torch.Tensor:
    """A worker's chunk of a value, as a copy; all of it if it is not split.

    Args:
        value: a parameter, an optimizer state or a tensor of the batch.
        state: how the plan stores it.
        workers, worker: how many there are, and which.
    """
    if not isinstance(state, Split):
        return value.clone()
    shape, (first, last) = value.shape, chunk(state.size, workers, worker)
    apart = value.reshape(
        *shape[: state.dimension], state.outer, state.size, state.inner, *shape[state.dimension + 1 :]
    )
    cut = apart.narrow(state.dimension + 1, first, last - first)
    own = list(shape)
    own[state.dimension] = state.outer * (last - first) * state.inner
    return cut.reshape(own).clone()


@dataclass(frozen=True, slots=True)
class _Held:
    """Where a worker holds what a storage of the whole graph holds."""

    storage: int
    spread: Spread


class _Localiser:
    def __init__(self, plan: PartitionPlan, graph: Graph, program: Program, worker: int) -> None:
        self.plan, self.graph, self.program = plan, graph, program
        self.workers, self.worker = plan.mesh[0], worker
        self.calls = WorkerEvents(self.workers, worker)
        self.held: dict[int, _Held] = {}  # by storage of the graph
        self.fetched: dict[tuple[int, Layout | None, Spread], int] = {}  # by storage, part of it if not all, and spread
        self.checked: set[object] = set()
        self.fake = private.FakeTensorMode(allow_non_fake_inputs=True)
        self.backend = backend_of(graph.device)

    def graph_of_worker(self) -> Graph:
        graph, program, calls = self.graph, self.program, self.calls
        held = []
        for tensor, key in program.state:
            storage = graph.storages[graph.tensors[tensor].storage]
            held.append(PersistentTensor(storage.name, key, storage.kind, "", self._existing(tensor)))
        batch = [(graph.tensors[tensor].name, self._existing(tensor)) for tensor in program.batch]
        constants = []
        for tensor, value in program.constants:
            mine = local_value(value, self.plan.tensors[tensor][0], self.workers, self.worker)
            constants.append((self._existing(tensor), mine))
        ops = splittable_ops(graph)
        for op, call in zip(graph.ops, program.calls, strict=True):
            if op.phase != calls.phase:
                self.fetched.clear()  # so that gathered weights are not kept from the forward to the backward pass
            calls.phase, calls.module, calls.source = op.phase, op.module, op.source
            self._op(op, call, divided(op.name, ops[op.id], self.plan.ops[op.id][0], len(op.outputs)))
        outputs = [self._fetch(tensor, Whole.EVERYWHERE, "the step") for tensor in graph.outputs]
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

    def _spread(self, tensor: int, state: State | None, where: str) -> Spread:
        layout = self._layout(tensor)
        if isinstance(state, Partial):
            if state.reduction is not Reduction.SUM:
                raise refuse(where, f"{state.reduction.value} over workers is not supported")
            return Whole.SUMMED
        if not isinstance(state, Split):
            return Whole.EVERYWHERE
        if state.halo or min(counts(state.size, self.workers)) < 1:
            raise refuse(where, f"{self.graph.tensors[tensor].name} has no chunk for every worker")
        return cut_of(layout, state)

    def _local(self, layout: Layout, storage: int, spread: Spread) -> Layout | None:
        """A tensor of the graph in the worker's storage; None if the spread divides what is no factor of it."""
        if isinstance(spread, Whole):
            return layout._replace(storage=storage)
        split = split_of(layout, spread)
        if split is None:
            return None
        own = counts(spread.size, self.workers)[self.worker]
        return part(layout, spread, split, own)._replace(storage=storage)

    def _hold(self, tensor: int, spread: Spread) -> Layout:
        """A new storage for a whole tensor in a spread."""
        layout = self._layout(tensor)
        name = self.graph.tensors[tensor].name
        if not self._covers(layout) and spread is not Whole.EVERYWHERE:
            raise refuse(name, "it does not fill its memory")
        size = self.graph.storages[layout.storage].bytes
        if isinstance(spread, Cut):
            size = size // spread.size * counts(spread.size, self.workers)[self.worker]
        local = self._local(layout, self.calls.storage(size), spread)
        if local is None:
            raise refuse(name, "its split is not one of its memory")
        return local

    def _existing(self, tensor: int) -> Layout:
        """A tensor that exists before the step; tensors that share memory share it here."""
        storage = self.graph.tensors[tensor].storage
        name = self.graph.tensors[tensor].name
        if storage not in self.held:
            spread = self._spread(tensor, self.plan.tensors[tensor][0], name)
            if spread is Whole.SUMMED:
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
            self.fetched[key] = self.calls.convert(held.storage, dtype, elements, held.spread, want)
        return self.fetched[key]

    def _fetch_view(self, tensor: int, layout: Layout, held: _Held, want: Spread, where: str) -> Layout:
        """A tensor that is only a part of its memory: that part alone is copied and brought to the spread."""
        if held.spread is want is Whole.EVERYWHERE:
            return layout._replace(storage=held.storage)
        order = tuple(sorted(range(len(layout.shape)), key=lambda dimension: -layout.strides[dimension]))
        back = tuple(order.index(dimension) for dimension in range(len(order)))
        layout = permuted(layout, order)  # a view and its transpose are fetched once
        split = split_of(layout, held.spread) if isinstance(held.spread, Cut) else None
        if isinstance(held.spread, Cut) and split is None:
            whole = self._converted(layout.storage, layout.dtype, held, Whole.EVERYWHERE)
            held = _Held(whole, Whole.EVERYWHERE)
            if want is Whole.EVERYWHERE:
                return permuted(layout._replace(storage=whole), back)
        rows = dense(0, layout.shape, layout.dtype)  # the copy's own memory is that of its rows
        spread = held.spread if split is None else cut_of(rows, split)
        if isinstance(want, Cut):
            asked = split_of(layout, want)
            if asked is None:
                raise refuse(where, f"{self.graph.tensors[tensor].name} does not have the split it is read in")
            want = cut_of(rows, asked)
        key = layout.storage, layout, want
        if key not in self.fetched:
            source = self._local(layout, held.storage, held.spread)
            assert source is not None
            copy = self.calls.clone(source)
            self.fetched[key] = self.calls.convert(copy.storage, layout.dtype, layout.elements, spread, want)
        found = self._local(rows, self.fetched[key], want)
        assert found is not None
        return permuted(found, back)

    def _op(self, op: Op, call: Call, way: Divided) -> None:
        wants = dict(zip(op.inputs, way.wants, strict=True))
        gives = dict(zip(op.outputs, way.gives, strict=True))
        written = {self.graph.tensors[tensor].storage for tensor in op.outputs}
        once = way.strategy.once if way.strategy is not None else frozenset()
        locals_: dict[int, Layout] = {}
        for place, tensor in enumerate(op.inputs):
            if self.graph.tensors[tensor].storage in written:
                locals_[tensor] = self._own(op, tensor, wants[tensor])
            elif isinstance(wants[tensor], Unread):
                locals_[tensor] = self._shaped(op, tensor, way)
            else:
                locals_[tensor] = self._fetch(tensor, self._spread(tensor, wants[tensor], op.name), op.name)
                if place in once and self.worker:
                    source = locals_[tensor]
                    locals_[tensor] = self.calls.zeros_like(dense(source.storage, source.shape, source.dtype)
                                                            if not source.dense else source)  # fmt: skip
        fresh: dict[int, tuple[Layout, Spread]] = {}
        for tensor in op.outputs:
            spread = self._spread(tensor, gives[tensor], op.name)
            storage = self.graph.tensors[tensor].storage
            if storage in self.held:
                locals_[tensor] = self._own(op, tensor, gives[tensor])
            else:
                locals_[tensor] = self._hold(tensor, spread)
                fresh[tensor] = locals_[tensor], spread
        results = tuple(None if tensor < 0 else locals_[tensor] for tensor in call.results)
        args = tuple(_filled(value, locals_) for value in call.args)
        kwargs = {name: _filled(value, locals_) for name, value in call.kwargs.items()}
        if call.target is _NLL and way.strategy is not None:
            self._nll(op, args, way, results)
        else:
            args = local_arguments(op.name, call.target, args, way, results)
            target = call.target
            if way.strategy is not None:
                target, args = local_range(op.name, target, args, way.gives[0], self.workers, self.worker)
            self._check(op, target, args, kwargs, results)
            self.calls.add(target, args, *results, **kwargs)
        for storage in written:
            for key in [key for key in self.fetched if key[0] == storage]:
                del self.fetched[key]
        for tensor, (layout, spread) in fresh.items():
            stored = self._spread(tensor, self.plan.tensors[tensor][0], op.name)
            elements = prod(self.graph.tensors[tensor].shape)
            found = layout.storage
            if spread != stored:
                found = self.calls.convert(found, layout.dtype, elements, spread, stored)
            self.held[self.graph.tensors[tensor].storage] = _Held(found, stored)

    def _own(self, op: Op, tensor: int, state: State) -> Layout:
        """A tensor that the op writes in place, which must be spread as it is stored."""
        held = self.held.get(self.graph.tensors[tensor].storage)
        layout = self._layout(tensor)
        spread = self._spread(tensor, state, op.name)
        if held is None or (spread != held.spread and not isinstance(state, Unread)):
            raise refuse(op.name, f"it writes into {self.graph.tensors[tensor].name}, which is stored otherwise")
        local = self._local(layout, held.storage, held.spread)
        if local is None:
            raise refuse(op.name, f"it writes into a part of {self.graph.tensors[tensor].name} across chunks")
        return local

    def _shaped(self, op: Op, tensor: int, way: Divided) -> Layout:
        """What stands for an input of which only the shape matters: memory that nothing is written to."""
        layout = self._layout(tensor)
        like = next((place for place, output in enumerate(op.outputs)
                     if self.graph.tensors[output].shape == layout.shape), None)  # fmt: skip
        spread: Spread = Whole.EVERYWHERE
        if like is not None and isinstance(way.gives[like], Split):
            spread = self._spread(tensor, way.gives[like], op.name)
        held = self.held.get(layout.storage)
        if held is not None and (held.spread == spread or isinstance(held.spread, Whole) is isinstance(spread, Whole)):
            local = self._local(layout, held.storage, held.spread)
            if local is not None and held.spread == spread:
                return local
            if local is not None and isinstance(spread, Whole):
                return local
        if isinstance(spread, Cut) or layout.shape:
            shape = list(layout.shape)
            state = way.gives[like] if like is not None else None
            if isinstance(spread, Cut) and isinstance(state, Split):
                own = counts(state.size, self.workers)[self.worker]
                shape[state.dimension] = state.outer * own * state.inner
            made = self.calls.new(tuple(shape), layout.dtype)
            self.calls.add(_ATEN.empty.memory_format, (tuple(shape),), made, dtype=layout.dtype)
            return made
        return layout._replace(storage=self.calls.new((), layout.dtype).storage)

    def _nll(self, op: Op, args: tuple[Any, ...], way: Divided, results: tuple[Layout | None, ...]) -> None:
        """Rows are divided: losses and weights are added up over all workers, and then divided."""
        scores, target, weight, reduction, ignored = args
        state = way.wants[0]
        if not isinstance(state, Split) or state.dimension != 0 or len(results) != 2 or None in results:
            raise refuse(op.name, "the classes are divided")
        loss, total = cast(tuple[Layout, Layout], results)
        parts = [self.calls.new((), layout.dtype) for layout in (loss, total)]
        self.calls.add(_NLL, (scores, target, weight, _SUM, ignored), *parts)
        sums = [self.calls.all_reduce(layout) for layout in parts]
        if reduction == _MEAN:
            self.calls.add(_ATEN.div.Tensor, (sums[0], sums[1]), loss)
        else:
            self.calls.add(_ATEN.clone.default, (sums[0],), loss)
        self.calls.add(_ATEN.clone.default, (sums[1],), total)

    def _check(
        self, op: Op, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], results: tuple[Layout | None, ...]
    ) -> None:
        """Check on tensors without memory that the worker's call returns tensors of the right shapes."""
        key = target, repr(_plain((args, kwargs)))
        if key in self.checked:
            return
        self.checked.add(key)
        with self.fake, torch.no_grad():
            made: dict[Layout, torch.Tensor] = {}
            real = _faked(args, made), _faked(kwargs, made)
            try:
                found = self.backend.fake_call(target, real[0], real[1])
            except (RuntimeError, ValueError, TypeError, IndexError) as error:
                raise refuse(op.name, f"{target} does not run on chunks: {error}") from error
        values = found if isinstance(found, list | tuple) else [found]
        for value, result in zip(values, results, strict=True):
            if result is not None and (tuple(value.shape), value.dtype) != (result.shape, result.dtype):
                raise refuse(op.name, f"{target} on chunks makes {list(value.shape)} in place of {list(result.shape)}")


def _filled(value: Any, tensors: dict[int, Layout]) -> Any:
    if isinstance(value, TensorRef):
        return tensors[value.tensor]
    if type(value) is tuple or type(value) is list:
        return tuple(_filled(item, tensors) for item in value)
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Layout):
        return value.shape, value.strides, str(value.dtype)
    if type(value) is tuple:
        return tuple(_plain(item) for item in value)
    return {name: _plain(item) for name, item in value.items()} if type(value) is dict else value


def _faked(value: Any, made: dict[Layout, torch.Tensor]) -> Any:
    if isinstance(value, Layout):
        if value not in made:
            made[value] = torch.empty_strided(value.shape, value.strides, dtype=value.dtype)
        return made[value]
    if isinstance(value, ScalarRef):
        return 0.5
    if type(value) is tuple:
        return [_faked(item, made) for item in value]
    return {name: _faked(item, made) for name, item in value.items()} if type(value) is dict else value
