"""The graph as flat arrays, the form that numba kernels read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from planner.graph.types import Graph

IntArray = NDArray[np.int32]
_known: WeakKeyDictionary[Graph, GraphArrays] = WeakKeyDictionary()


class Csr(NamedTuple):
    """Lists of ints end to end: list `i` is `items[start[i]:start[i + 1]]`."""

    start: IntArray
    items: IntArray


def csr(lists: Iterable[Sequence[int]]) -> Csr:
    """Lay lists of ints end to end."""
    rows = list(lists)
    start = np.zeros(len(rows) + 1, np.int32)
    np.cumsum([len(row) for row in rows], out=start[1:])
    items = np.fromiter((item for row in rows for item in row), np.int32, int(start[-1]))
    return Csr(start, items)


def inverted(before: Sequence[Sequence[int]]) -> list[list[int]]:
    """Invert the lists of ops that come before each op into lists of those that come after it."""
    after: list[list[int]] = [[] for _ in before]
    for later, ops in enumerate(before):
        for earlier in ops:
            after[earlier].append(later)
    return after


@dataclass(frozen=True, eq=False)
class GraphArrays:
    """What the planners need from a graph.

    Per op: `reads`, `writes` (storages created or updated, and the workspace), `overwrites` (storages whose buffer
    the first written storage may reuse), `predecessors` and `successors` (ops), and `creates`, the storage an
    overwriting op creates or -1.
    Per storage: `bytes` (int64), `live_in` (exists before the step), `persistent` (valid again after it), `updated`
    (some op writes it when it already exists) and `live_out` (returned by the step), all bool.
    """

    reads: Csr
    writes: Csr
    overwrites: Csr
    creates: IntArray
    predecessors: Csr
    successors: Csr
    bytes: NDArray[np.int64]
    live_in: NDArray[np.bool_]
    persistent: NDArray[np.bool_]
    updated: NDArray[np.bool_]
    live_out: NDArray[np.bool_]

    @property
    def op_count(self) -> int:
        """Number of ops."""
        return len(self.creates)

    @property
    def storage_count(self) -> int:
        """Number of storages, workspaces included."""
        return len(self.bytes)

    def touches(self, counted: NDArray[np.bool_] | None = None) -> tuple[Csr, NDArray[np.bool_]]:
        """Per op, the storages it reads, then the others it writes, each once.

        Args:
            counted: `[storages]`, those to list; None for all.

        Returns:
            The lists, and whether each entry is written, shape (entries,).
        """
        rows: list[dict[int, bool]] = []
        for op in range(self.op_count):
            reads = self.reads.items[self.reads.start[op] : self.reads.start[op + 1]].tolist()
            writes = self.writes.items[self.writes.start[op] : self.writes.start[op + 1]].tolist()
            row = dict.fromkeys(reads, False) | dict.fromkeys(writes, True)
            rows.append({storage: wrote for storage, wrote in row.items() if counted is None or counted[storage]})
        return csr([list(row) for row in rows]), np.array([wrote for row in rows for wrote in row.values()], np.bool_)


def arrays(graph: Graph) -> GraphArrays:
    """The arrays of a graph, built once in its lifetime; do not change them."""
    if graph not in _known:
        _known[graph] = _built(graph)
    return _known[graph]


def _built(graph: Graph) -> GraphArrays:
    storages = graph.storages
    live_in = np.array([storage.live_in for storage in storages], np.bool_)
    updated = np.zeros(len(storages), np.bool_)
    created: set[int] = {storage.id for storage in storages if storage.live_in}
    creates = np.full(len(graph.ops), -1, np.int32)
    overwrites: list[tuple[int, ...]] = []
    writes: list[tuple[int, ...]] = []
    for op in graph.ops:
        written = graph.writes[op.id]
        if op.overwrites and written and written[0] not in created:
            creates[op.id] = written[0]
            # a storage that is also read through another tensor cannot be overwritten
            read_otherwise = {graph.tensors[tensor].storage for tensor in op.inputs if tensor not in op.overwrites}
            reused_buffers = dict.fromkeys(
                storage for tensor in op.overwrites if (storage := graph.tensors[tensor].storage) not in read_otherwise
            )
            overwrites.append(tuple(reused_buffers))
        else:
            overwrites.append(())
        for storage in written:
            updated[storage] |= storage in created
            created.add(storage)
        writes.append(written if op.workspace < 0 else (*written, op.workspace))
    return GraphArrays(
        reads=csr(graph.reads),
        writes=csr(writes),
        overwrites=csr(overwrites),
        creates=creates,
        predecessors=csr(graph.dependencies),
        successors=csr(inverted(graph.dependencies)),
        bytes=np.array([storage.bytes for storage in storages], np.int64),
        live_in=live_in,
        persistent=np.array([storage.persistent for storage in storages], np.bool_),
        updated=updated,
        live_out=np.array([storage.id in graph.output_storages for storage in storages], np.bool_),
    )
