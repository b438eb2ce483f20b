"""Orders to plan for: each respects every dependency, and each is good for something."""

import numpy as np
from hypothesis import given, settings

from planner.graph import GraphBuilder, Kind, Phase
from planner.swap.problem.problem import build_problem
from planner.swap.schedule.base_orders import captured, eager_optimizer_order, parameter_grouped_order
from planner.swap.schedule.budget_feasibility import orders
from tests.swap.random_graphs import machine, steps
from tests.swap.test_plans import layered


def problem(graph):
    return build_problem(graph, machine(), 1 << 30, np.ones(len(graph.ops)))


@given(steps(12))
@settings(max_examples=50, deadline=None)
def test_every_order_runs_each_op_once_after_all_it_depends_on(step):
    graph, _ = step
    for _, order in orders(problem(graph)):
        assert sorted(order.tolist()) == list(range(len(graph.ops)))
        slot = np.argsort(order)
        for op, before in enumerate(graph.dependencies):
            assert all(slot[earlier] < slot[op] for earlier in before)


def test_orders_that_are_the_same_are_tried_once():
    b = GraphBuilder("one op")
    b.add_op("op", "aten.op.default", [], [b.add_tensor("y", b.add_storage("y", 4, Kind.OUTPUT), (1,))])
    assert [name for name, _ in orders(problem(b.build([0])))] == ["captured"]


def test_eager_updates_follow_their_gradients():
    graph = layered(3)
    names = [graph.ops[op].name for op in eager_optimizer_order(problem(graph))]
    assert names[:5] == ["forward 0", "forward 1", "forward 2", "loss", "loss backward"]
    for i in (2, 1, 0):
        # the parameter is still read by its backward op, so the update comes right after both
        at = names.index(f"update {i}")
        assert {names[at - 1], names[at - 2]} == {f"backward {i}", f"weight gradient {i}"}
    assert captured(problem(graph)).tolist() == list(range(len(graph.ops)))


def test_the_grouped_order_stays_with_the_parameters_of_one_cell():
    b = GraphBuilder("unrolled")
    layers, steps_ = 3, 5
    weights = [b.add_tensor(f"w{i}", b.add_storage(f"w{i}", 4096, Kind.PARAMETER), (1024,)) for i in range(layers)]
    below = [b.add_tensor(f"x{t}", b.add_storage(f"x{t}", 64, Kind.INPUT), (16,)) for t in range(steps_)]
    hidden = [None] * layers
    for t in range(steps_):
        value = below[t]
        for i in range(layers):
            y = b.add_tensor(f"y{i}{t}", b.add_storage(f"y{i}{t}", 64, Kind.ACTIVATION), (16,))
            before = [value, weights[i]] + ([] if hidden[i] is None else [hidden[i]])
            b.add_op(f"{i} at {t}", "aten.mm.default", before, [y], module=f"cell{i}", phase=Phase.FORWARD)
            hidden[i] = value = y
    graph = b.build([value])
    cells = [int(graph.ops[op].name[0]) for op in parameter_grouped_order(problem(graph))]
    assert cells == [0] * steps_ + [1] * steps_ + [2] * steps_


def test_what_an_optimizer_does_without_a_gradient_waits_until_the_gradient_is_there():
    b = GraphBuilder("momentum")
    x = b.add_tensor("x", b.add_storage("x", 64, Kind.INPUT), (16,))
    gradients = []
    for i in range(2):
        gradients.append(b.add_tensor(f"g{i}", b.add_storage(f"g{i}", 64, Kind.GRADIENT), (16,)))
        b.add_op(f"gradient {i}", "aten.op.default", [x], [gradients[-1]], phase=Phase.BACKWARD)
    for i, gradient in enumerate(gradients):
        moment = b.add_tensor(f"m{i}", b.add_storage(f"m{i}", 64, Kind.OPTIMIZER_STATE), (16,))
        decayed, after = (b.add_tensor(f"m{i}{mark}", b.tensors[moment].storage, (16,)) for mark in ("'", "''"))
        b.add_op(f"decay {i}", "aten.mul_.Scalar", [moment], [decayed], phase=Phase.OPTIMIZER)
        b.add_op(f"add {i}", "aten.add_.Tensor", [decayed, gradient], [after], phase=Phase.OPTIMIZER)
    alone = b.add_tensor("steps", b.add_storage("steps", 4, Kind.OPTIMIZER_STATE), (1,))
    counted = b.add_tensor("steps'", b.tensors[alone].storage, (1,))
    b.add_op("count", "aten.add_.Scalar", [alone], [counted], phase=Phase.OPTIMIZER)
    graph = b.build()
    for order in (eager_optimizer_order, parameter_grouped_order):
        names = [graph.ops[op].name for op in order(problem(graph))]
        assert names == ["gradient 0", "decay 0", "add 0", "gradient 1", "decay 1", "add 1", "count"]
