"""Lowering of recorded kernel calls to a graph and its program.

Views appear only as layouts. An in-place call stays in place if it updates a tensor that outlives the step, or only
part of a tensor. If it computes a whole new value, that value gets a storage of its own, which leaves the order of ops
as free as possible; `Op.overwrites` then states that it may still reuse the buffer of the old value.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch

from planner import torch_private as private
from planner.capture.lower.costs import flops, traffic
from planner.capture.lower.dead_code_elimination import find_live
from planner.capture.lower.decompose import decompose
from planner.capture.lower.tensors import Tensors
from planner.capture.saved.saved_tensor_log import SaveAction
from planner.capture.saved.saved_tensors import SavedTensors, saved_tensors_of
from planner.capture.trace.trace import Trace
from planner.errors import StowageError
from planner.graph import Graph, Kind, Phase
from planner.program import (
    ALLOCATIONS,
    COLLECTIVES,
    Backend,
    Call,
    Event,
    Layout,
    Program,
    StepScalars,
    TensorRef,
    argument_text,
    collective_scratch,
    substituted,
    writes_directly,
)

#: In-place kernels that do not read the previous contents.
_WRITE_ONLY = frozenset({
    "copy_", "zero_", "fill_", "bernoulli_", "normal_", "uniform_", "random_", "exponential_", "log_normal_",
    "cauchy_", "geometric_",
})  # fmt: skip
_ABSOLUTE = frozenset({"as_strided_scatter", "as_strided_copy"})
_REFUSED = frozenset({"resize_", "set_", "resize_as_", "_resize_output_", "unsafe_set_data"})


def lower(trace: Trace, scalars: StepScalars, backend: Backend) -> Graph:
    """Build the graph and the program of a trace.

    Args:
        trace: the recorded step.
        scalars: returns the numbers behind each `ScalarRef` name for a step number.
        backend: of the device that the step was traced for.

    Raises:
        StowageError: a call cannot be represented in a plan.
    """
    return _Lowering(trace, backend).graph(scalars)


def lower_with_saved(trace: Trace, scalars: StepScalars, backend: Backend) -> tuple[Graph, SavedTensors]:
    """Build the graph of a trace, and what autograd saves in it.

    Args:
        trace: the recorded step, with `saved`.
        scalars, backend: as in `lower`.

    Raises:
        StowageError: a call cannot be represented in a plan.
    """
    assert trace.saved is not None
    lowering = _Lowering(trace, backend)
    graph = lowering.graph(scalars)
    return graph, saved_tensors_of(trace.saved, trace.events, lowering.saved, trace.storage_bytes, lowering.ops_before)


class _Lowering:
    def __init__(self, trace: Trace, backend: Backend) -> None:
        self.trace, self.backend = trace, backend
        self.tensors = Tensors(trace)
        self.builder = self.tensors.builder
        self.calls: list[Call] = []
        self.unused: Counter[str] = Counter()
        self.temporaries: dict[int, int] = {}
        self.names: Counter[str] = Counter()
        self.allocations: dict[int, Event] = {}
        self.shaped = trace.readings.shaped
        self.drawing: dict[int, int] = {}  # by place of a call that draws numbers of its own, its op
        self.ops_before: list[int] = []
        self.saved: dict[int, int] = {}
        self._saves: deque[tuple[int, int, Layout]] = deque()
        if trace.saved is not None:
            layouts, actions = trace.saved.layouts, trace.saved.actions
            self._saves.extend((n, calls, layouts[n]) for action, n, calls in actions if action is SaveAction.SAVE)

    def graph(self, scalars: StepScalars) -> Graph:
        trace, tensors = self.trace, self.tensors
        state = [(tensors.add_live_in(one.layout, one.name, one.kind), one.key) for one in trace.persistent]
        batch = [tensors.add_live_in(layout, name, Kind.INPUT) for name, layout in trace.batch]
        constants = [
            (tensors.add_live_in(layout, f"constant/{place}", Kind.BUFFER), value)
            for place, (layout, value) in enumerate(trace.constants)
        ]
        matter = find_live(trace.events, trace.kept)
        for place, (event, matters) in enumerate(zip(trace.events, matter, strict=True)):
            self._before_next_call()
            tensors.note_views(event)
            if matters:
                self._lower(event)
                if event.random and event.draws_as < 0:
                    self.drawing[place] = len(self.calls) - 1
            elif not _only_views(event) and event.kernel not in ALLOCATIONS:
                self.unused[private.kernel_name(event.target)] += 1
        self._before_next_call()
        if not self.calls:
            raise StowageError("the step runs no kernel, so there is nothing to plan: let the model compute something")
        for one in trace.persistent:
            if one.replaced is not None:
                self._read(one.replaced)  # before any copy overwrites the source of another
        for one in trace.persistent:
            if one.replaced is not None:
                self._copy(one.replaced, one.layout, one.module)
        kept = [*trace.outputs, *([] if trace.overflow is None else [trace.overflow])]
        outputs = [self._read(layout) for layout in kept]
        for layout in kept:
            tensors.mark_output(layout)
        program = Program(
            tuple(self.calls), tuple(dict.fromkeys(state)), tuple(constants), tuple(batch), outputs[0], scalars,
            dict(self.unused), self.temporaries, trace.effects, trace.returned, trace.readings, trace.guessed,
            trace.extras, trace.overflow is not None,
        )  # fmt: skip
        # in the graph as well, so that a plan for any machine can be run by our kernels
        graph = self.backend.with_scratch(self.builder.build(outputs), self.temporaries)
        return replace(graph, device=self.backend.device, approximate=self.backend.approximate, program=program)

    def _before_next_call(self) -> None:
        """Note how many ops come before the next recorded call, and the storages of what autograd saved before it."""
        while self._saves and self._saves[0][1] == len(self.ops_before):
            number, _, layout = self._saves.popleft()
            self.saved[number] = self.tensors.storage(layout)
        self.ops_before.append(len(self.calls))

    def _lower(self, event: Event) -> None:
        if _only_views(event):
            return
        if any(layout.storage in self.shaped for layout in event.made):
            line = f" at {event.source}" if event.source else ""
            raise StowageError(
                f"{event.target} in {_place(event)}{line} makes a tensor whose "
                "shape follows from the values of the batch, which a plan cannot hold: use torch.where or a fixed "
                "shape, or compute it before the step and put it into the batch"
            )
        if event.kernel in _REFUSED:
            raise StowageError(
                f"{event.target} in {_place(event)} changes the size of a tensor: make a new tensor there"
            )
        if event.kernel in _ABSOLUTE:
            raise StowageError(
                f"{event.target} in {_place(event)} counts from where a tensor's memory begins, which a plan shares "
                "out: use slice_scatter, select_scatter or diagonal_scatter, or clone what as_strided returns"
            )
        if event.kernel in ALLOCATIONS:
            self.allocations[event.made[0].storage] = event
        elif event.mutated:
            self._lower_mutation(event)
        else:
            for part, suffix in decompose(event):
                self._add(part, suffix=suffix)

    def _lower_mutation(self, event: Event) -> None:
        mutated = event.mutated
        target = mutated[0]
        if any(self.tensors.of_batch(layout) for layout in mutated):
            raise StowageError(
                f"{event.target} in {_place(event)} changes the batch in place, which the next step would not see: "
                "clone it first"
            )
        if event.made and event.made[0].storage != target.storage:
            self._add(event, updated=mutated)  # running statistics in addition to the results
            return
        whole = all(self.tensors.whole(layout) for layout in mutated)
        free = not any(self.tensors.is_live_in(layout) and not self.tensors.literal(layout) for layout in mutated)
        changed = [layout.storage for layout in event.arguments if layout.storage in {m.storage for m in mutated}]
        write_only = (event.kernel in _WRITE_ONLY or "out" in event.kwargs) and len(changed) == len(mutated)
        if write_only and whole:
            if free:
                self.tensors.forget(mutated)
            self._add(event, in_place=True, unread=mutated)
            return
        form = private.functional_form(event.target)
        same_type = all(layout.dtype == target.dtype or not layout.shape for layout in event.arguments)
        alone = free and whole and len(mutated) == 1 and not target.dtype.is_complex
        if alone and form is not None and self.backend.may_overwrite(form, 1) and same_type:
            self._read(target)
            self._add(replace(event, target=form), renamed=True)
            return
        for layout in mutated:
            if self.tensors.literal(layout):
                self._clone(layout, event)
        # Memory that has not been written yet holds nothing to read.
        self._add(event, in_place=True, unread=[layout for layout in mutated if not self.tensors.exists(layout)])

    def _read(self, layout: Layout) -> int:
        """Return the tensor to read; if its memory has not been written, the call that allocates it becomes an op."""
        if not self.tensors.exists(layout):
            allocation = self.allocations.get(layout.storage)
            if allocation is None:
                raise StowageError(
                    "the model reads a tensor that is neither a parameter, a buffer, an attribute of a module nor "
                    "computed in the step: register it as a buffer"
                )
            self._add(allocation)
        return self.tensors.get(layout)

    def _add(
        self,
        event: Event,
        *,
        suffix: str = "",
        in_place: bool = False,
        unread: Sequence[Layout] = (),
        renamed: bool = False,
        updated: Sequence[Layout] = (),
    ) -> None:
        """Add one op.

        Args:
            event: the call; its target may differ from the recorded one.
            suffix: suffix of the op's name.
            in_place: the kernel writes its results into its arguments.
            unread: the written arguments that it does not read.
            renamed: the result gets a new storage although the recorded call updated its argument.
            updated: arguments that the kernel updates in addition to its results.
        """
        inputs: dict[Layout, int] = {}
        for layout in event.arguments:
            if layout not in unread and layout not in inputs:
                inputs[layout] = self._read(layout)
        name = self._name(event, suffix)
        written = event.mutated if in_place else event.made
        titles = [name] if len(written) == 1 else [f"{name}:{place}" for place in range(len(written))]
        outputs = {
            layout: self.tensors.write(layout, title, renamed=renamed)
            for layout, title in zip(written, titles, strict=True)
        }
        extra = [self.tensors.write(layout, name, renamed=False) for layout in updated]
        tensors = {**inputs, **{layout: outputs[layout] for layout in unread}}
        words = {layout: f"${place}" for place, layout in enumerate(inputs)}
        words.update({layout: f"^{place}" for place, layout in enumerate(written) if layout in unread})
        references = {layout: TensorRef(tensor) for layout, tensor in tensors.items()}
        call = Call(
            event.target,
            substituted(event.args, references),
            {key: substituted(value, references) for key, value in event.kwargs.items()},
            tuple(-1 if result is None else outputs[result] for result in event.results),
            in_place,
        )
        op = self.builder.add_op(
            name, str(event.target), inputs.values(), (*outputs.values(), *extra),
            attributes=argument_text(event, words), phase=event.phase, module=event.module, source=event.source,
            flops=flops(event), moved=traffic([*inputs, *written, *updated]), random=event.random,
            overwrites=() if in_place else self._donors(event, inputs),
            first_run_only=self._first_run_only(event, inputs),
            draws_as=-1 if event.draws_as < 0 else self.drawing[event.draws_as],
        )  # fmt: skip
        self.calls.append(call)
        if not writes_directly(self.backend, call):
            self.temporaries[op] = sum(layout.bytes for layout in written)
        elif event.target in COLLECTIVES:
            given = event.args[0]
            self.temporaries[op] = collective_scratch(event.target, given.elements, given.dtype.itemsize, event.args)

    def _donors(self, event: Event, inputs: Mapping[Layout, int]) -> Iterator[int]:
        """Yield the inputs whose buffer the single result may reuse."""
        if len(event.made) != 1 or not self.tensors.whole(event.made[0]):
            return
        if event.made[0].dtype.is_complex:
            return  # products of complex numbers round differently if the result overwrites a factor
        for place, argument in enumerate(event.args):
            if not isinstance(argument, Layout) or argument in event.args[:place]:
                continue
            if self.builder.storages[self.builder.tensors[inputs[argument]].storage].live_in:
                continue
            alike = argument[1:] == event.made[0][1:] and self.tensors.whole(argument)
            alone = all(other == argument for other in inputs if other.storage == argument.storage)
            if alike and alone and self.backend.may_overwrite(event.target, place):
                yield inputs[argument]

    def _first_run_only(self, event: Event, inputs: Mapping[Layout, int]) -> Iterator[int]:
        """Yield the storages that only the first run of the op in a step reads and writes."""
        left_out = {event.args[place] for place in self.backend.first_run_only(event.target, event.args)}
        storages = {self.builder.tensors[inputs[layout]].storage for layout in left_out}
        given = [self.builder.tensors[tensor].storage for layout, tensor in inputs.items() if layout not in left_out]
        if storages.isdisjoint(given):
            yield from sorted(storages)

    def _clone(self, layout: Layout, event: Event) -> None:
        """Copy a constant that a call changes, so that the constant is unchanged for the next step."""
        size = self.trace.storage_bytes[layout.storage] // layout.dtype.itemsize
        whole = Layout(layout.storage, (size,), (1,), 0, layout.dtype)
        clone = Event(torch.ops.aten.clone.default, (whole,), {}, (whole,), event.phase, event.module, event.source)
        self._add(clone, suffix=".literal", renamed=True)

    def _copy(self, source: Layout, target: Layout, module: str) -> None:
        """Copy the tensor that a module holds after the step to where the next step reads it."""
        copy = torch.ops.aten.copy_.default
        phase = Phase.OPTIMIZER if self.trace.gradients else Phase.FORWARD
        event = Event(copy, (target, source), {}, (target,), phase, module, "")
        self._add(event, suffix=".back", in_place=True, unread=[target] if self.tensors.whole(target) else [])

    def _name(self, event: Event, suffix: str) -> str:
        kernel = event.kernel.strip("_") + suffix
        name = f"{event.module}/{kernel}" if event.module else kernel
        self.names[name] += 1
        return name if self.names[name] == 1 else f"{name}#{self.names[name]}"


def _place(event: Event) -> str:
    return f"module {event.module}" if event.module else "the model"


def _only_views(event: Event) -> bool:
    """Whether a call produces only views of its arguments, or nothing at all."""
    inputs = {layout.storage for layout in event.arguments}
    return not event.mutated and all(result.storage in inputs for result in event.made)
