"""The graph as flat arrays, the form that numba kernels read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.graph.types import Graph

IntArray = NDArray[np.int32]


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


@dataclass(frozen=True, eq=False)
class GraphArrays:
    """What the planners need of a graph.

    Per op: `reads`, `writes` (storages created or updated, and the workspace), `overwrites` (storages whose memory
    the first written storage may take over), `predecessors` and `successors` (ops), and `creates`, the storage an
    overwriting op creates or -1.
    Per storage: `bytes` (int64), `held` (there before the step), `persistent` (whole again after it), `updated`
    (some op writes it although it exists) and `output` (returned by the step), all bool.
    """

    reads: Csr
    writes: Csr
    overwrites: Csr
    creates: IntArray
    predecessors: Csr
    successors: Csr
    bytes: NDArray[np.int64]
    held: NDArray[np.bool_]
    persistent: NDArray[np.bool_]
    updated: NDArray[np.bool_]
    output: NDArray[np.bool_]

    @property
    def op_count(self) -> int:
        """Number of ops."""
        return len(self.creates)

    @property
    def storage_count(self) -> int:
        """Number of storages, workspaces included."""
        return len(self.bytes)


def arrays(graph: Graph) -> GraphArrays:
    """Build the arrays of a graph; the planners call this once per graph."""
    storages = graph.storages
    held = np.array([storage.held for storage in storages], np.bool_)
    updated = np.zeros(len(storages), np.bool_)
    created: set[int] = {storage.id for storage in storages if storage.held}
    creates = np.full(len(graph.ops), -1, np.int32)
    overwrites: list[tuple[int, ...]] = []
    writes: list[tuple[int, ...]] = []
    for op in graph.ops:
        written = graph.writes[op.id]
        if op.overwrites and written and written[0] not in created:
            creates[op.id] = written[0]
            # read through another tensor as well, its memory cannot go
            elsewhere = {graph.tensors[tensor].storage for tensor in op.inputs if tensor not in op.overwrites}
            donors = dict.fromkeys(
                storage for tensor in op.overwrites if (storage := graph.tensors[tensor].storage) not in elsewhere
            )
            overwrites.append(tuple(donors))
        else:
            overwrites.append(())
        for storage in written:
            updated[storage] |= storage in created
            created.add(storage)
        writes.append(written if op.workspace < 0 else (*written, op.workspace))
    successors: list[list[int]] = [[] for _ in graph.ops]
    for later, before in enumerate(graph.dependencies):
        for earlier in before:
            successors[earlier].append(later)
    return GraphArrays(
        reads=csr(graph.reads),
        writes=csr(writes),
        overwrites=csr(overwrites),
        creates=creates,
        predecessors=csr(graph.dependencies),
        successors=csr(successors),
        bytes=np.array([storage.bytes for storage in storages], np.int64),
        held=held,
        persistent=np.array([storage.persistent for storage in storages], np.bool_),
        updated=updated,
        output=np.array([storage.id in graph.output_storages for storage in storages], np.bool_),
    )
