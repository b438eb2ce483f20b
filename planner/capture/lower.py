"""From recorded kernel calls to the graph and its program.

Views take part only as layouts. A call that works in place stays so where it updates what outlives the step, or only
a part of a tensor; where it makes a whole new value it gets a storage of its own, so that the order of ops is free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch

from planner.capture import torch_private as private
from planner.capture.costs import flops, traffic
from planner.capture.kernels import may_overwrite, writes_directly
from planner.capture.program import Call, Program, ScalarRef, TensorRef
from planner.capture.recorder import Event, Layout
from planner.capture.trace import Trace
from planner.graph import Graph, GraphBuilder, Kind

_ATEN = torch.ops.aten
#: In place, these do not read what was there.
_WRITE_ONLY = frozenset({
    "copy_", "zero_", "fill_", "bernoulli_", "normal_", "uniform_", "random_", "exponential_", "log_normal_",
    "cauchy_", "geometric_",
})  # fmt: skip
_ALLOCATIONS = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"})
_REFUSED = frozenset({"resize_", "set_", "resize_as_", "_resize_output_"})


def lower(trace: Trace, scalars: Callable[[int], Mapping[str, float]]) -> Graph:
    """Build the graph and the program of a trace.

    Args:
        trace: what the step did.
        scalars: the numbers behind each `ScalarRef` name by step number.
    """
    lowering = _Lowering(trace)
    lowering.run()
    return lowering.graph(scalars)


class _Lowering:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.builder = GraphBuilder(trace.name, modules=dict(trace.modules))
        self.calls: list[Call] = []
        self.storage: dict[int, int] = {}  # present storage in the graph, by number in the trace
        self.version: list[int] = []  # per storage of the graph, how often it has been written
        self.tensor: dict[tuple[int, int, Layout], int] = {}
        self.views: dict[Layout, tuple[Layout, Event]] = {}
        self.names: dict[str, int] = {}
        self.held: set[int] = set()
        self.kinds = {layout.storage: Kind.GRADIENT for layout in trace.gradients.values()}
        self.titles = {layout.storage: f"{name}.grad" for name, layout in trace.gradients.items()}
        self.allocations: dict[int, Event] = {}
        self.workspaces: dict[int, int] = {}

    def run(self) -> None:
        """Add what is held, then every call that matters."""
        trace = self.trace
        self.state = tuple((self._hold(h.layout, h.name, h.kind), h.key) for h in trace.held if self._new(h.layout))
        self.batch = tuple(self._hold(layout, name, Kind.INPUT) for name, layout in trace.batch)
        self.constants = tuple(
            (self._hold(layout, f"constant/{place}", Kind.BUFFER), value)
            for place, (layout, value) in enumerate(trace.constants)
            if self._new(layout)
        )
        for event, wanted in zip(trace.events, _wanted(trace), strict=True):
            self._note_views(event)
            if wanted:
                self._lower(event)
        for held in trace.held:
            if held.replaced is not None:
                self._copy_back(held.layout, held.replaced, held.module)
        self.outputs = tuple(self._read(layout) for layout in trace.outputs)

    def graph(self, scalars: Callable[[int], Mapping[str, float]]) -> Graph:
        for number, output in zip((o.storage for o in self.trace.outputs), self.outputs, strict=True):
            storage = self.builder.tensors[output].storage
            if not self.builder.storages[storage].held and number not in self.kinds:
                self.builder.set_kind(storage, Kind.OUTPUT)
        graph = self.builder.build(self.outputs).with_workspaces(self.workspaces)
        program = Program(tuple(self.calls), self.state, self.constants, self.batch, self.outputs[0], scalars)
        return replace(graph, program=program)

    # what is held

    def _new(self, layout: Layout) -> bool:
        return layout.storage not in self.storage or (layout.storage, 0, layout) not in self.tensor

    def _hold(self, layout: Layout, name: str, kind: Kind) -> int:
        if layout.storage not in self.storage:
            self.storage[layout.storage] = self._add_storage(name, layout.storage, kind)
            self.held.add(layout.storage)
        return self._tensor(layout, name)

    def _add_storage(self, name: str, number: int, kind: Kind) -> int:
        self.version.append(0)
        return self.builder.add_storage(name, self.trace.storage_bytes[number], kind)

    # tensors

    def _tensor(self, layout: Layout, name: str = "") -> int:
        """The graph's tensor of a layout in the present version of its storage."""
        storage = self.storage[layout.storage]
        key = (storage, self.version[storage], layout)
        known = self.tensor.get(key)
        if known is not None:
            return known
        base, view, attributes = -1, "", ""
        if not name and layout in self.views:
            source, event = self.views[layout]
            base = self._tensor(source)
            view = str(event.target)
            attributes = _text(event.args, event.kwargs, {source: "$0"}, {})
        self.tensor[key] = identity = self.builder.add_tensor(
            name or self.builder.storages[storage].name, storage, layout.shape, strides=layout.strides,
            offset=layout.offset, dtype=str(layout.dtype).removeprefix("torch."), base=base, view=view,
            attributes=attributes,
        )  # fmt: skip
        return identity

    def _read(self, layout: Layout) -> int:
        """The tensor of a layout that is read; memory that nobody wrote is allocated by a call of its own."""
        if layout.storage not in self.storage:
            self._lower_allocation(layout)
        return self._tensor(layout)

    def _note_views(self, event: Event) -> None:
        if private.mutated_arguments(event.target):
            return
        for result in event.results:
            if result is None or result in self.views:
                continue
            source = next((a for a in _layouts((event.args, event.kwargs)) if a.storage == result.storage), None)
            if source is not None and source != result and not self._descends(source, result):
                self.views[result] = (source, event)

    def _descends(self, layout: Layout, ancestor: Layout) -> bool:
        while layout in self.views:
            layout = self.views[layout][0]
            if layout == ancestor:
                return True
        return False

    # calls

    def _lower(self, event: Event) -> None:
        name = event.target._schema.name.rpartition("::")[2]
        inputs = {layout.storage for layout in _layouts((event.args, event.kwargs))}
        mutated = _mutated(event)
        results = [result for result in event.results if result is not None]
        if not mutated and results and all(result.storage in inputs for result in results):
            return
        if name in _ALLOCATIONS:
            self.allocations[results[0].storage] = event
        elif mutated:
            self._lower_mutation(event, name, mutated)
        elif event.target is _ATEN.convolution_backward.default:
            for part, suffix in _split_convolution_backward(event):
                self._call(part, suffix=suffix)
        else:
            self._call(event)

    def _lower_allocation(self, layout: Layout) -> None:
        event = self.allocations[layout.storage]
        self._call(event)

    def _lower_mutation(self, event: Event, name: str, mutated: list[Layout]) -> None:
        target = mutated[0]
        whole = all(self._covers(layout) for layout in mutated)
        free = not any(layout.storage in self.held for layout in mutated)
        others = [layout for layout in _layouts((event.args[1:], event.kwargs)) if layout not in mutated or True]
        form = private.functional_form(event.target)
        if event.results and event.results[0] is not None and event.results[0].storage != target.storage:
            self._call(event, updated=mutated)  # running statistics beside the results
            return
        write_only = name in _WRITE_ONLY or ("out" in event.kwargs and target not in _layouts(event.args))
        if write_only and whole:
            if free:
                for layout in mutated:
                    self.storage.pop(layout.storage, None)
            self._call(event, in_place=True, fresh=True)
        elif (
            free and whole and len(mutated) == 1 and form is not None and may_overwrite(form, 1)
            and all(other.dtype == target.dtype or not other.shape for other in others)
        ):  # fmt: skip
            self._read(target)
            self._call(event._replace(target=form), renamed=True)
        else:
            self._call(event, in_place=True)

    def _covers(self, layout: Layout) -> bool:
        """Whether a layout is the whole of its storage, each element once."""
        return layout.offset == 0 and layout.bytes == self.trace.storage_bytes[layout.storage] and _dense(layout)

    def _call(
        self,
        event: Event,
        *,
        suffix: str = "",
        in_place: bool = False,
        fresh: bool = False,
        renamed: bool = False,
        updated: list[Layout] = (),  # type: ignore[assignment]
    ) -> None:
        """Add one op.

        Args:
            event: the call; its target may be another than was recorded.
            suffix: for the op's name.
            in_place: the kernel writes into its arguments.
            fresh: and does not read what was there.
            renamed: the result gets a new storage although the recorded call updated its argument.
            updated: arguments that the kernel updates besides its results.
        """
        mutated = _mutated(event) if in_place else []
        skipped = set(mutated) if fresh else set()
        if in_place and not fresh:
            # Before the first write there is nothing to read.
            skipped = {layout for layout in mutated if layout.storage not in self.storage}
        inputs: dict[Layout, int] = {}
        for layout in _layouts((event.args, event.kwargs)):
            if layout not in skipped and layout not in inputs:
                inputs[layout] = self._read(layout)
        name = self._name(event, suffix)
        written = mutated or [result for result in event.results if result is not None]
        references = {layout: f"${place}" for place, layout in enumerate(inputs)}
        outputs = {}
        for place, layout in enumerate(written):
            outputs[layout] = self._write(layout, name, place, len(written), renamed=renamed)
        extra = [self._write(layout, name, 0, 1, renamed=False) for layout in updated]
        refs = {layout: TensorRef(tensor) for layout, tensor in inputs.items()}
        for place, layout in enumerate(written):
            if layout in skipped:
                refs[layout] = TensorRef(outputs[layout])
                references[layout] = f"^{place}"
        results = tuple(-1 if result is None else outputs[result] for result in event.results)
        call = Call(
            event.target, _substituted(event.args, refs), {k: _substituted(v, refs) for k, v in event.kwargs.items()},
            results, in_place,
        )  # fmt: skip
        ordered = tuple(inputs.values())
        op = self.builder.add_op(
            name, str(event.target), ordered, (*outputs.values(), *extra),
            attributes=_text(event.args, event.kwargs, references, {}), phase=event.phase, module=event.module,
            source=event.source, flops=flops(event), moved=traffic([*inputs, *written, *updated]),
            random=torch.Tag.nondeterministic_seeded in event.target.tags,
            overwrites=() if in_place else self._overwrites(event, inputs, written, renamed),
        )  # fmt: skip
        self.calls.append(call)
        if not writes_directly(call):
            self.workspaces[op] = sum(layout.bytes for layout in written)

    def _write(self, layout: Layout, name: str, place: int, count: int, *, renamed: bool) -> int:
        number = layout.storage
        if renamed or number not in self.storage:
            title = self.titles.get(number) or (name if count == 1 else f"{name}:{place}")
            self.storage[number] = self._add_storage(title, number, self.kinds.get(number, Kind.ACTIVATION))
        else:
            self.version[self.storage[number]] += 1
        return self._tensor(layout)

    def _overwrites(
        self, event: Event, inputs: Mapping[Layout, int], written: list[Layout], renamed: bool
    ) -> tuple[int, ...]:
        if len(written) != 1 or not self._covers(written[0]):
            return ()
        result = written[0]
        donors = []
        for place, argument in enumerate(event.args):
            if not isinstance(argument, Layout) or argument.storage in self.held:
                continue
            alike = argument[1:] == result[1:] and self._covers(argument)
            alone = all(other == argument for other in inputs if other.storage == argument.storage)
            if alike and alone and may_overwrite(event.target, place) and inputs[argument] not in donors:
                donors.append(inputs[argument])
        return tuple(donors)

    def _copy_back(self, old: Layout, new: Layout, module: str) -> None:
        source = self._read(new)
        del source
        self._call(
            Event(_ATEN.copy_.default, (old, new), {}, (old,), self.trace.events[-1].phase, module, ""),
            in_place=True, fresh=self._covers(old),
        )  # fmt: skip

    def _name(self, event: Event, suffix: str) -> str:
        kernel = event.target._schema.name.rpartition("::")[2].strip("_")
        name = f"{event.module}/{kernel}{suffix}" if event.module else f"{kernel}{suffix}"
        count = self.names[name] = self.names.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"


def _wanted(trace: Trace) -> list[bool]:
    """Per event, whether anything that leaves the step follows from it; random ones count for their generator."""
    needed = {held.layout.storage for held in trace.held} | {layout.storage for layout in trace.outputs}
    needed |= {held.replaced.storage for held in trace.held if held.replaced is not None}
    wanted = []
    for event in reversed(trace.events):
        mutated = _mutated(event)
        written = {layout.storage for layout in (*mutated, *event.results) if layout is not None}
        useful = torch.Tag.nondeterministic_seeded in event.target.tags or not needed.isdisjoint(written)
        if useful:
            needed.update(layout.storage for layout in _layouts((event.args, event.kwargs)))
        wanted.append(useful)
    return wanted[::-1]


def _mutated(event: Event) -> list[Layout]:
    """The tensors that a call writes into, each once."""
    found: dict[Layout, None] = {}
    for place in private.mutated_arguments(event.target):
        value = event.kwargs.get(place) if isinstance(place, str) else event.args[place : place + 1]
        found.update(dict.fromkeys(_layouts(value)))
    if event.target is _ATEN.native_batch_norm.default and not event.args[5]:
        return []
    return list(found)


def _split_convolution_backward(event: Event) -> Iterator[tuple[Event, str]]:
    """The gradients of a convolution's input and of its weight and bias as two calls, for the same bits.

    PyTorch computes them by two kernels in any case; apart, the weight's can wait.
    """
    *rest, (of_input, of_weight, of_bias) = event.args
    if not (of_input and (of_weight or of_bias)):
        yield event, ""
        return
    data, weight, bias = event.results
    yield event._replace(args=(*rest, (True, False, False)), results=(data, None, None)), ".input"
    yield event._replace(args=(*rest, (False, of_weight, of_bias)), results=(None, weight, bias)), ".weight"


def _dense(layout: Layout) -> bool:
    expected = 1
    for stride, size in sorted((s, n) for s, n in zip(layout.strides, layout.shape, strict=True) if n != 1):
        if size == 0:
            return True
        if stride != expected:
            return False
        expected *= size
    return True


def _layouts(value: Any) -> Iterator[Layout]:
    if isinstance(value, Layout):
        yield value
    elif isinstance(value, tuple) and not isinstance(value, torch.Size):
        for item in value:
            yield from _layouts(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _layouts(item)


def _substituted(value: Any, references: Mapping[Layout, TensorRef]) -> Any:
    if isinstance(value, Layout):
        return references[value]
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(_substituted(item, references) for item in value)
    return value


def _text(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], references: Mapping[Layout, str], _: Mapping[str, Any]
) -> str:
    parts = [_word(value, references) for value in args]
    parts += [f"{name}={_word(value, references)}" for name, value in kwargs.items()]
    return ", ".join(parts)


def _word(value: Any, references: Mapping[Layout, str]) -> str:
    if isinstance(value, Layout):
        return references[value]
    if isinstance(value, ScalarRef):
        return value.name.rpartition("/")[2]
    if isinstance(value, tuple):
        return f"[{', '.join(_word(item, references) for item in value)}]"
    return str(value)
