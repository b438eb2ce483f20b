"""The storages and tensors of a graph under construction, looked up by recorded layout."""

from __future__ import annotations

from collections.abc import Iterable

from planner.capture.trace.trace import Trace
from planner.graph import GraphBuilder, Kind
from planner.program import Event, Layout, argument_text


class Tensors:
    """Tracks which storage of the graph a recorded storage currently maps to, and how often it has been written."""

    def __init__(self, trace: Trace) -> None:
        self.builder = GraphBuilder(trace.name, modules=dict(trace.modules))
        self._bytes = trace.storage_bytes
        self._kinds = {layout.storage: Kind.GRADIENT for layout in trace.gradients.values()}
        self._titles = {layout.storage: f"{name}.grad" for name, layout in trace.gradients.items()}
        self._literals = trace.literals
        self._held: set[int] = set()
        self._now: dict[int, int] = {}
        self._version: list[int] = []
        self._known: dict[tuple[int, int, Layout], int] = {}
        self._views: dict[Layout, tuple[Layout, Event]] = {}

    def add_live_in(self, layout: Layout, name: str, kind: Kind) -> int:
        """Add a live-in tensor; tensors that share memory share a storage."""
        if layout.storage not in self._now:
            self._now[layout.storage] = self._add_storage(layout, name, kind)
            self._held.add(layout.storage)
        return self.get(layout, name)

    def is_live_in(self, layout: Layout) -> bool:
        """Whether a layout is in a live-in storage."""
        return layout.storage in self._held

    def literal(self, layout: Layout) -> bool:
        """Whether a layout is in a constant that must be the same before every step."""
        return self.is_live_in(layout) and layout.storage in self._literals

    def of_batch(self, layout: Layout) -> bool:
        """Whether a layout is in a tensor of the batch."""
        return self.is_live_in(layout) and self.builder.storages[self._now[layout.storage]].kind is Kind.INPUT

    def exists(self, layout: Layout) -> bool:
        """Whether the storage of a layout is live-in or has been written."""
        return layout.storage in self._now

    def storage(self, layout: Layout) -> int:
        """Return the graph's storage that a layout is in now, or -1 if nothing in the graph has written it."""
        return self._now.get(layout.storage, -1)

    def whole(self, layout: Layout) -> bool:
        """Whether a layout covers its whole storage, each element once."""
        return layout.offset == 0 and layout.bytes == self._bytes[layout.storage] and layout.dense

    def forget(self, written: Iterable[Layout]) -> None:
        """Treat the next write to these layouts as the first."""
        for layout in written:
            self._now.pop(layout.storage, None)
            self._held.discard(layout.storage)

    def get(self, layout: Layout, name: str = "") -> int:
        """Return the graph's tensor of a layout, for the current contents of its storage."""
        storage = self._now[layout.storage]
        key = (storage, self._version[storage], layout)
        known = self._known.get(key)
        if known is not None:
            return known
        base, view, attributes = -1, "", ""
        if not name and layout in self._views:
            source, event = self._views[layout]
            base, view, attributes = self.get(source), str(event.target), argument_text(event, {source: "$0"})
        self._known[key] = tensor = self.builder.add_tensor(
            name or self.builder.storages[storage].name, storage, layout.shape, strides=layout.strides,
            offset=layout.offset, dtype=str(layout.dtype).removeprefix("torch."), base=base, view=view,
            attributes=attributes,
        )  # fmt: skip
        return tensor

    def write(self, layout: Layout, name: str, *, renamed: bool) -> int:
        """Return the tensor that a call writes, in a new storage if `renamed` or if there is none yet."""
        if renamed or layout.storage not in self._now:
            self._held.discard(layout.storage)
            title = self._titles.get(layout.storage, name)
            self._now[layout.storage] = self._add_storage(
                layout, title, self._kinds.get(layout.storage, Kind.ACTIVATION)
            )
        else:
            self._version[self._now[layout.storage]] += 1
        return self.get(layout)

    def mark_output(self, layout: Layout) -> None:
        """Make the storage of a layout an output, unless it already has another role."""
        if layout.storage not in self._held and layout.storage not in self._kinds:
            self.builder.set_kind(self._now[layout.storage], Kind.OUTPUT)

    def note_views(self, event: Event) -> None:
        """Record which tensors the results of a call are views of."""
        if event.mutated:
            return
        for result in event.made:
            source = next((a for a in event.arguments if a.storage == result.storage), None)
            if source is not None and result not in self._views and not self._is_view_of(source, result):
                self._views[result] = (source, event)

    def _is_view_of(self, layout: Layout, base: Layout) -> bool:
        while layout != base and layout in self._views:
            layout = self._views[layout][0]
        return layout == base

    def _add_storage(self, layout: Layout, name: str, kind: Kind) -> int:
        self._version.append(0)
        return self.builder.add_storage(name, self._bytes[layout.storage], kind)
