"""What every plan that runs each op once must hold at the same time, on the device and in the host's memory together.

While an op runs, all that its ancestors wrote and it or its descendants still use exists somewhere, whatever the order:
that, the persistent storages, and the inputs still to be read. If one of these sets is larger than the device's and the
host's memory together, no plan that runs each op once fits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.graph import Csr, Graph, arrays, csr, inverted
from planner.jit import kernel
from planner.memory import lifetimes
from planner.swap.bounds.any_order import reach
from planner.swap.problem.problem import Flags, Ints

_CUTS = 200


def live_sets(graph: Graph) -> Flags:
    """The storages that exist while each of some ops runs, `[ops looked at, storages]`, whatever the order of the ops.

    The sets depend on which op uses which storage alone, and not on sizes. The ops looked at are those where most is
    live in captured order, and some spread over the step.

    Args:
        graph: the step.
    """
    graph_arrays, ops = arrays(graph), len(graph.ops)
    touches, _ = graph_arrays.touches(graph_arrays.bytes > 0)
    writer = np.full(len(graph.storages), -1, np.int32)
    for op in reversed(range(ops)):
        writer[list(graph.writes[op])] = op
    fullest = np.argsort(-lifetimes(graph).live_bytes[:ops], kind="stable")[:_CUTS]
    spread = np.linspace(0, max(ops - 1, 0), min(ops, _CUTS)).astype(np.int64)
    before = graph.dependencies
    return np.asarray(
        _live_sets(
            np.unique(np.concatenate([fullest, spread])).astype(np.int32), touches, writer, graph_arrays.live_in,
            graph_arrays.persistent, csr(before), csr(inverted(before)),
        )
    )  # fmt: skip


@kernel
def _live_sets(
    cuts: Ints, touches: Csr, writer: Ints, live_in: Flags, persistent: Flags, before: Csr, after: Csr
) -> NDArray[np.bool_]:
    """For each cut, the storages that exist while its op runs."""
    n, m = len(before.start) - 1, len(writer)
    ancestors, descendants = np.empty(n, np.bool_), np.empty(n, np.bool_)
    stack = np.empty(n, np.int32)
    used, touched_after = np.zeros(m, np.bool_), np.empty(m, np.bool_)
    for k in range(len(touches.items)):
        used[touches.items[k]] = True
    found = np.zeros((len(cuts), m), np.bool_)
    for row in range(len(cuts)):
        cut = cuts[row]
        reach(cut, before, ancestors, stack)
        reach(cut, after, descendants, stack)
        descendants[cut] = True
        touched_after[:] = False
        for op in range(n):
            if descendants[op]:
                for k in range(touches.start[op], touches.start[op + 1]):
                    touched_after[touches.items[k]] = True
        for s in range(m):
            if persistent[s]:
                found[row, s] = used[s]
            elif live_in[s]:
                found[row, s] = touched_after[s]
            else:
                found[row, s] = touched_after[s] and writer[s] >= 0 and ancestors[writer[s]]
    return found
