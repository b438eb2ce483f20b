"""The calls with which a worker computes its part of an op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch

from planner.graph import Graph, Op
from planner.partition.op_strategies import SplittableOp
from planner.partition.parts import ARANGES, IMAGES, TABLES, Route, windowed_inputs
from planner.partition.strategy import Partial, Replicated, Split, State, Unread
from planner.partition.tdl import Range, Reduction, Variable, regions
from planner.partition.workers.events.worker_events import WorkerEvents, dense, refuse
from planner.partition.workers.op_calls.aligned_rows import with_aligned_rows
from planner.partition.workers.op_calls.counting import count
from planner.partition.workers.op_calls.divisions import Divided
from planner.partition.workers.op_calls.fake_calls import FakeCalls
from planner.partition.workers.op_calls.formula_calls import FormulaCalls
from planner.partition.workers.op_calls.images import Windowed, Windows
from planner.partition.workers.op_calls.index_checks import checked_labels
from planner.partition.workers.op_calls.local_calls import local_arguments
from planner.partition.workers.op_calls.lookups import Rows, look_up
from planner.partition.workers.op_calls.windows import windowed_call
from planner.partition.workers.tensors.fetched_tensors import FetchedTensors
from planner.partition.workers.tensors.spreads import Spread, chunks, contiguous
from planner.partition.workers.tensors.stored_tensors import StoredTensors
from planner.partition.workers.tensors.updated_tensors import UpdatedTensors
from planner.program import Backend, Call, Layout, TensorRef, places

_ATEN = torch.ops.aten
_NLL = _ATEN.nll_loss_forward.default
_MEAN, _SUM = 1, 2
#: Kernels that make the image that they count places in.
_TO_IMAGES = frozenset({_ATEN.max_pool2d_with_indices_backward.default})


@dataclass(frozen=True, eq=False)
class _DividedOp:
    """An op while its calls are put together.

    Args:
        op, call, splittable: the op, its call and its description.
        ways: per level, how it is divided.
        tensors: by tensor of the graph, the worker's part of it.
        made: its outputs that did not exist before.
        windowed: by dimension along which it reads other elements than its chunk's, so that chunks must be ranges of
            it, how it is divided there.
    """

    op: Op
    call: Call
    splittable: SplittableOp
    ways: tuple[Divided, ...]
    tensors: dict[int, Layout]
    made: dict[int, Spread]
    windowed: Mapping[int, Divided]

    @property
    def levels(self) -> list[int]:
        """The levels at which it is divided."""
        return [level for level, way in enumerate(self.ways) if way.strategy is not None]

    @property
    def results(self) -> tuple[Layout | None, ...]:
        """What its call returns."""
        return tuple(None if tensor < 0 else self.tensors[tensor] for tensor in self.call.results)

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments of its call, with the worker's parts for tensors."""
        return tuple(_filled(value, self.tensors) for value in self.call.args)


class OpCalls:
    """Adds the calls of one worker, op by op.

    Args:
        graph: the step.
        tensors: where the worker has its tensors.
        fetched: brings it its parts of others.
        backend: of the device that the graph is for.
    """

    def __init__(self, graph: Graph, tensors: StoredTensors, fetched: FetchedTensors, backend: Backend) -> None:
        """Begin with nothing known."""
        self._graph, self._tensors, self._fetched = graph, tensors, fetched
        self._updated = UpdatedTensors(tensors, fetched)
        self._calls: WorkerEvents = tensors.calls
        self._fakes = FakeCalls(backend)

    def add(self, op: Op, call: Call, splittable: SplittableOp, ways: tuple[Divided, ...]) -> None:
        """Fetch what an op needs, compute the worker's part of it, and store what it makes.

        Args:
            op, call: the op and its call on a single device.
            splittable: its description.
            ways: per level, how it is divided.

        Raises:
            StowageError: the op cannot be computed in such parts.
        """
        tensors = self._tensors
        wants: dict[int, tuple[State, ...]] = {}
        for place, tensor in enumerate(op.inputs):
            states = tuple(way.wants[place] for way in ways)
            if wants.setdefault(tensor, states) != states:
                raise refuse(op.name, f"it needs {self._graph.tensors[tensor].name} in two ways at once")
        gives = {tensor: tuple(way.gives[place] for way in ways) for place, tensor in enumerate(op.outputs)}
        divided = _DividedOp(op, call, splittable, ways, {}, {}, _window_ways(splittable, ways))
        updated = self._updated.updated(op, wants, gives)
        windows = self._windows(divided)
        for place, tensor in enumerate(op.inputs):
            if self._graph.tensors[tensor].storage in updated:
                divided.tensors[tensor] = self._updated.to_update(op, tensor, wants[tensor], updated)
            elif any(isinstance(want, Unread) for want in wants[tensor]):
                divided.tensors[tensor] = self._fetched.shaped(op, tensor, gives)
            elif any(map(_has_halo, wants[tensor])):
                self._fetch_windows(divided, place, windows)
            else:
                divided.tensors[tensor] = self._input(divided, place, wants[tensor])
        for tensor in op.outputs:
            if self._graph.tensors[tensor].storage in updated:
                divided.tensors[tensor] = self._updated.to_update(op, tensor, gives[tensor], updated)
            else:
                divided.made[tensor] = tensors.spread(tensor, _combined(gives[tensor]), op.name, divided.windowed)
                divided.tensors[tensor] = tensors.new(tensor, divided.made[tensor])
        self._compute(divided, windows)
        for storage in {self._graph.tensors[tensor].storage for tensor in op.outputs}:
            self._fetched.drop_fetched(storage)
        for storage, copy in updated.items():
            self._updated.write_back(storage, copy)
        for tensor, spread in divided.made.items():
            tensors.settle(tensor, self._combine(divided.tensors[tensor], gives[tensor]), spread)

    def _combine(self, layout: Layout, states: Sequence[State]) -> Layout:
        """What workers have together of a tensor of which each has its largest, smallest or product."""
        by_reduction: dict[Reduction, list[int]] = {}
        for level, state in enumerate(states):
            if isinstance(state, Partial) and state.reduction is not Reduction.SUM:
                by_reduction.setdefault(state.reduction, []).append(level)
        for reduction, levels in by_reduction.items():
            layout = self._calls.all_reduce(layout, levels, reduction)
        return layout

    def _input(self, divided: _DividedOp, place: int, states: tuple[State, ...]) -> Layout:
        """An input as the op needs it: zeros if only another worker may use it, so that it is added up once."""
        op = divided.op
        tensor = op.inputs[place]
        found = self._fetched.fetch(tensor, states, op.name, divided.windowed)
        for way, number in zip(divided.ways, self._calls.place, strict=True):
            if number and way.strategy is not None and place in way.strategy.once:
                return self._calls.zeros_like(found if found.dense else dense(found.storage, found.shape, found.dtype))
        return found

    def _compute(self, divided: _DividedOp, windows: Mapping[int, Windowed]) -> None:
        op, call, args, results = divided.op, divided.call, divided.args, divided.results
        strategies = [way.strategy for way in divided.ways if way.strategy is not None]
        way = divided.splittable.route(strategies)
        if way is Route.WINDOWS:
            image = op.outputs[0] if call.target in _TO_IMAGES else op.inputs[0]
            shape = self._graph.tensors[image].shape
            operands = divided.splittable.call.arguments
            windowed_call(
                Windows(self._calls, op.name, windows, shape[-1] if shape else 1, operands), call.target, args, results
            )
            return
        if way is Route.SUMS:
            self._nll(divided)
            return
        if way is Route.ROWS:
            look_up(self._calls, call.target, args, results, self._rows(divided))
            return
        if way is Route.FORMULAS:
            if call.target is _NLL:
                scores, labels = (self._graph.tensors[tensor] for tensor in op.inputs[:2])
                divided.tensors[labels.id] = checked_labels(self._calls, args[1], scores.shape[1], args[4])
            self._formulas(divided)
            return
        kwargs = {name: _filled(value, divided.tensors) for name, value in call.kwargs.items()}
        if strategies and call.target in ARANGES:
            spread = divided.made.get(op.outputs[0], self._tensors.whole)
            (result,) = results
            assert result is not None
            elements = prod(self._graph.tensors[op.outputs[0]].shape)
            count(self._calls, call.target, args, kwargs, result, elements, spread)
            return
        if strategies:
            args = local_arguments(call.target, args, results)
        args = with_aligned_rows(self._calls, call.target, args)
        self._fakes.check(op.name, call.target, args, kwargs, results)
        self._calls.add(call.target, args, *results, **kwargs)
        if op.random:
            self._calls.note_draw(op)

    def _axes(self, divided: _DividedOp) -> dict[Variable, Spread]:
        """By index variable that is divided, how its values are spread."""
        found: dict[Variable, list[State | None]] = {}
        for level, way in enumerate(divided.ways):
            if way.strategy is not None and way.strategy.axis is not None:
                found.setdefault(way.strategy.axis, [None] * len(divided.ways))[level] = way.axis
        return {
            axis: self._tensors.spread_in(
                dense(0, (axis.size,), torch.int64), states, divided.op.name, (0,) if divided.windowed else ()
            )
            for axis, states in found.items()
        }

    def _formulas(self, divided: _DividedOp) -> None:
        """Compute what the op's description says, where its kernel would be wrong on chunks."""
        description, op = divided.splittable.description, divided.op
        reduced: dict[str, tuple[Reduction, list[int]]] = {}
        for level, way in enumerate(divided.ways):
            for stage in way.strategy.stages if way.strategy is not None else ():
                reduced.setdefault(stage.name, (stage.reduction, []))[1].append(level)
        tensors = {
            operand: divided.tensors[tensor] for operand, tensor in zip(description.inputs, op.inputs, strict=True)
        }
        axes = self._axes(divided)
        dtype = divided.splittable.stage_dtype
        formulas = FormulaCalls(self._calls, self._fakes, op.name, description, tensors, axes, reduced, dtype)
        outputs = zip(divided.splittable.outputs, op.outputs, strict=True)
        formulas.add([(number, divided.tensors[tensor], tensor not in divided.made) for number, tensor in outputs])

    def _rows(self, divided: _DividedOp) -> Rows:
        """The rows of a table that a worker has."""
        axes = {axis.name: (axis.size, spread) for axis, spread in self._axes(divided).items()}
        total, spread = axes[TABLES[divided.call.target]]
        return Rows(total, chunks(spread, self._calls.mesh, self._calls.place))

    def _windows(self, divided: _DividedOp) -> dict[int, Windowed]:
        """By dimension along which the op reads more than its chunks, what the worker makes and reads."""
        found: dict[int, Windowed] = {}
        for dimension, way in divided.windowed.items():
            assert way.strategy is not None
            axis = way.strategy.axis
            assert axis is not None
            ranges = self._axis_ranges(divided, axis)
            needs = {
                place: self._needs(divided, axis, ranges, place, dimension)
                for place, want in enumerate(way.wants)
                if isinstance(want, Split) and want.dimension == dimension
            }
            found[dimension] = Windowed(ranges[self._calls.worker], axis.size, needs)
        return found | self._unread_borders(divided, found) if found else found

    def _unread_borders(self, divided: _DividedOp, windows: Mapping[int, Windowed]) -> dict[int, Windowed]:
        """Other dimensions of an image of which no window reads all, so that nobody is brought what nobody reads."""
        if divided.call.target not in IMAGES:
            return {}
        brought = {place for way in divided.ways for place, want in enumerate(way.wants) if _has_halo(want)}
        made: dict[int, Range] = {}
        needs: dict[int, dict[int, Sequence[Range | None]]] = {}
        for strategy in divided.splittable.strategies:
            for place in brought:
                state, axis = strategy.inputs[place], strategy.axis
                if axis is None or not isinstance(state, Split) or not state.halo or state.dimension in windows:
                    continue
                made[state.dimension] = 0, axis.size
                everywhere = [made[state.dimension]] * prod(self._calls.mesh)
                read = self._needs(divided, axis, everywhere, place, state.dimension)
                needs.setdefault(state.dimension, {})[place] = read
        sizes = [self._graph.tensors[tensor].shape for tensor in divided.op.inputs]
        return {
            dimension: Windowed(made[dimension], made[dimension][1], each)
            for dimension, each in needs.items()
            if any(read[0] != (0, sizes[place][dimension]) for place, read in each.items())
        }

    def _axis_ranges(self, divided: _DividedOp, axis: Variable) -> list[Range]:
        """Per worker, the values of an index variable."""
        spread = self._axes(divided)[axis]
        found = []
        for place in places(self._calls.mesh):
            own = contiguous(axis.size, chunks(spread, self._calls.mesh, place))
            if own is None:
                raise refuse(divided.op.name, f"{axis} is divided in strides, and its parts must be ranges")
            found.append(own)
        return found

    def _needs(
        self, divided: _DividedOp, axis: Variable, ranges: Sequence[Range], place: int, dimension: int
    ) -> list[Range | None]:
        """Per worker, the range of a dimension that it reads of an input."""
        description = divided.splittable.description
        found: list[Range | None] = []
        for own in ranges:
            region = regions(description, description.outputs.values(), {axis: own})[place]
            if region is None:
                found.append(None)
                continue
            first, *inner = region.extents[dimension]
            if not all(digit.whole for digit in inner):
                raise refuse(divided.op.name, "the region that it reads is no range")
            step = prod(digit.size for digit in inner)
            found.append((first.start * step, first.stop * step) if first.stop > first.start else None)
        return found

    def _fetch_windows(self, divided: _DividedOp, place: int, windows: Mapping[int, Windowed]) -> None:
        """Bring the worker the region of an input that it reads."""
        op = divided.op
        tensor = op.inputs[place]
        states = [way.wants[place] for way in divided.ways]
        rest = [None if _has_halo(state) else state for state in states]
        chunked = {state.dimension for state in rest if isinstance(state, Split)}
        needs = {
            dimension: windowed.needs[place]
            for dimension, windowed in windows.items() if place in windowed.needs and dimension not in chunked
        }  # fmt: skip
        divided.tensors[tensor] = self._fetched.fetch_region(tensor, rest, needs, op.name, divided.windowed)

    def _nll(self, divided: _DividedOp) -> None:
        """Rows are divided: losses and weights are added up over all workers, and then divided."""
        scores, target, weight, reduction, ignored = divided.args
        loss, total = divided.results
        parts = [self._calls.new((), scores.dtype) for _ in range(2)]
        self._calls.add(_NLL, (scores, target, weight, _SUM, ignored), *parts)
        if scores.dtype != divided.splittable.stage_dtype:
            parts = [self._converted(part, divided.splittable.stage_dtype) for part in parts]
        losses, weights = (self._calls.all_reduce(layout, divided.levels) for layout in parts)
        if reduction == _MEAN:
            mean = self._calls.new((), losses.dtype)
            self._calls.add(_ATEN.div.Tensor, (losses, weights), mean)
            losses = mean
        for value, result in ((losses, loss), (weights, total)):
            if result is not None:
                self._calls.add(_ATEN._to_copy.default, (value,), result, dtype=result.dtype)

    def _converted(self, layout: Layout, dtype: torch.dtype) -> Layout:
        converted = self._calls.new(layout.shape, dtype)
        self._calls.add(_ATEN._to_copy.default, (layout,), converted, dtype=dtype)
        return converted


def _combined(states: Sequence[State]) -> list[State]:
    """The states of a tensor once what cannot stay partial is combined."""
    return [
        Replicated() if isinstance(state, Partial) and state.reduction is not Reduction.SUM else state
        for state in states
    ]


def _has_halo(state: State) -> bool:
    return isinstance(state, Split) and state.halo


def _window_ways(op: SplittableOp, ways: Sequence[Divided]) -> dict[int, Divided]:
    """By dimension along which an op reads other elements than its chunk's, how it is divided there."""
    return {
        dimension: way for way in ways if way.strategy is not None
        for dimension in windowed_inputs(op.call, way.strategy).values()
    }  # fmt: skip


def _filled(value: Any, tensors: Mapping[int, Layout]) -> Any:
    if isinstance(value, TensorRef):
        return tensors[value.tensor]
    if type(value) is tuple or type(value) is list:
        return tuple(_filled(item, tensors) for item in value)
    return value
