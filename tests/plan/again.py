"""Orders in which ops run again, made and judged by tokens: each op sees and leaves tokens, and nothing is counted."""

from __future__ import annotations

import random

from planner.graph import Graph


def captured(graph: Graph) -> tuple[list[dict], dict]:
    """What each op sees in captured order, and what is there at the end; what nobody has made yet is not there."""
    now = {storage.id: ("at first", storage.id) for storage in graph.storages if storage.live_in}
    seen = []
    for op in graph.ops:
        seen.append({s: now[s] for s in (*graph.reads[op.id], *graph.writes[op.id]) if s in now})
        now |= {s: (op.id, s) for s in graph.writes[op.id]}
    return seen, now


def computes_the_same(graph: Graph, order: list[int]) -> bool:
    """Whether every instance sees the captured tokens and may run, and the step ends with the captured ones."""
    if set(order) != set(range(len(graph.ops))):
        return False
    seen, end = captured(graph)
    now = {storage.id: ("at first", storage.id) for storage in graph.storages if storage.live_in}
    ran = set()
    for identity in order:
        written = graph.writes[identity]
        alone = graph.ops[identity].first_run_only if identity in ran else ()
        written = [s for s in written if s not in alone]
        impure = not written or any(graph.storages[s].live_in for s in written)
        if identity in ran and impure:
            return False
        if any(now.get(s) != token for s, token in seen[identity].items() if s not in alone):
            return False
        now |= {s: (identity, s) for s in written}
        ran.add(identity)
    kept = [s.id for s in graph.storages if s.persistent or s.id in graph.output_storages]
    return all(now.get(s) == end.get(s) for s in kept)


def with_repeats(graph: Graph, order: list[int], seed: int, tries: int = 8) -> list[int]:
    """The order with ops, or all the writers of a storage, run again where that computes the same."""
    rng = random.Random(seed)
    for _ in range(tries):
        group = [rng.randrange(len(graph.ops))]
        if rng.random() < 0.4:
            storage = rng.randrange(len(graph.storages))
            group = [op for op, written in enumerate(graph.writes) if storage in written]
        other = list(order)
        place = rng.randint(1, len(order))
        for op in group:
            other.insert(place, op)
            place = rng.randint(place + 1, min(place + 3, len(other)))
        if computes_the_same(graph, other):
            order = other
    return order
