"""Orders of the ops: the crossover of figure 4, and that no crossover or mutation ever breaks a dependency."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.graph import csr, inverted
from planner.swap.methods.swapadvisor.schedule_gene import cross_schedules, mutate_schedule
from planner.swap.problem.problem import build_problem
from tests.swap.random_graphs import machine, steps


def ints(*values):
    return np.array(values, np.int32)


def legal(graph, order):
    """Whether every op comes once, after all that it depends on, and random ops in the order of capture."""
    place = {op: slot for slot, op in enumerate(order.tolist())}
    draws = [place[op.id] for op in graph.ops if op.random]
    after = all(place[earlier] < place[op.id] for op in graph.ops for earlier in graph.dependencies[op.id])
    return sorted(place) == list(range(len(graph.ops))) == sorted(place.values()) and after and draws == sorted(draws)


def replay(problem, parent, probability, uniforms):
    return mutate_schedule(parent, problem.predecessors, problem.successors, probability, uniforms)


def test_figure_4_the_first_part_of_one_parent_then_the_rest_in_the_order_of_the_other():
    """The figure numbers its ops from 1, we from 0. It shows of the second child only how it begins."""
    first, second = ints(1, 2, 3, 4, 5) - 1, ints(2, 3, 4, 1, 5) - 1
    assert (cross_schedules(second, first, 3) + 1).tolist() == [2, 3, 4, 1, 5]
    assert (cross_schedules(first, second, 3) + 1).tolist()[:3] == [1, 2, 3]


def test_without_luck_a_replay_is_the_parent():
    before = [[], [0], [0], [1, 2], []]
    for parent in (ints(0, 1, 2, 3, 4), ints(4, 0, 2, 1, 3)):
        child = mutate_schedule(parent, csr(before), csr(inverted(before)), 0.1, np.full((2, 5), 0.5))
        assert child.tolist() == parent.tolist()


def test_with_luck_any_ready_op_comes_next_and_the_others_keep_their_order():
    before = [[], [], [], [0]]
    uniforms = np.array([[0.0, 0.5, 0.5, 0.5], [0.7, 0.0, 0.0, 0.0]])  # at first, the last of the three that are ready
    assert mutate_schedule(ints(0, 3, 1, 2), csr(before), csr(inverted(before)), 0.1, uniforms).tolist() == [
        2,
        0,
        3,
        1,
    ]


@given(steps(), st.integers(0, 2**32), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
@settings(max_examples=60, deadline=None)
def test_children_are_legal_orders_of_all_ops(step, seed, probability, share):
    graph, seconds = step
    n = len(graph.ops)
    problem = build_problem(graph, machine(), 1 << 20, np.array(seconds))
    random = np.random.default_rng(seed)
    captured = np.arange(n, dtype=np.int32)
    first, second = (replay(problem, captured, 1.0, random.random((2, n))) for _ in range(2))
    crossed = cross_schedules(first, second, int(share * n))
    assert crossed.tolist()[: int(share * n)] == first.tolist()[: int(share * n)]
    mutated = replay(problem, crossed, probability, random.random((2, n)))
    for order in (first, second, crossed, mutated):
        assert legal(graph, order)


@given(st.integers(2, 12), st.integers(0, 2**32))
def test_a_random_order_can_begin_with_any_op_that_is_ready(n, seed):
    before = [[]] * n
    uniforms = np.random.default_rng(seed).random((2, n))
    child = mutate_schedule(np.arange(n, dtype=np.int32), csr(before), csr(inverted(before)), 1.0, uniforms)
    assert child[0] == int(uniforms[1, 0] * n)
