"""The graph of a step of each size: captured, or predicted from captured ones as long as no capture contradicts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.fit.failing_sizes import SizeFailedError
from planner.fit.size_model import SizeModel, structure
from planner.graph import Graph, Kind
from planner.swap import live_sets

Flags = NDArray[np.bool_]
#: Kinds that grow with the size, for a first guess at which sizes are interesting.
_GROWING = frozenset({Kind.INPUT, Kind.ACTIVATION, Kind.OUTPUT})
#: Fewer values than this are all captured.
_FEW = 5


class SizedGraphs:
    """The graph of each size.

    Args:
        values: the sizes, ascending.
        capture: makes and captures the step of a size.
        device_bytes: memory of the device.
        most_bytes: that and the host's together.
        known: sizes that were captured before.

    Attributes:
        captured: the captured graphs by size.
        wrong: how many predictions turned out to be wrong.
    """

    def __init__(
        self, values: Sequence[int], capture: Callable[[int], Graph], device_bytes: int, most_bytes: int, *,
        known: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.captured: dict[int, Graph] = {}
        self.wrong = 0
        self._values, self._capture = values, capture
        self._model: SizeModel | None = None
        self._right: set[int] = set()  # captured sizes that the model predicts
        self._low, self._high = values[0] - 1, values[-1] + 1  # sizes strictly between are predicted
        self._predicted: dict[int, Graph] = {}
        self._least: dict[int, int] = {}
        self._sets = np.zeros((0, 0), np.bool_)
        start, first = self._first()
        if len(values) < _FEW:
            return
        sets = live_sets(first)
        sizes = _apart([size for size in known if size in values])
        model = None if sizes is None else self._model_through(sizes)
        if sizes is None or model is None:
            sizes = self._guessed_sizes(start, first, sets, device_bytes, most_bytes)
            model = self._model_through(sizes)
        if model is not None:
            start_is_right = model.is_right(values[start], first)
            self._sets = sets if start_is_right else live_sets(model.graph)
            self._right = {*sizes, values[start]} if start_is_right else {*sizes}
        self._model = model

    def _model_through(self, sizes: tuple[int, int]) -> SizeModel | None:
        first, second = ((size, self.capture_of(size)) for size in sizes)
        return SizeModel.between(first, second)

    def _guessed_sizes(
        self, start: int, first: Graph, sets: Flags, device_bytes: int, most_bytes: int
    ) -> tuple[int, int]:
        """Two sizes that are about as large as fit."""
        values = self._values
        place = self._guess(values[start], first, sets, most_bytes)
        near = self.capture_of(values[place])
        alike = structure(near) == structure(first)
        other = self._guess(values[place], near, sets if alike else live_sets(near), most_bytes)
        if other == place:  # about the largest size that fits unswapped is an answer, and captured sooner or later
            other = self._guess(values[place], near, sets if alike else live_sets(near), device_bytes)
        if other in (start, place):
            other = place + 1 if place + 1 < len(values) else place - 1
        return values[place], values[other]

    def _first(self) -> tuple[int, Graph]:
        """The place and the graph of the smallest size; of one in the middle if the smallest cannot be captured."""
        try:
            return 0, self.capture_of(self._values[0])
        except SizeFailedError:
            middle = len(self._values) // 2
            return middle, self.capture_of(self._values[middle])

    @property
    def ops(self) -> int:
        """How many ops the step has."""
        return max(len(graph.ops) for graph in self.captured.values())

    def _guess(self, value: int, graph: Graph, sets: Flags, most_bytes: int) -> int:
        """The place of the largest size that fits if what the forward pass makes grows with the size, and no more."""
        grows = np.array([storage.kind in _GROWING for storage in graph.storages])
        fixed, growing = (sets @ np.where(some, _sizes(graph), 0) for some in (~grows, grows))
        room = np.maximum(most_bytes - fixed, 0)[growing > 0] / growing[growing > 0]
        size = value * float(room.min(initial=np.inf))
        if size >= self._values[-1]:
            return len(self._values) - 1
        return max(bisect_right(self._values, size) - 1, 0)

    def capture_of(self, value: int) -> Graph:
        """The captured graph of a size; where another one was predicted, less is predicted from then on."""
        if value not in self.captured:
            predicted, graph = self.is_predicted(value), self._capture(value)
            self.captured[value] = graph
            if self._model is not None and self._model.is_right(value, graph):
                self._right.add(value)
            elif predicted:
                self._distrust(value)
        return self.captured[value]

    def _distrust(self, value: int) -> None:
        """Predict nothing beyond the right ones where one beyond them was wrong; nothing at all if one between was."""
        self.wrong += 1
        if value < min(self._right):
            self._low = min(self._right)
        elif value > max(self._right):
            self._high = max(self._right)
        else:
            self._model = None

    def is_predicted(self, value: int) -> bool:
        """Whether the graph of a size is predicted rather than captured."""
        if value in self.captured or self._model is None or not self._low < value < self._high:
            return False
        return self._model.storage_bytes(value) is not None

    def outside_is_predicted(self, value: int) -> bool:
        """Whether what lies outside of the arena in a captured graph is what was predicted, if anything was."""
        return self._model is None or self._model.outside_bytes(value) == self.captured[value].outside_bytes

    def graph_of(self, value: int) -> Graph:
        """The graph of a size, predicted if possible."""
        if self._model is None or not self.is_predicted(value):
            return self.capture_of(value)
        if value not in self._predicted:
            self._predicted[value] = self._model.predict(value)
        return self._predicted[value]

    def least_bytes(self, value: int) -> int:
        """Bytes that every plan of a size holds at once on the device and the host together; 0 if it is not known.

        Of a size that is predicted it is known as well as its graph.
        """
        if value in self.captured:
            if value not in self._least:
                graph = self.captured[value]
                sets = self._sets if value in self._right else live_sets(graph)
                self._least[value] = int((sets @ _sizes(graph)).max(initial=0))
            return self._least[value]
        sizes = self._model.storage_bytes(value) if self._model is not None and self.is_predicted(value) else None
        return 0 if sizes is None else int((self._sets @ sizes).max(initial=0))


def _apart(sizes: Sequence[int]) -> tuple[int, int] | None:
    """The largest of some sizes, and the largest that is at most half of it; None if there is none."""
    smaller = [size for size in sizes if 2 * size <= max(sizes)]
    return (max(smaller), max(sizes)) if smaller else None


def _sizes(graph: Graph) -> NDArray[np.float64]:
    return np.array([storage.bytes for storage in graph.storages], np.float64)
