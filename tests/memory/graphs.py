"""Random small graphs, and the facts about them that tests compare with."""

from __future__ import annotations

import random

from planner.graph import Graph, GraphBuilder, Kind


def random_graph(seed: int, ops: int = 12) -> Graph:
    """A graph with updates in place, buffer reuse, several outputs, workspaces, and storages that no op reads."""
    rng = random.Random(seed)
    build = GraphBuilder(f"random-{seed}")
    kinds = [Kind.PARAMETER, Kind.BUFFER, Kind.OPTIMIZER_STATE, Kind.INPUT]
    alive = []
    for place in range(rng.randint(1, 5)):
        size = rng.choice([8, 16, 24, 40, 64])
        storage = build.add_storage(f"held{place}", size, rng.choice(kinds))
        alive.append(build.add_tensor(f"held{place}", storage, [size]))
    spare = build.add_storage("spare", 16, rng.choice(kinds))
    build.add_tensor("spare", spare, [16])
    for number in range(ops):
        inputs = rng.sample(alive, min(len(alive), rng.randint(1, 3)))
        same = [t for t in inputs if build.storages[build.tensors[t].storage].bytes > 0]
        overwrites, outputs = [], []
        update = rng.random() < 0.2
        if update:
            target = rng.choice(alive)
            old = build.tensors[target]
            outputs.append(build.add_tensor(f"t{number}", old.storage, old.shape))
            if rng.random() < 0.5:
                inputs = [t for t in inputs if t != target]
        elif same and rng.random() < 0.6:
            reused_buffer = rng.choice(same)
            size = build.storages[build.tensors[reused_buffer].storage].bytes
            outputs.append(
                build.add_tensor(f"t{number}", build.add_storage(f"s{number}", size, Kind.ACTIVATION), [size])
            )
            overwrites = [t for t in inputs if build.storages[build.tensors[t].storage].bytes == size]
        else:
            size = rng.choice([0, 8, 8, 16, 24, 64])
            outputs.append(
                build.add_tensor(f"t{number}", build.add_storage(f"s{number}", size, Kind.ACTIVATION), [size])
            )
        if rng.random() < 0.2:
            size = rng.choice([8, 16])
            outputs.append(build.add_tensor(f"u{number}", build.add_storage(f"u{number}", size, Kind.GRADIENT), [size]))
        build.add_op(f"op{number}", "op", inputs, outputs, overwrites=overwrites)
        alive += outputs
        if len(alive) > 8:
            alive = rng.sample(alive, 8)
    outputs = rng.sample(alive, min(len(alive), rng.randint(1, 2)))
    graph = build.build(outputs)
    return graph.with_workspaces({op: rng.choice([8, 32]) for op in range(ops) if rng.random() < 0.3})


def random_order(graph: Graph, seed: int) -> list[int]:
    """A random order that keeps the dependencies."""
    rng = random.Random(seed)
    done: set[int] = set()
    order: list[int] = []
    while len(order) < len(graph.ops):
        ready = [op for op, before in enumerate(graph.dependencies) if op not in done and done.issuperset(before)]
        order.append(rng.choice(ready))
        done.add(order[-1])
    return order
