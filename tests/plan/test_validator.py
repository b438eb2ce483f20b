"""What the validator says to each thing that can be wrong with a plan."""

import numpy as np
import pytest

from planner.plan import SWAP_IN, HostResidency, Lane, validate
from tests.plan.by_hand import A, changed, plan, step, without
from tests.plan.changing import replace
from tests.plan.interpreter import runs_clean


def test_a_sound_plan_is_accepted_and_computes_the_right_values():
    assert validate(plan(), step()) == []
    assert runs_clean(plan(), step(), runs=50)


WRONG = {
    # fields
    "another graph": (lambda p: replace(p, graph="0" * 32), "the plan is for another graph than by hand"),
    "float": (lambda p: changed(p, "residencies", 0, offset=0.0), "entry 0 of residencies holds what is not a whole"),
    "bool": (lambda p: changed(p, "swap_ins", 1, start=True), "entry 1 of swap_ins holds what is not a whole number"),
    "numpy": (lambda p: changed(p, "swap_ins", 1, use=np.int64(6)), "entry 1 of swap_ins holds what is not a whole"),
    "budget text": (lambda p: replace(p, budget_bytes="8GiB"), "budget_bytes is '8GiB', which is not a whole number"),
    "machine": (lambda p: replace(p, machine=None), "machine is not text"),
    "alignment 0": (lambda p: replace(p, alignment=0), "alignment is 0, which is not a whole number from 1 on"),
    "misaligned": (lambda p: changed(p, "residencies", 0, offset=32), "entry 0 of residencies has offset 32, which"),
    "negative offset": (lambda p: changed(p, "host_residencies", 0, offset=-64), "offset -64, which is no multiple"),
    "unknown storage": (lambda p: changed(p, "swap_outs", 0, storage=9), "names storage 9, which does not exist"),
    "empty residency": (lambda p: changed(p, "residencies", 1, stop=0), "lasts from slot 0 to 0, which is no span"),
    "beyond the end": (lambda p: changed(p, "residencies", 0, stop=8), "lasts from slot 0 to 8, which is no span"),
    "ready after release": (lambda p: changed(p, "swap_outs", 0, ready=2), "ready at slot 2 and released at 2"),
    "used before start": (lambda p: changed(p, "swap_ins", 0, use=2), "starts at slot 3 for use at 2"),
    "workspace of nobody": (lambda p: replace(p, workspaces=((9, 64),)), "workspace of 64 bytes for op 9"),
    "workspace beyond the ops": (lambda p: replace(p, workspaces=((5, 64), (7, 64))), "workspace of 64 bytes for op 7"),
    "empty host place": (
        lambda p: changed(p, "host_residencies", 1, stop=0),
        "entry 1 of host_residencies lasts from slot 0 to 0, which is no span",
    ),
    "workspace of nothing": (lambda p: replace(p, workspaces=((3, 0), (5, 64))), "workspace of 0 bytes for op 3"),
    "workspace twice": (lambda p: replace(p, workspaces=((5, 64), (5, 64))), "workspace of 64 bytes for op 5"),
    "small workspace": (lambda p: replace(p, workspaces=((5, 63),)), "op update needs a workspace of 64 bytes and"),
    "no workspace": (
        lambda p: replace(without(p, "residencies", 9), workspaces=()),
        "op update needs a workspace of 64 bytes and the plan provides 0",
    ),
    # order
    "an op left out": (lambda p: replace(p, order=(0, 1, 2, 3, 4, 5, 5)), "the order leaves out op state"),
    "an op that does not exist": (
        lambda p: replace(p, order=(0, 1, 2, 3, 4, 5, 7)), "slot 6 of the order names op 7, which does not exist"
    ),
    # lanes
    "a queue too few": (
        lambda p: replace(p, queues={lane: rows for lane, rows in p.queues.items() if lane != SWAP_IN}),
        "the plan has no queue for swap-in of device 0",
    ),
    "a queue too many": (
        lambda p: replace(p, queues={**p.queues, Lane(1, "compute", 0): (0,)}),
        "the plan has a queue for compute of device 1, whose entries are not checked here",
    ),
    "reads too early": (
        lambda p: replace(p, order=(0, 2, 1, 3, 4, 5, 6)),
        "op loss in slot 1 needs b as op second leaves it, which runs later",
    ),
    "reads too late": (
        lambda p: replace(p, order=(1, 2, 3, 4, 5, 0, 6)),
        "op first in slot 5 needs w as it is before op update, which ran earlier",
    ),
    # presence
    "gone too early": (
        lambda p: changed(p, "residencies", 7, stop=6),
        "op state in slot 6 needs d, which is not on the device then",
    ),
    "no room for the workspace": (
        lambda p: without(p, "residencies", 9),
        "op update in slot 5 needs update/workspace, which is not on the device then",
    ),
    "from nowhere": (
        lambda p: without(p, "swap_ins", 0),
        "a is on the device from slot 3, where nothing makes it or copies it in",
    ),
    "state from nowhere": (
        lambda p: without(p, "swap_ins", 1),
        "m is on the device from slot 5, where nothing makes it or copies it in",
    ),
    "there before it is made": (
        lambda p: changed(p, "residencies", 7, start=0, offset=320),
        "d is on the device from slot 0, where nothing makes it or copies it in",
    ),
    "before it is made": (
        lambda p: changed(p, "residencies", 7, start=3, offset=320),
        "d is on the device from slot 3, where nothing makes it or copies it in",
    ),
    "twice at once": (
        lambda p: changed(p, "residencies", 6, start=1), "a has two residencies at once from slot 1"
    ),
    "swap-in to nowhere": (
        lambda p: changed(p, "swap_ins", 0, start=4), "swap-in 0 of a does not begin a residency of its own at slot 4"
    ),
    "swap-out from nowhere": (
        lambda p: changed(p, "swap_outs", 0, release=3), "swap-out 0 of a does not end a residency of its own at slot 3"
    ),
    "copied out twice": (
        lambda p: replace(p, swap_outs=(p.swap_outs[0], *p.swap_outs)),
        "swap-out 1 of a does not end a residency of its own at slot 2",
    ),
    "copied in twice": (
        lambda p: replace(p, swap_ins=(p.swap_ins[0], *p.swap_ins)),
        "swap-in 1 of a does not begin a residency of its own at slot 3",
    ),
    "copied in too late": (
        lambda p: changed(p, "swap_ins", 0, use=6), "swap-in 0 of a is for use at slot 6, when its residency is over"
    ),
    # takeovers
    "taken over elsewhere": (
        lambda p: changed(p, "residencies", 5, offset=320),
        "op back in slot 3 needs b, which is not on the device then",
    ),
    # values
    "used while in flight": (
        lambda p: changed(p, "swap_ins", 0, use=5), "op grad in slot 4 does not wait for swap-in 0 of a"
    ),
    "copied before it is made": (
        lambda p: changed(changed(p, "swap_outs", 0, ready=-1), "host_residencies", 1, start=-1),
        "swap-out 0 of a does not wait for op first in slot 0, which writes it",
    ),
    "copied before its update": (
        lambda p: changed(p, "swap_outs", 1, ready=5),
        "swap-out 1 of m does not wait for op state in slot 6, which writes it",
    ),
    "never copied": (
        lambda p: replace(p, swap_outs=p.swap_outs[1:]), "swap-in 0 of a reads a host copy that is not valid then"
    ),
    "state lost": (
        lambda p: replace(p, swap_outs=p.swap_outs[:1]),
        "m is not on the device when the step starts, and its host copy is not valid when it ends",
    ),
    "state left behind": (
        lambda p: changed(p, "residencies", 0, stop=6), "w is on the device when the step starts, but not when it ends"
    ),
    "output lost": (
        lambda p: changed(p, "residencies", 4, stop=4),
        "loss is returned by the step, but neither on the device nor on the host when it ends",
    ),
    # host
    "host place too late": (
        lambda p: changed(p, "host_residencies", 1, start=1),
        "swap-out 0 of a has no place in the host slab from slot 0 to 2",
    ),
    "host place too short": (
        lambda p: changed(p, "host_residencies", 1, stop=3),
        "swap-in 0 of a has no place in the host slab from slot 2 to 4",
    ),
    "state's host place": (
        lambda p: changed(p, "host_residencies", 0, stop=6),
        "m outlives the step, but its place in the host slab does not last from -1 to the end",
    ),
    "two host places": (
        lambda p: replace(p, host_residencies=(*p.host_residencies, HostResidency(A, 3, 5, 128)), host_bytes=192),
        "a has two places in the host slab at once from slot 3",
    ),
    "host bytes shared": (
        lambda p: changed(p, "host_residencies", 1, offset=0), "m and a share bytes in the host slab in slot 0"
    ),
    # addresses and sizes
    "bytes shared": (
        lambda p: changed(p, "residencies", 6, offset=128), "loss and a share bytes on the device in slot 3"
    ),
    "peak understated": (lambda p: replace(p, peak_bytes=256), "says it takes 256 bytes on the device and takes 320"),
    "peak overstated": (lambda p: replace(p, peak_bytes=321), "says it takes 321 bytes on the device and takes 320"),
    "over budget": (lambda p: replace(p, budget_bytes=319), "takes 320 bytes on the device, 1 more than its budget"),
    "host misstated": (lambda p: replace(p, host_bytes=129), "says it takes 129 bytes on the host and takes 128"),
    "over host budget": (lambda p: replace(p, host_budget_bytes=64), "takes 128 bytes on the host, 64 more than its"),
    # streams
    "deadlock": (
        lambda p: replace(p, swap_ins=p.swap_ins[::-1]),
        "the streams wait for each other for ever: op grad in slot 4, swap-out 1 of m, swap-in 0 of m",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", WRONG)
def test_each_fault_is_named(fault):
    spoil, says = WRONG[fault]
    problems = validate(spoil(plan()), step())
    assert any(says in problem for problem in problems), problems
    assert not any("\n" in problem for problem in problems)


def test_a_plan_may_provide_more_workspace_than_the_graph_needs():
    assert validate(plan(), step().with_workspaces({5: 8})) == []
    assert validate(plan(), step().with_workspaces({})) == []
    assert validate(plan(), step().with_workspaces({5: 65})) != []


def test_names_of_machine_and_method_do_not_matter():
    assert validate(replace(plan(), machine="another", method=""), step()) == []
