"""A portfolio that is given its candidates: what it tries, and nothing else."""

import re

import numpy as np

from planner.machine import op_seconds
from planner.plan import validate
from planner.profile import machine
from planner.swap.bounds.any_order import bound_of
from planner.swap.methods.eviction_portfolio import Portfolio, ways
from planner.swap.methods.method import SearchContext
from planner.swap.problem.problem import build_problem
from planner.swap.schedule.base_orders import captured
from planner.swap.schedule.budget_feasibility import orders
from planner.swap.search.driver import one_by_one
from tests.widgets.steps import real


def search_context(share):
    graph = real("rnn:layers=2,hidden=256,steps=8")[1]
    target = machine("v100-16gb")
    seconds = op_seconds(graph, target)
    total_bytes = sum(storage.bytes for storage in graph.storages)
    problem = build_problem(graph, target, int(share * total_bytes), seconds)
    return SearchContext(problem, bound_of(problem), 0, one_by_one)


#: What is said of a search step: how much of the budget is planned into, and what the rest is for.
DOING = re.compile(
    r"placing while planning|planning into the whole budget|"
    r"planning into (?!100)[\d.]+% of the budget, leaving (?!0\.0%)[\d.]+% for fragmentation"
)


def plans_of(method):
    search_steps = list(iter(method.search_step, None))
    assert [one.doing for one in search_steps if not DOING.fullmatch(one.doing)] == []
    return [search_step.plan for search_step in search_steps if search_step.plan is not None]


def test_only_the_given_orders_are_tried():
    context = search_context(0.1)
    problem, first = context.problem, captured(context.problem)
    assert len(list(orders(problem))) > 1
    only = [candidate for candidate in ways(context) if np.array_equal(candidate.order, first)]
    plans = plans_of(Portfolio(context, candidates=only))
    assert plans
    for plan in plans:
        assert plan.order == tuple(first.tolist())
        assert validate(plan, problem.graph) == []
    free = plans_of(Portfolio(context))
    assert min(plan.predicted.seconds for plan in free) < min(plan.predicted.seconds for plan in plans)
    assert min(free, key=lambda plan: plan.predicted.seconds).order != tuple(first.tolist())


def test_without_candidates_there_is_nothing_to_try():
    assert plans_of(Portfolio(search_context(0.1), candidates=[])) == []
