"""What the validator accepts computes the right values, whatever the timing.

The interpreter runs plans byte by byte in random interleavings. Each accepted plan must come out clean in all of them.
"""

from dataclasses import fields
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.plan import validate
from tests.effort import EFFORT
from tests.memory.graphs import random_graph, random_order
from tests.plan.by_hand import plan, step
from tests.plan.changing import replace
from tests.plan.corruption import TABLES, corruptions
from tests.plan.interpreter import runs_clean
from tests.plan.plans import random_plan, with_times

SEEDS = st.integers(0, 10**6)


@settings(max_examples=60 * EFFORT, deadline=None)
@given(SEEDS, SEEDS, SEEDS)
def test_sound_plans_are_accepted_and_compute_the_right_values(seed, shuffle, choice):
    graph = random_graph(seed)
    made = random_plan(graph, random_order(graph, shuffle), choice)
    assert validate(made, graph) == []
    assert runs_clean(made, graph, runs=6)


def test_sound_plans_swap_drop_and_take_over():
    """The plans above are not all trivial."""
    swaps, drops, takeovers = 0, 0, 0
    for seed in range(60):
        graph = random_graph(seed)
        made = random_plan(graph, random_order(graph, seed), seed)
        swaps += len(made.swap_outs) + len(made.swap_ins)
        leaving = {(out.storage, out.release) for out in made.swap_outs}
        again = {copy.storage for copy in made.swap_ins}
        drops += sum(r.storage in again and (r.storage, r.stop) not in leaving for r in made.residencies)
        starts = {(r.start, r.offset, r.storage) for r in made.residencies}
        for slot, op in enumerate(made.order):
            for reused_buffer in graph.ops[op].overwrites:
                old, new = graph.tensors[reused_buffer].storage, graph.writes[op][0]
                ends = [r for r in made.residencies if (r.storage, r.stop) == (old, slot)]
                takeovers += any((slot, r.offset, new) in starts for r in ends)
    assert swaps > 300
    assert drops > 100
    assert takeovers > 10


def test_every_corruption_of_a_field_is_caught_or_harmless():
    harmless, caught = [], 0
    for what, spoilt in corruptions(plan(), len(step().storages)):
        if validate(spoilt, step()) == []:
            harmless.append(what)
            assert runs_clean(spoilt, step(), runs=25), what
        else:
            caught += 1
    assert caught > 10 * len(harmless) > 0


@settings(max_examples=30 * EFFORT, deadline=None)
@given(SEEDS, SEEDS, st.data())
def test_every_corruption_of_any_plan_is_caught_or_harmless(seed, choice, data):
    graph = random_graph(seed, ops=7)
    made = random_plan(graph, random_order(graph, choice), choice)
    spoilt = [pair for pair in corruptions(made, len(graph.storages)) if pair[1].budget_bytes < 10**5]
    for what, other in data.draw(st.lists(st.sampled_from(spoilt), min_size=12, max_size=12)):
        if validate(other, graph) == []:
            assert runs_clean(other, graph, runs=8), what


def moved(plan, graph, random):
    """The plan after a few changes at once, with its stated sizes and times set right again."""
    for _ in range(random.randint(1, 3)):
        table = random.choice([*TABLES, "swap_outs", "swap_ins"])
        rows = list(getattr(plan, table))
        if not rows:
            continue
        place = random.randrange(len(rows))
        old = rows[place]
        if random.random() < 0.25:
            rows.insert(random.randrange(len(rows)), rows.pop(place))
        else:
            name = random.choice([field.name for field in fields(old) if field.name != "storage"])
            by = random.choice([-3, -2, -1, 1, 2, 3]) * (8 if name == "offset" else 1)
            rows[place] = replace(old, **{name: getattr(old, name) + by})
        plan = replace(plan, **{table: tuple(rows)})
        # A copy and the residency that it begins or ends often move together.
        new = rows[place]
        if table == "swap_outs" and random.random() < 0.7:
            stays = (
                replace(r, stop=new.release) if (r.storage, r.stop) == (old.storage, old.release) else r
                for r in plan.residencies
            )
            plan = replace(plan, residencies=tuple(stays))
        if table == "swap_ins" and random.random() < 0.7:
            stays = (
                replace(r, start=new.start) if (r.storage, r.start) == (old.storage, old.start) else r
                for r in plan.residencies
            )
            plan = replace(plan, residencies=tuple(stays))
    sizes = [storage.bytes for storage in graph.storages]
    top = max((r.offset + sizes[r.storage] for r in plan.residencies), default=0)
    host_top = max((h.offset + sizes[h.storage] for h in plan.host_residencies), default=0)
    return replace(plan, peak_bytes=top, budget_bytes=max(top, 0), host_bytes=host_top, host_budget_bytes=None)


@settings(max_examples=75 * EFFORT, deadline=None)
@given(SEEDS, SEEDS, SEEDS)
def test_plans_changed_in_several_places_are_caught_or_harmless(seed, choice, change):
    graph = random_graph(seed, ops=9)
    made = moved(random_plan(graph, random_order(graph, choice), choice), graph, Random(change))
    verdict = [problem for problem in validate(made, graph) if "predicted" not in problem]
    if verdict == []:
        assert validate(with_times(made), graph) == []
        assert runs_clean(made, graph, runs=12)


@pytest.mark.parametrize(
    ("table", "field", "by"), [("swap_ins", "use", 1), ("swap_outs", "ready", -1), ("swap_outs", "ready", -2)]
)
def test_what_the_validator_calls_a_race_goes_wrong_in_some_interleaving(table, field, by):
    """So it asks for no more waiting than is needed; and the interpreter does find races."""
    races = 0
    for seed in range(30):
        graph = random_graph(seed, ops=8)
        made = random_plan(graph, random_order(graph, seed), seed)
        for place, row in enumerate(getattr(made, table)):
            rows = list(getattr(made, table))
            rows[place] = replace(row, **{field: getattr(row, field) + by})
            spoilt = replace(made, **{table: tuple(rows)})
            problems = [problem for problem in validate(spoilt, graph) if "predicted" not in problem]
            only_races = all("does not wait" in problem for problem in problems)
            if problems and only_races and graph.storages[row.storage].bytes > 0:
                races += 1
                assert not runs_clean(spoilt, graph, runs=200), problems
    assert races > 5
