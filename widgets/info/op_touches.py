"""The storages that each op touches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.graph import Graph, IntArray, arrays
from widgets.info.argument_types import require_graph
from widgets.info.residency_spans import Floats


@dataclass(frozen=True, eq=False)
class Touches:
    """The storages each op touches, as concatenated lists.

    Args:
        start: `[ops + 1]`, the storages of op `i` are `storage[start[i]:start[i + 1]]`.
        storage: the storages it reads, then the others it writes, its scratch memory last; each once.
        reads: `[ops]`, number of them that it reads.
        bytes: `[ops]`, their total size.
    """

    start: IntArray
    storage: IntArray
    reads: IntArray
    bytes: Floats


def get_touches(graph: Graph) -> Touches:
    """The storages that each op touches.

    Raises:
        StowageError: it is no graph.
    """
    require_graph(graph)
    flat = arrays(graph)
    (start, storage), _ = flat.touches()
    total = np.concatenate([[0.0], np.cumsum(flat.bytes[storage].astype(np.float64))])
    return Touches(start, storage, np.diff(flat.reads.start), total[start[1:]] - total[start[:-1]])
