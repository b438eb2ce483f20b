"""Plans in which an op runs again: what the validator proves of them, and what the rest of the room says of them."""

import json
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.graph import GraphBuilder, Kind
from planner.plan import (
    HostResidency,
    PlanIndex,
    Residency,
    SwapIn,
    SwapOut,
    memory_over_time,
    plan_from_json,
    plan_to_json,
    trace_json,
    validate,
)
from planner.plan.validator.op_accesses import slot_accesses
from planner.plan.validator.order import check_ops, check_order
from tests.effort import EFFORT
from tests.memory.graphs import random_graph, random_order
from tests.plan.again import computes_the_same, with_repeats
from tests.plan.again_by_hand import END, LAST, MAKE, MORE, ORDER, OUT, TWIST, UPDATE, A, B, C, W, X, plan, step
from tests.plan.changing import replace
from tests.plan.corruption import corruptions
from tests.plan.interpreter import runs_clean
from tests.plan.plans import random_plan

SEEDS = st.integers(0, 10**6)


def complaints(subject, graph=None):
    """What is wrong but for stated sizes."""
    found = validate(subject, step() if graph is None else graph)
    return [problem for problem in found if not problem.startswith("the plan says")]


def test_what_was_dropped_may_be_made_again():
    assert validate(plan(), step()) == []
    assert runs_clean(plan(), step(), runs=20)


def test_such_a_plan_can_be_saved():
    loaded = plan_from_json(plan_to_json(plan()))
    assert loaded.order == ORDER
    assert validate(loaded, step()) == []


def test_its_index_its_memory_and_its_trace_have_an_entry_for_each_instance():
    index = PlanIndex(step(), plan())
    assert index.slots_of(MAKE) == (0, 3)
    assert index.slots_of(LAST) == (5,)
    assert index.repeats == (3, 4)
    first, again = index.numbers(A)
    assert (index.stop[first], index.start[again]) == (3, 3)
    assert not index.from_step_start[again]
    assert index.copy_in[again] == -1
    times, levels = memory_over_time(index, plan().predicted.spans)
    assert dict(zip(times.tolist(), levels.tolist(), strict=True)) == {
        0.0: 256, 2.0: 320, 3.0: 320, 4.0: 192, 5.0: 256, 6.0: 128
    }  # fmt: skip
    events = json.loads(trace_json(step(), plan()))["traceEvents"]
    assert [event["name"] for event in events if event.get("cat", "").startswith("op,")] == [
        "make", "twist", "more", "make (run 2)", "twist (run 2)", "last", "update"
    ]  # fmt: skip


def test_an_op_that_draws_random_numbers_may_draw_them_again():
    graph = step(random=True)
    assert validate(plan(graph), graph) == []
    assert runs_clean(plan(graph), graph, runs=3)


def counting():
    """The step, in which the first op also counts in m how often it ran; the last op of all reads m."""
    build = GraphBuilder("counting")
    kinds = {
        "w": Kind.PARAMETER, "x": Kind.INPUT, "a": Kind.ACTIVATION, "b": Kind.ACTIVATION, "m": Kind.BUFFER,
        "out": Kind.OUTPUT,
    }  # fmt: skip
    t = {name: build.add_tensor(name, build.add_storage(name, 64, kind), [64]) for name, kind in kinds.items()}
    more = build.add_tensor("m'", M, [64])
    build.add_op("norm", "native_batch_norm", [t["x"], t["w"], t["m"]], [t["a"], more], first_run_only=[M])
    build.add_op("more", "mul", [t["a"]], [t["b"]])
    build.add_op("last", "add", [t["a"], t["b"], more], [t["out"]])
    return build.build([t["out"]])


M = 4
COUNTED = (
    Residency(W, 0, 4, 0), Residency(X, 0, 4, 64), Residency(A, 0, 2, 128), Residency(A, 2, 4, 128),
    Residency(B, 1, 4, 192), Residency(OUT, 3, 4, 256),
)  # fmt: skip


def counted(*more, **changes):
    return plan(
        counting(), order=(0, 1, 0, 2), peak_bytes=384, residencies=(*COUNTED, *more),
        **changes,
    )  # fmt: skip


def test_an_op_that_runs_again_leaves_alone_what_is_for_its_first_run():
    made = counted(Residency(M, 0, 4, 320))
    assert validate(made, counting()) == []
    assert runs_clean(made, counting(), runs=10)
    plain = replace(counting(), ops=tuple(replace(op, first_run_only=()) for op in counting().ops))
    says = "op norm runs again in slot 2, and would update m twice in one step"
    assert says in complaints(plan(plain, order=made.order, residencies=made.residencies), plain)


def test_what_is_for_the_first_run_may_be_away_when_the_op_runs_again():
    home = HostResidency(M, -1, 4, 0)
    made = counted(
        Residency(M, 0, 1, 320), Residency(M, 3, 4, 320), host_residencies=(home,), host_bytes=64,
        swap_outs=(SwapOut(M, 0, 1),), swap_ins=(SwapIn(M, 3, 3),),
    )  # fmt: skip
    assert complaints(made, counting()) == []
    assert runs_clean(made, counting(), runs=10)


def test_the_first_run_of_an_op_still_needs_it():
    gone = counted(Residency(M, 1, 4, 320))
    assert "op norm in slot 0 needs m, which is not on the device then" in complaints(gone, counting())


def test_state_is_updated_once():
    twice = plan(order=(*ORDER, UPDATE), residencies=tuple(
        replace(stay, stop=END + 1) if stay.stop == END else stay for stay in plan().residencies
    ))  # fmt: skip
    problems = complaints(twice)
    assert "op update runs again in slot 7, and would update w twice in one step" in problems
    assert "op update in slot 7 needs w as it is before op update, which ran earlier" in problems
    assert not runs_clean(twice, step(), runs=3)


def test_an_op_does_not_run_again_once_its_input_was_overwritten():
    late = plan(order=(MAKE, TWIST, MORE, LAST, UPDATE, MAKE, TWIST), residencies=(
        Residency(W, 0, END, 0), Residency(X, 0, END, 64), Residency(A, 0, END, 128), Residency(B, 2, 6, 192),
        Residency(C, 0, END, 320), Residency(OUT, 3, END, 256),
    ))  # fmt: skip
    assert complaints(late) == ["op make in slot 5 needs w as it is before op update, which ran earlier"]
    assert not runs_clean(late, step(), runs=3)


def test_an_update_in_place_does_not_run_twice_on_the_same_value():
    twice = plan(order=(MAKE, TWIST, MORE, TWIST, LAST, UPDATE, MORE), residencies=(
        Residency(W, 0, END, 0), Residency(X, 0, END, 64), Residency(A, 0, END, 128), Residency(B, 2, END, 192),
        Residency(C, 0, END, 320), Residency(OUT, 4, END, 256),
    ))  # fmt: skip
    assert complaints(twice) == ["op twist in slot 3 needs a as it is before op twist, which ran earlier"]
    assert not runs_clean(twice, step(), runs=3)


def test_what_was_made_again_has_to_be_updated_again():
    half = plan(order=(MAKE, TWIST, MORE, MAKE, LAST, UPDATE, MORE))
    assert "op last in slot 4 needs a as op twist leaves it, which op make made anew in slot 3" in complaints(half)


def test_the_step_returns_the_last_value_of_its_outputs():
    build = GraphBuilder("returned")
    whole = build.add_tensor("a", build.add_storage("a", 64, Kind.OUTPUT), [64])
    build.add_op("make", "ones", [], [whole])
    build.add_op("twist", "neg_", [whole], [build.add_tensor("a'", 0, [64])])
    graph = build.build([whole])
    made = plan(graph, order=(MAKE, TWIST, MAKE), residencies=(Residency(0, 0, 3, 0),), peak_bytes=64)
    says = "the end of the step needs a as op twist leaves it, which op make made anew in slot 2"
    assert validate(made, graph) == [says]
    assert not runs_clean(made, graph, runs=3)


def test_an_op_that_makes_nothing_runs_once():
    build = GraphBuilder("nothing made")
    whole = build.add_tensor("a", build.add_storage("a", 64, Kind.INPUT), [64])
    build.add_op("look", "print", [whole], [])
    graph = build.build()
    told = plan(graph, order=(0, 0), residencies=(Residency(0, 0, 2, 0),), peak_bytes=64)
    says = "op look runs again in slot 1 and makes nothing, so it can only have an effect that is not in the graph"
    assert validate(told, graph) == [says]


def test_an_operator_of_somebody_elses_runs_once() -> None:
    build = GraphBuilder("an operator that may count its calls")
    made = build.add_tensor("a", build.add_storage("a", 64, Kind.ACTIVATION), [64])
    build.add_op("count", "mine.count.default", [], [made])
    graph = build.build([made])
    again = plan(graph, order=(0, 0), residencies=(Residency(0, 0, 2, 0),), peak_bytes=64)
    says = (
        "op count runs again in slot 1, and mine.count.default is not an operator of PyTorch: "
        "it may keep something between its runs"
    )
    assert says in validate(again, graph)


def test_a_residency_begins_only_with_the_op_that_makes_its_first_value():
    late = plan(residencies=tuple(
        replace(stay, start=4) if (stay.storage, stay.start) == (A, 3) else stay for stay in plan().residencies
    ))  # fmt: skip
    says = complaints(late)
    assert "a is on the device from slot 4, where nothing makes it or copies it in" in says
    assert "op make in slot 3 needs a, which is not on the device then" in says


def test_everything_that_an_op_writes_is_there_when_it_runs_again():
    gone = plan(residencies=tuple(
        replace(stay, stop=3) if stay.storage == C else stay for stay in plan().residencies
    ))  # fmt: skip
    assert complaints(gone) == ["op make in slot 3 needs c, which is not on the device then"]


def copied(ready):
    """C, which is written in slots 0 and 3, is copied to the host once and comes back at the end."""
    stays = (*(stay for stay in plan().residencies if stay.storage != C), Residency(C, 0, 4, 320))
    return plan(
        residencies=(*stays, Residency(C, 5, END, 320)), host_residencies=(HostResidency(C, -1, END, 0),),
        swap_outs=(SwapOut(C, ready, 4),), swap_ins=(SwapIn(C, 5, 6),), host_bytes=64,
    )  # fmt: skip


def test_a_copy_out_waits_for_the_last_instance_that_writes():
    """A kernel may use its output as scratch memory, so what it writes is not there all the time."""
    assert complaints(copied(3)) == []
    assert runs_clean(copied(3), step(), runs=30)
    assert complaints(copied(0)) == ["swap-out 0 of c does not wait for op make in slot 3, which writes it"]
    assert not runs_clean(copied(0), step(), runs=30)


def away(order):
    """C is copied to the host after slot 0, is made again in slot 3 and leaves again without a copy."""
    stays = (*(stay for stay in plan().residencies if stay.storage != C), Residency(C, 0, 1, 320))
    return plan(
        order=order, residencies=(*stays, Residency(C, 3, 4, 320), Residency(C, 5, END, 320)),
        host_residencies=(HostResidency(C, -1, END, 0),), swap_outs=(SwapOut(C, 0, 1),), swap_ins=(SwapIn(C, 5, 6),),
        host_bytes=64,
    )  # fmt: skip


def test_the_host_copy_of_a_value_stays_valid_when_the_value_is_made_again():
    assert complaints(away(ORDER)) == []
    assert runs_clean(away(ORDER), step(), runs=30)


def test_the_host_copy_of_another_value_does_not():
    """A is copied to the host twisted; made again without a twist, it is another value."""
    stays = (*(stay for stay in plan().residencies if stay.storage != A), Residency(A, 0, 3, 128))
    stale = plan(
        order=(MAKE, TWIST, MORE, MAKE, LAST, UPDATE, MORE),
        residencies=(*stays, Residency(A, 3, 4, 256), Residency(A, 4, END, 256)),
        host_residencies=(HostResidency(A, -1, END, 0),), swap_outs=(SwapOut(A, 2, 3),), swap_ins=(SwapIn(A, 4, 4),),
        host_bytes=64,
    )  # fmt: skip
    assert any("needs a as op twist leaves it" in problem for problem in complaints(stale))


@settings(max_examples=60 * EFFORT, deadline=None)
@given(SEEDS, SEEDS, SEEDS)
def test_sound_plans_with_ops_that_run_again_are_accepted_and_compute_the_right_values(seed, shuffle, choice):
    graph = random_graph(seed)
    made = random_plan(graph, with_repeats(graph, random_order(graph, shuffle), choice), choice)
    assert validate(made, graph) == []
    assert runs_clean(made, graph, runs=4)


def test_such_plans_drop_values_and_make_them_again():
    """The plans above are not all trivial."""
    again = dropped = chains = reused = 0
    for seed in range(60):
        graph = random_graph(seed)
        made = random_plan(graph, with_repeats(graph, random_order(graph, seed), seed), seed)
        repeats = PlanIndex(graph, made).repeats
        again += len(repeats)
        remade = [r for r in made.residencies if r.start in repeats and r.storage in graph.writes[made.order[r.start]]]
        remade = [r for r in remade if (r.storage, r.start) not in {(c.storage, c.start) for c in made.swap_ins}]
        dropped += len(remade)
        runs = Counter(made.order)
        chains += sum(
            all(runs[op] > 1 for op in writers)
            for s in range(len(graph.storages))
            if len(writers := [op for op, written in enumerate(graph.writes) if s in written]) > 1
        )
        starts = {(r.start, r.offset) for r in remade}
        reused += sum((r.stop, r.offset) in starts for r in made.residencies)
    assert again > 100
    assert dropped > 30
    assert chains > 2
    assert reused > 3


@settings(max_examples=100 * EFFORT, deadline=None)
@given(SEEDS, SEEDS)
def test_an_order_is_accepted_exactly_if_it_computes_the_same(seed, shuffle):
    """Ops are put in, moved and left out at random, mostly to no good."""
    rng, graph = Random(shuffle), random_graph(seed, ops=7)
    if rng.random() < 0.3:
        graph = replace(graph, ops=tuple(
            replace(op, first_run_only=tuple(s for s in graph.writes[op.id] if rng.random() < 0.3)) for op in graph.ops
        ))  # fmt: skip
    order = with_repeats(graph, random_order(graph, shuffle), shuffle, tries=3)
    for _ in range(rng.choice([0, 1, 1, 2])):
        if rng.random() < 0.7:
            order.insert(rng.randint(0, len(order)), rng.randrange(len(graph.ops)))
        else:
            order.insert(rng.randrange(len(order)), order.pop(rng.randrange(len(order))))
    made = plan(graph, order=tuple(order))
    problems = check_ops(made, graph) or check_order(made, graph, slot_accesses(made, graph))[1]
    assert (problems == []) == computes_the_same(graph, order), problems


@settings(max_examples=30 * EFFORT, deadline=None)
@given(SEEDS, SEEDS, st.data())
def test_every_corruption_of_such_a_plan_is_caught_or_harmless(seed, choice, data):
    graph = random_graph(seed, ops=7)
    made = random_plan(graph, with_repeats(graph, random_order(graph, choice), choice), choice)
    spoilt = [pair for pair in corruptions(made, len(graph.storages)) if pair[1].budget_bytes < 10**5]
    for what, other in data.draw(st.lists(st.sampled_from(spoilt), min_size=12, max_size=12)):
        if validate(other, graph) == []:
            assert runs_clean(other, graph, runs=8), what


@pytest.mark.parametrize("table", ["residencies", "order"])
def test_each_corruption_of_the_plan_by_hand_is_caught_or_harmless(table):
    caught = 0
    for what, other in corruptions(plan(), len(step().storages)):
        if what.startswith(table):
            if validate(other, step()):
                caught += 1
            else:
                assert runs_clean(other, step(), runs=10), what
    assert caught > 10
