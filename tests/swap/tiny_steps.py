"""Random steps of at most eight ops, small enough to try every plan."""

from __future__ import annotations

from functools import cache
from random import Random

from planner.graph import Graph, GraphBuilder, Kind, Phase
from planner.memory import step_peak
from tests.swap.exhaustive import UNIT, orders, ways
from tests.swap.random_graphs import least_budget


@cache
def drawn(number: int, most_orders: int, most_ops: int = 8) -> tuple[Graph, list[float], int]:
    """A step, the seconds of its ops, and a budget between the least and what the step takes."""
    random = Random(number)
    graph = tiny(random, most_orders)
    while len(graph.ops) > most_ops:
        graph = tiny(random, most_orders)
    seconds = [random.choice([0.0, 1.0, 1.0, 2.0, 5.0]) * 1e-6 for _ in graph.ops]
    peak = step_peak(graph, UNIT)
    least = min(-(-least_budget(graph) // UNIT) * UNIT, peak)
    return graph, seconds, least + UNIT * random.randint(0, max(0, (peak - least) // UNIT - 1))


def tiny(random: Random, most_orders: int, most_ways: int = 3_000_000) -> Graph:
    """A step whose second half reads again what the first half made, as backward passes do, and updates parameters."""
    while True:
        graph = _draw(random, random.randint(4, 8))
        possible = orders(graph, most_orders)
        if len(possible) <= most_orders and len(possible) * ways(graph, possible[0]) <= most_ways:
            return graph


def _draw(random: Random, ops: int) -> Graph:
    b = GraphBuilder("tiny")
    sizes = [UNIT * size for size in (1, 1, 2, 3, 4)]

    def new(kind: Kind, size: int) -> int:
        return b.add_tensor(
            f"{kind}{len(b.storages)}", b.add_storage(f"{kind}{len(b.storages)}", size, kind), (size // 4,)
        )

    def size_of(tensor: int) -> int:
        return b.storages[b.tensors[tensor].storage].bytes

    held = [new(Kind.PARAMETER, random.choice(sizes)) for _ in range(random.randint(1, 3))]
    parameters = list(held)
    if random.random() < 0.5:
        held.append(new(Kind.INPUT, random.choice(sizes)))
    made: list[int] = []
    for i in range(ops):
        forward = i < ops / 2
        reads = [made[-1]] if made else []
        if not forward and made:
            reads.append(made[min(ops - 1 - i, len(made) - 1)])
        if random.random() < (0.6 if forward else 0.4) or not reads:
            reads.append(random.choice(held))
        if random.random() < 0.15 and made:
            reads[0] = random.choice(made)
        reads = list(dict.fromkeys(reads))
        phase = Phase.FORWARD if forward else Phase.BACKWARD
        if not forward and parameters and random.random() < 0.45:
            old = parameters.pop(random.randrange(len(parameters)))
            fresh = b.add_tensor(f"new{i}", b.tensors[old].storage, b.tensors[old].shape)
            held = [fresh if tensor == old else tensor for tensor in held]
            reads = list(dict.fromkeys([old if tensor == fresh else tensor for tensor in (old, *reads)]))
            b.add_op(f"op{i}", "aten.op.default", reads, [fresh], phase=Phase.OPTIMIZER)
            continue
        size = random.choice(sizes)
        reused_buffers = [tensor for tensor in reads if tensor in made and random.random() < 0.3][:1]
        if reused_buffers:
            size = size_of(reused_buffers[0])
        made.append(new(Kind.ACTIVATION, size))
        b.add_op(f"op{i}", "aten.op.default", reads, [made[-1]], phase=phase, overwrites=reused_buffers)
    graph = b.build(made[-1:])
    return graph.with_workspaces({op.id: random.choice(sizes) for op in graph.ops if random.random() < 0.1})
