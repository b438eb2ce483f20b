"""Steps in which an op only fits if its result reuses an input's memory."""

from functools import cache
from math import inf
from random import Random

import numpy as np
import pytest

from planner.errors import StowageError
from planner.graph import GraphBuilder, Kind
from planner.memory import step_peak
from planner.plan import validate
from planner.swap import METHODS, lower_bound, plan_swaps
from tests.effort import EFFORT, combinations
from tests.swap.exhaustive import UNIT, optimum, orders
from tests.swap.random_graphs import least_budget, machine
from tests.swap.tiny_steps import tiny

_STEPS, _MOST_ORDERS = 20 * EFFORT, 24
#: A storage of `UNIT` bytes takes a microsecond; both directions at full speed, as `exhaustive` asks for.
_MACHINE = machine(UNIT * 1e6, 2 * UNIT * 1e6, 0.0)


@cache
def drawn(number):
    """A step with at least one op that may overwrite, and the seconds of its ops."""
    random = Random(number)
    while True:
        graph = tiny(random, _MOST_ORDERS, 200_000)
        if any(op.overwrites for op in graph.ops):
            return graph, [random.choice([0.0, 1.0, 2.0]) * 1e-6 for _ in graph.ops]


def works_on(graph):
    """The most that any op reads and writes, temporary memory included."""
    sizes = [storage.bytes for storage in graph.storages]
    return max(
        sum(sizes[s] for s in {*graph.reads[op.id], *graph.writes[op.id], op.workspace} - {-1}) for op in graph.ops
    )


def test_the_least_budget_is_the_least_of_all_plans():
    """Tried one by one: there is none for less than a refusal names, and a valid one for that, no faster than bound."""
    below_a_working_set = 0
    for number in range(_STEPS):
        graph, seconds = drawn(number)
        least = least_budget(graph)
        if least >= works_on(graph) or least == step_peak(graph, UNIT):
            continue
        below_a_working_set += 1
        bandwidth, every = _MACHINE.host_link.bandwidth, orders(graph, _MOST_ORDERS)
        assert optimum(graph, seconds, bandwidth, least - UNIT, every, inf) is None, number
        plan = plan_swaps(graph, _MACHINE, least, seconds=seconds, method="swap", time_limit=0)
        assert validate(plan, graph) == [], number
        best = optimum(graph, seconds, bandwidth, least, every, inf)
        assert lower_bound(graph, _MACHINE, least, np.array(seconds)) <= best.seconds * (1 + 1e-9), number
    assert below_a_working_set > 3


def residual(blocks, *, late=False, elsewhere=False):
    """Blocks that add what they made to what they were given, whose buffers the sum may reuse; each is two units.

    Args:
        late: a copy of what each block was given is made last of all, so that it is used when the sum is made.
        elsewhere: the last op uses all that the blocks made, so that no buffer can be reused.
    """
    b = GraphBuilder("residual")

    def new(kind, units=2):
        name = f"{kind} {len(b.storages)}"
        return b.add_tensor(name, b.add_storage(name, units * UNIT, kind), (units * UNIT // 4,))

    given, created, ends = new(Kind.INPUT), [], []
    first = new(Kind.ACTIVATION)
    b.add_op("first", "aten.op.default", [given], [first])
    x = first
    for block in range(blocks):
        weight, inner, total = new(Kind.PARAMETER), new(Kind.ACTIVATION), new(Kind.ACTIVATION)
        b.add_op(f"inner {block}", "aten.op.default", [x], [inner])
        b.add_op(f"turn {block}", "aten.op.default", [weight], [new(Kind.ACTIVATION)])
        b.add_op(f"sum {block}", "aten.add.Tensor", [inner, x], [total], overwrites=[inner])
        if late:
            ends.append(new(Kind.OUTPUT, 1))
            b.add_op(f"copy {block}", "aten.op.default", [inner], ends[-1:])
        created, x = [*created, inner], total
    score = new(Kind.OUTPUT)
    b.add_op("score", "aten.op.default", [x], [score])
    if elsewhere:
        for inner in created:
            b.add_op(f"late {inner}", "aten.op.default", [inner, score], [new(Kind.ACTIVATION, 1)])
    return b.build([score, *ends])


@pytest.mark.parametrize(
    ("method", "late"), combinations([one for one in METHODS if one != "recompute"], [False, True])
)
def test_every_method_plans_for_what_only_fits_by_reusing_a_buffer(method, late):
    graph = residual(6, late=late)
    assert works_on(graph) == 6 * UNIT
    assert least_budget(graph) == 4 * UNIT
    plan = plan_swaps(graph, _MACHINE, 4 * UNIT, seconds=np.full(len(graph.ops), 1e-6), method=method, time_limit=2)
    assert validate(plan, graph) == []
    assert plan.peak_bytes <= 4 * UNIT
    slot = {graph.ops[op].name: slot for slot, op in enumerate(plan.order)}
    for block in range(6 if late else 0):
        assert slot[f"copy {block}"] < slot[f"sum {block}"]


def test_what_is_used_after_the_op_in_every_order_counts_beside_what_the_op_makes():
    graph = residual(2, elsewhere=True)
    assert least_budget(graph) == works_on(graph) == 6 * UNIT
    with pytest.raises(StowageError, match=r"alone works on .*; allow at least 384 bytes"):
        plan_swaps(graph, _MACHINE, 5 * UNIT, seconds=np.zeros(len(graph.ops)))
