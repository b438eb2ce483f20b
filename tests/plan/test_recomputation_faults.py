"""Faults planted in plans in which ops run again: the validator finds each, and says what is wrong."""

from __future__ import annotations

from functools import cache

import pytest

from planner.capture import capture
from planner.plan import PlanIndex, validate
from planner.plan.validator.op_accesses import slot_accesses
from planner.plan.validator.order import check_ops, check_order
from tests.plan.again_by_hand import LAST, MAKE, MORE, TWIST, UPDATE, plan, step
from tests.plan.changing import replace
from tests.run.recomputing import recomputing_plan, repeatable
from tests.run.steps import ALL

#: By order of the step written by hand, what is wrong with its values; a is made, then twisted in place.
ORDERS = {
    (MAKE, TWIST, MORE, MAKE, LAST, UPDATE): "needs a as op twist leaves it, which op make made anew in slot 3",
    (MAKE, TWIST, MORE, TWIST, LAST, UPDATE): "needs a as it is before op twist, which ran earlier",
    (MAKE, TWIST, MORE, TWIST, MAKE, LAST, UPDATE): "needs a as it is before op twist, which ran earlier",
    (MAKE, MORE, TWIST, MAKE, TWIST, LAST, UPDATE): "needs a as op twist leaves it, which runs later",
    (MAKE, TWIST, MAKE, MORE, TWIST, LAST, UPDATE): "needs a as op twist leaves it, which op make made anew in slot 2",
    (TWIST, MAKE, MORE, LAST, UPDATE): "needs a as op make leaves it, which runs later",
    (MAKE, TWIST, LAST, MORE, MAKE, TWIST, UPDATE): "needs b as op more leaves it, which runs later",
    (MAKE, TWIST, MORE, LAST, UPDATE, MAKE, TWIST): "needs w as it is before op update, which ran earlier",
    (MAKE, TWIST, MORE, UPDATE, MAKE, TWIST, LAST): "needs out as op last leaves it, which runs later",
    (MAKE, TWIST, MORE, MAKE, TWIST, LAST, UPDATE, UPDATE): "would update w twice in one step",
    (MAKE, TWIST, MORE, MAKE, TWIST, LAST): "the order leaves out op update",
    (MAKE, TWIST, MORE, MAKE, TWIST, UPDATE): "the order leaves out op last",
    (MAKE, TWIST, MORE, LAST, UPDATE, LAST, MAKE): "needs w as it is before op update, which ran earlier",
    (MAKE, TWIST, MORE, MAKE, TWIST, LAST, UPDATE, 9): "names op 9, which does not exist",
}


@pytest.mark.parametrize(("order", "says"), ORDERS.items(), ids=map(str, ORDERS))
def test_values_that_an_order_would_confuse_are_named(order, says):
    graph, made = step(), plan(order=order)
    problems = check_ops(made, graph) or check_order(made, graph, slot_accesses(made, graph))[1]
    assert any(says in problem for problem in problems), problems


@cache
def case(name):
    """A graph, a plan for it, and by slot in which an op runs again: what it makes and where that is first read."""
    graph = capture(ALL[name]())
    made = recomputing_plan(graph, repeatable(graph)[::2])
    assert validate(made, graph) == []
    found = {}
    for slot in PlanIndex(graph.with_workspaces(dict(made.workspaces)), made).repeats:
        outputs = graph.writes_again[made.order[slot]]
        reader = next(s for s in range(slot + 1, len(made.order)) if {*outputs} & {*graph.reads[made.order[s]]})
        read = {*outputs} & {*graph.reads[made.order[reader]]}
        found[slot] = reader, [r for r in made.residencies if r.storage in read and r.start == slot]
    return graph, made, found


def exchanged(made, one, other):
    order = [*made.order]
    order[one], order[other] = order[other], order[one]
    return replace(made, order=tuple(order))


def instead(made, slot, op):
    return replace(made, order=(*made.order[:slot], op, *made.order[slot + 1 :]))


def stays(made, old, *new):
    return replace(made, residencies=(*(r for r in made.residencies if r is not old), *new))


def updating(graph, made, slot):
    """The slot of the op that updates what the op of a slot reads."""
    read = {s for s in graph.reads_again[made.order[slot]] if graph.storages[s].live_in}
    return next((s for s in range(slot, len(made.order)) if read & {*graph.writes[made.order[s]]}), None)


#: By fault, a plan with it, given graph and plan, the slot, the first reader, and what begins to be there; or None.
FAULTS = {
    "it runs after its reader": lambda g, p, slot, reader, new: exchanged(p, slot, reader),
    "it does not run": lambda g, p, slot, reader, new: instead(p, slot, p.order[slot - 1]),
    "its reader runs instead": lambda g, p, slot, reader, new: instead(p, slot, p.order[reader]),
    "state is updated instead": lambda g, p, slot, reader, new: instead(p, slot, p.order[-1]),
    "what it reads is updated first": lambda g, p, slot, reader, new: (
        exchanged(p, slot, late) if (late := updating(g, p, slot)) is not None else None
    ),
    "its result is there too late": lambda g, p, slot, reader, new: stays(p, new[0], replace(new[0], start=slot + 1)),
    "its result is there too early": lambda g, p, slot, reader, new: stays(p, new[0], replace(new[0], start=slot - 1)),
    "its result leaves too early": lambda g, p, slot, reader, new: stays(p, new[0], replace(new[0], stop=reader)),
    "its result has no place": lambda g, p, slot, reader, new: stays(p, new[0]),
    "its first result stays too": lambda g, p, slot, reader, new: stays(p, new[0], replace(new[0], start=0), new[0]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_planted_fault_is_found(fault):
    planted = 0
    for name in ("convolutions", "gpt"):
        graph, made, found = case(name)
        for slot, (reader, new) in found.items():
            spoilt = FAULTS[fault](graph, made, slot, reader, new) if new else None
            if spoilt is not None:
                planted += 1
                problems = [problem for problem in validate(spoilt, graph) if not problem.startswith("the plan says")]
                assert problems, (name, slot)
                if fault == "state is updated instead":
                    assert any("twice in one step" in problem for problem in problems)
                if fault == "what it reads is updated first":
                    assert any("ran earlier" in problem for problem in problems)
    assert planted >= 7
