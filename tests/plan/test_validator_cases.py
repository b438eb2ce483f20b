"""What a plan may do and what it may not, where it takes more than one change to try it."""

import pytest

from planner.graph import GraphBuilder, Kind, fingerprint
from planner.plan import (
    HostResidency,
    Residency,
    SwapIn,
    SwapOut,
    validate,
)
from tests.plan.by_hand import END, LOSS, SCRATCH, A, B, D, G, M, W, X, changed, plan, seconds_each, step
from tests.plan.changing import replace
from tests.plan.interpreter import runs_clean


def roomy(plan):
    """The plan with limits as large as anything might need."""
    return replace(plan, budget_bytes=4096, host_budget_bytes=4096)


def complaints(plan):
    """What is wrong but for its stated sizes and times, which tests that add storages do not care for."""
    problems = validate(plan, step())
    return [p for p in problems if not p.startswith(("predicted", "the plan says", "entry"))]


def test_the_same_order_without_swaps_is_accepted():
    spans = [(W, 0, END), (M, 0, END), (X, 0, 1), (A, 0, 5), (B, 1, 3), (LOSS, 2, END), (D, 4, 7), (SCRATCH, 5, 6)]
    stays = [Residency(s, start, stop, 64 * place) for place, (s, start, stop) in enumerate(spans)]
    stays.append(Residency(G, 3, 5, stays[4].offset))
    bare = replace(
        plan(), residencies=tuple(stays), host_residencies=(), swap_outs=(), swap_ins=(), peak_bytes=512,
        budget_bytes=512, host_bytes=0, predicted=seconds_each(7, 0, 0),
    )  # fmt: skip
    assert validate(bare, step()) == []


def test_a_graph_without_ops_needs_nothing():
    build = GraphBuilder("empty")
    graph = build.build()
    empty = replace(
        plan(), graph=fingerprint(graph), order=(), workspaces=(), residencies=(), host_residencies=(), swap_outs=(),
        swap_ins=(), peak_bytes=0, host_bytes=0,
        predicted=seconds_each(0, 0, 0),
    )  # fmt: skip
    assert validate(empty, graph) == []


def test_the_step_must_end_with_the_offsets_it_starts_with():
    moved = replace(
        roomy(plan()),
        residencies=(*plan().residencies[1:], Residency(W, 0, 1, 0), Residency(W, 5, END, 320)),
        host_residencies=(*plan().host_residencies, HostResidency(W, -1, END, 128)),
        swap_outs=(SwapOut(W, -1, 1), *plan().swap_outs),
        swap_ins=(plan().swap_ins[0], SwapIn(W, 5, 5), plan().swap_ins[1]),
    )
    assert complaints(moved) == ["w is at offset 0 when the step starts, but at 320 when it ends"]
    back = changed(moved, "residencies", len(moved.residencies) - 1, offset=0)
    assert complaints(back) == []
    assert runs_clean(back, step(), runs=30)


def test_an_update_makes_the_host_copy_stale():
    stale = replace(
        roomy(plan()),
        residencies=(*plan().residencies[1:], Residency(W, 0, 6, 0), Residency(W, 6, END, 0)),
        host_residencies=(*plan().host_residencies, HostResidency(W, -1, END, 128)),
        swap_ins=(*plan().swap_ins, SwapIn(W, 6, END)),
    )
    assert complaints(stale) == ["swap-in 2 of w reads a host copy that is not valid then"]
    assert not runs_clean(stale, step(), runs=30)
    copied = replace(stale, swap_outs=(plan().swap_outs[0], SwapOut(W, 5, 6), plan().swap_outs[1]))
    assert complaints(copied) == []
    assert runs_clean(copied, step(), runs=30)


def test_what_is_never_written_may_be_dropped_if_the_host_has_it():
    """The batch is read once more, late: it may leave without a copy, but only if it has a place to come back from."""
    again = [*plan().residencies, Residency(X, 5, END, 320)]
    dropped = replace(roomy(plan()), residencies=tuple(again), swap_ins=(*plan().swap_ins, SwapIn(X, 5, END)))
    assert complaints(dropped) == ["swap-in 2 of x has no place in the host slab from slot 4 to 7"]
    housed = replace(dropped, host_residencies=(*plan().host_residencies, HostResidency(X, -1, END, 128)))
    assert complaints(housed) == []
    assert runs_clean(housed, step(), runs=30)


def test_a_copy_must_not_begin_before_the_storage_has_come():
    """A storage that comes and leaves again at once: the copy out waits only for what it names."""
    hasty = replace(
        roomy(plan()),
        residencies=(*plan().residencies, Residency(X, 2, 5, 320)),
        host_residencies=(*plan().host_residencies, HostResidency(X, -1, END, 128)),
        swap_ins=(SwapIn(X, 2, 4), *plan().swap_ins),
        swap_outs=(plan().swap_outs[0], SwapOut(X, 2, 5), plan().swap_outs[1]),
    )
    assert "swap-out 1 of x does not wait for swap-in 0, which brings it" in complaints(hasty)
    assert complaints(changed(hasty, "swap_outs", 1, ready=4)) == []


def test_who_gets_an_address_waits_for_a_copy_that_nobody_used():
    """Both copies go to offset 320; in this queue the earlier owner's comes last."""
    homes = (*plan().host_residencies, HostResidency(X, -1, END, 128), HostResidency(W, -1, END, 192))
    queue = replace(
        roomy(plan()),
        residencies=(
            Residency(W, 0, 3, 0), *plan().residencies[1:], Residency(X, 2, 3, 320), Residency(W, 3, END, 320)
        ),
        host_residencies=homes,
        swap_ins=(SwapIn(W, 3, 3), SwapIn(X, 2, 3), *plan().swap_ins),
        swap_outs=(plan().swap_outs[0], SwapOut(W, -1, 3), plan().swap_outs[1]),
    )  # fmt: skip
    says = "w gets bytes on the device in slot 3 without waiting for all that is done to x there"
    assert says in complaints(queue)
    turned = replace(queue, swap_ins=(queue.swap_ins[1], queue.swap_ins[0], *plan().swap_ins))
    assert says not in complaints(turned)


@pytest.mark.parametrize("reason", ["used later", "returned", "held", "another size", "not allowed", "read otherwise"])
def test_memory_is_taken_over_only_from_what_is_done_with(reason):
    def graph(spoilt):
        build = GraphBuilder("takeover")
        new_size = 32 if spoilt == "another size" else 64
        old = build.add_storage("old", 64, Kind.INPUT if spoilt == "held" else Kind.ACTIVATION)
        whole = build.add_tensor("old", old, [64])
        turned = build.add_tensor("turned", old, [64], base=whole)
        new = build.add_tensor("new", build.add_storage("new", new_size, Kind.ACTIVATION), [new_size])
        last = build.add_tensor("last", build.add_storage("last", 64, Kind.OUTPUT), [64])
        build.add_op("make", "rand", [], [] if spoilt == "held" else [whole])
        inputs = [whole, turned] if spoilt == "read otherwise" else [whole]
        build.add_op("take", "relu", inputs, [new], overwrites=[] if spoilt == "not allowed" else [whole])
        build.add_op("end", "add", [new, whole] if spoilt == "used later" else [new], [last])
        return build.build([last, whole] if spoilt == "returned" else [last])

    def verdict(spoilt):
        subject = graph(spoilt)
        told = replace(
            plan(), graph=fingerprint(subject), order=(0, 1, 2), workspaces=(), host_residencies=(), swap_outs=(),
            residencies=(Residency(0, 0, 1, 0), Residency(1, 1, 3, 0), Residency(2, 2, 3, 64)), swap_ins=(),
            peak_bytes=128, host_bytes=0, predicted=seconds_each(3, 0, 0),
        )  # fmt: skip
        return validate(told, subject)

    assert verdict("nothing") == []
    assert "op take in slot 1 needs old, which is not on the device then" in verdict(reason)


def test_memory_that_is_copied_out_in_that_very_slot_is_not_taken_over():
    copied = replace(
        roomy(plan()),
        host_residencies=(*plan().host_residencies, HostResidency(B, 1, 3, 128)),
        swap_outs=(SwapOut(B, 1, 3), *plan().swap_outs),
    )
    assert "op back in slot 3 needs b, which is not on the device then" in complaints(copied)


def test_state_that_is_there_at_the_start_does_not_leave_at_the_end():
    left = replace(
        roomy(plan()),
        host_residencies=(*plan().host_residencies, HostResidency(W, -1, END, 128)),
        swap_outs=(plan().swap_outs[0], SwapOut(W, 5, END), plan().swap_outs[1]),
    )
    assert "w is on the device when the step starts, but not when it ends" in complaints(left)


def test_an_update_in_the_very_first_slot_makes_the_host_copy_stale_too():
    build = GraphBuilder("first slot")
    old = build.add_tensor("w", build.add_storage("w", 64, Kind.PARAMETER), [64])
    build.add_op("update", "neg", [old], [build.add_tensor("w'", 0, [64])])
    graph = build.build()
    kept = replace(
        plan(), graph=fingerprint(graph), order=(0,), workspaces=(), residencies=(Residency(0, 0, 1, 0),),
        host_residencies=(HostResidency(0, -1, 1, 0),), swap_ins=(SwapIn(0, 0, 0),), swap_outs=(SwapOut(0, 0, 1),),
        peak_bytes=64, host_bytes=64, predicted=seconds_each(1, 1, 1),
    )  # fmt: skip
    says = "w is not on the device when the step starts, and its host copy is not valid when it ends"
    assert says not in validate(kept, graph)
    assert says in validate(replace(kept, swap_outs=()), graph)


def test_an_op_that_makes_nothing_takes_nothing_over():
    build = GraphBuilder("nothing made")
    whole = build.add_tensor("old", build.add_storage("old", 64, Kind.ACTIVATION), [64])
    build.add_op("make", "rand", [], [whole])
    build.add_op("look", "print", [whole], [], overwrites=[whole])
    graph = build.build()
    told = replace(
        plan(), graph=fingerprint(graph), order=(0, 1), workspaces=(), host_residencies=(), swap_outs=(), swap_ins=(),
        residencies=(Residency(0, 0, 1, 0),), peak_bytes=64, host_bytes=0, predicted=seconds_each(2, 0, 0),
    )  # fmt: skip
    assert validate(told, graph) == ["op look in slot 1 needs old, which is not on the device then"]


def test_what_takes_no_memory_needs_no_residency():
    build = GraphBuilder("nothing")
    nothing = build.add_tensor("nothing", build.add_storage("nothing", 0, Kind.ACTIVATION), [0])
    last = build.add_tensor("last", build.add_storage("last", 0, Kind.OUTPUT), [0])
    build.add_op("make", "rand", [], [nothing])
    build.add_op("end", "relu", [nothing], [last])
    graph = build.build([last])
    bare = replace(
        plan(), graph=fingerprint(graph), order=(0, 1), workspaces=(), residencies=(), host_residencies=(),
        swap_outs=(), swap_ins=(), peak_bytes=0, host_bytes=0, predicted=seconds_each(2, 0, 0),
    )  # fmt: skip
    assert validate(bare, graph) == []
