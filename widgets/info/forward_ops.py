"""The forward op that each backward or optimizer op belongs to."""

from __future__ import annotations

import numpy as np

from planner.graph import Graph, Kind, Phase
from widgets.info.argument_types import require_graph
from widgets.info.residency_spans import Ints


def get_forward_of(graph: Graph) -> Ints:
    """`[ops]`, the forward op of each backward or optimizer op; -1 for forward ops and if there is none.

    A backward op belongs to the forward op of its own module with which it shares the most storages, on a tie to the
    later. One that shares none, such as a sum of gradients, belongs to its module's forward op if there is only one,
    else to the forward op of the op that made its input. An optimizer op belongs to the first forward op that reads
    the parameter it writes; the other optimizer ops of that parameter are connected to it through the optimizer's
    states and what is computed from them.

    Raises:
        StowageError: it is no graph.
    """
    require_graph(graph)
    forward_of = np.full(len(graph.ops), -1, np.int64)
    home: dict[int, int] = {}  # the forward op that a storage belongs to
    only: dict[str, int] = {}  # a module's one forward op, or -1 where there are several
    for op in graph.ops:
        if op.phase is Phase.FORWARD:
            only[op.module] = -1 if op.module in only else op.id
    _pair_backward(graph, forward_of, home, only)
    _pair_optimizer(graph, forward_of, home, only)
    return forward_of


def _pair_backward(graph: Graph, forward_of: Ints, home: dict[int, int], only: dict[str, int]) -> None:
    users: dict[tuple[str, int], list[int]] = {}  # forward ops by module and storage
    for op in graph.ops:
        touched = {*graph.reads[op.id], *graph.writes[op.id]}
        if op.phase is Phase.FORWARD:
            for storage in touched:
                users.setdefault((op.module, storage), []).append(op.id)
        elif op.phase is Phase.BACKWARD:
            shared: dict[int, int] = {}
            for storage in touched:
                for user in users.get((op.module, storage), ()):
                    shared[user] = shared.get(user, 0) + 1
            forward_op = max(shared, key=lambda user: (shared[user], user), default=only.get(op.module, -1))
            if forward_op < 0:
                forward_op = next((home[storage] for storage in graph.reads[op.id] if storage in home), -1)
            forward_of[op.id] = forward_op
            if forward_op >= 0:
                home.update(dict.fromkeys(graph.writes[op.id], forward_op))


def _pair_optimizer(graph: Graph, forward_of: Ints, home: dict[int, int], only: dict[str, int]) -> None:
    readers: dict[int, int] = {}  # the first forward op that reads a parameter
    for op in graph.ops:
        if op.phase is Phase.FORWARD:
            for storage in graph.reads[op.id]:
                if graph.storages[storage].kind is Kind.PARAMETER:
                    readers.setdefault(storage, op.id)
    steps = [op for op in graph.ops if op.phase is Phase.OPTIMIZER]
    owned = dict(readers)
    # from the update of a parameter back to its inputs, but not into the gradients
    for op in reversed(steps):
        touched = [
            s for s in (*graph.writes[op.id], *graph.reads[op.id]) if graph.storages[s].kind is not Kind.GRADIENT
        ]
        forward_op = next((owned[storage] for storage in touched if storage in owned), -1)
        forward_of[op.id] = forward_op
        if forward_op >= 0:
            for storage in touched:
                owned.setdefault(storage, forward_op)
    for op in steps:
        if forward_of[op.id] < 0:
            touched = [*graph.writes[op.id], *graph.reads[op.id]]
            found = (known[s] for s in touched for known in (owned, home) if s in known)
            forward_of[op.id] = next(found, only.get(op.module, -1))
