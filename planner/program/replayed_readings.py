"""Replay of the values of a batch that a model's Python code reads: computed from the batch, without the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from planner import torch_private as private
from planner.program.program import Program
from planner.program.readings import Leaf, Reading, Value
from planner.program.recorded_calls import Event, Layout


def reading_changed(program: Program, batch_leaves: Sequence[torch.Tensor]) -> str:
    """Describe the first value that Python code would read from another batch and did not read during the capture.

    Args:
        program: the program of the captured step.
        batch_leaves: the tensor leaves of the batch.

    Returns:
        `"aten.all in module model at masks.py:12 now gives False"`, or `""` if all values are unchanged.
    """
    if not program.readings.calls:
        return ""
    with private.plainly():
        memory = Memory(program.readings.leaves, batch_leaves)
        for call in program.readings.calls:
            if not isinstance(call, Reading):
                memory.run(call)
            elif not _same(value := memory.read(call.call), call.value):
                return f"{call.what} now gives {value}"  # later calls may not fit another value
    return ""


def _same(one: Value, other: Value) -> bool:
    """Whether two values are indistinguishable to Python code; NaN is equal to itself, and 0.0 is not -0.0."""
    return type(one) is type(other) and repr(one) == repr(other)


class Memory:
    """Real tensors in place of recorded layouts.

    Args:
        leaves: the initial tensors.
        batch: the tensor leaves of the batch.
    """

    def __init__(self, leaves: Iterable[Leaf] = (), batch: Sequence[torch.Tensor] = ()) -> None:
        self._places: dict[int, list[tuple[Layout, torch.Tensor]]] = {}
        self._tensors: dict[Layout, torch.Tensor] = {}
        for leaf in leaves:
            self.put(leaf, batch)

    def put(self, leaf: Leaf, batch: Sequence[torch.Tensor]) -> None:
        """Add a tensor that a replay starts from."""
        tensor = (batch[leaf.source] if isinstance(leaf.source, int) else leaf.source).detach()
        self._place(leaf.layout, tensor.clone() if leaf.copied else tensor)

    def holds(self, storage: int) -> bool:
        """Whether a recorded storage has memory here."""
        return storage in self._places

    def run(self, event: Event) -> None:
        """Run a recorded call."""
        self._keep(event, self.result(event))

    def read(self, event: Event) -> Value:
        """Run a recorded call that reads values; if a shape differs, later calls cannot be replayed."""
        result = self.result(event)
        if not event.made:
            value: Value = result
            return value
        shapes = tuple(tuple(tensor.shape) for tensor in flat(result) if tensor is not None)
        if shapes == tuple(layout.shape for layout in event.made):
            self._keep(event, result)
        return shapes

    def result(self, event: Event) -> Any:
        """Run a recorded call and return its result, without storing it."""
        return event.target(*self._real(event.args), **self._real(event.kwargs))

    def _keep(self, event: Event, result: Any) -> None:
        for layout, tensor in zip(event.results, flat(result), strict=True):
            if layout is not None and not self.holds(layout.storage):
                self._place(layout, tensor)

    def _place(self, layout: Layout, tensor: torch.Tensor) -> None:
        if tensor.stride() != layout.strides:
            tensor = torch.empty_strided(layout.shape, layout.strides, dtype=layout.dtype).copy_(tensor)
        self._places.setdefault(layout.storage, []).append((layout, tensor))
        self._tensors.setdefault(layout, tensor)

    def _real(self, value: Any) -> Any:
        if isinstance(value, Layout):
            return self._tensor(value)
        if type(value) is tuple:
            return [self._real(item) for item in value]
        if isinstance(value, Mapping):
            return {name: self._real(item) for name, item in value.items()}
        return value

    def _tensor(self, layout: Layout) -> torch.Tensor:
        """Return a view of existing memory, located by its first element relative to a tensor that covers it."""
        known = self._tensors.get(layout)
        if known is None:
            begin, end = _extent(layout)
            places = self._places[layout.storage]
            covering = [place for place in places if _extent(place[0])[0] <= begin and end <= _extent(place[0])[1]]
            base, tensor = (covering or places)[0]
            offset = int(tensor.storage_offset()) * tensor.itemsize + begin - _extent(base)[0]
            known = torch.empty(0, dtype=layout.dtype).set_(
                tensor.untyped_storage(), offset // layout.dtype.itemsize, layout.shape, layout.strides
            )
            self._tensors[layout] = known
        return known


def _extent(layout: Layout) -> tuple[int, int]:
    """The first byte of a layout in its storage, and the byte after its last."""
    begin, size = layout.offset * layout.dtype.itemsize, layout.dtype.itemsize
    if not layout.elements:
        return begin, begin
    reach = sum((length - 1) * stride for length, stride in zip(layout.shape, layout.strides, strict=True))
    return begin, begin + (reach + 1) * size


def flat(value: Any) -> Iterator[Any]:
    """Yield the values that a call returns, one by one."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from flat(item)
    else:
        yield value
