"""Every plan that was shown is kept in a list: going back, undo and redo, notes, comparing, saving and loading."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from planner import zoo
from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph
from planner.plan import SwapPlan, plan_from_json, plan_to_json, validate
from planner.profile import machine
from planner.swap import plan_swaps
from planner.units import bytes_label, format_percent, format_seconds
from tests.widgets.session.message_recorder import MessageRecorder
from widgets.info import assess_feasibility
from widgets.panels.workbench import Workbench
from widgets.session import Session
from widgets.session.state import plan_list
from widgets.session.state.jobs import Job
from widgets.session.state.plan_cache import PlanCache
from widgets.session.state.saved_plan import SavedPlan


@pytest.fixture(scope="module")
def graph() -> Graph:
    return capture(zoo.load("mlp:layers=3,optimizer=adam"))


@pytest.fixture
def bench(graph: Graph) -> Workbench:
    """A workbench that has shown a plan each for two budgets and for another machine."""
    bench = Workbench(graph, machine="v100-16gb", budget="80%")
    assert bench.plan is not None
    bench.budget = "60%"
    assert bench.plan is not None
    bench.machine = "k80x8"
    assert bench.plan is not None
    return bench


def shown(bench: Workbench) -> tuple[str, int, float]:
    """What is shown: the machine, the budget, and the seconds of a step."""
    plan = bench.plan
    assert plan is not None
    assert (plan.machine, plan.budget_bytes) == (bench.machine.name, bench.budget)
    return plan.machine, plan.budget_bytes, plan.predicted.seconds


def test_the_list_survives_a_change_of_machine_and_budget(bench: Workbench) -> None:
    plans = bench.plans
    assert {one.plan.machine for one in plans} == {"v100-16gb", "k80x8"}
    assert len({one.budget_bytes for one in plans if one.plan.machine == "v100-16gb"}) == 2
    assert [one.number for one in plans] == list(range(1, len(plans) + 1))
    assert [one.shown for one in plans] == [False] * (len(plans) - 1) + [True]
    assert all(one.method and not validate(one.plan, bench.graph) for one in plans)
    for name in ("v100-16gb", "k80x8"):
        rows = [one for one in plans if one.plan.machine == name]
        assert [one.step_seconds for one in rows if one.best] == [min(one.step_seconds for one in rows)]


def test_going_back_to_a_plan_changes_machine_budget_and_answers_with_it(bench: Workbench) -> None:
    first, recorder = bench.plans[0], MessageRecorder(bench.session)
    row = bench.show_plan(first.number)
    assert (row.number, row.plan, row.shown) == (first.number, bench.plan, True)
    assert repr(row) == (
        f"<Plan 1 for V100 SXM2 16 GB, {bytes_label(first.budget_bytes)}: {format_seconds(first.step_seconds)} a step, "
        f"{format_percent(first.percent_of_ideal / 100)} of ideal, {first.method}>"
    )
    assert shown(bench) == ("v100-16gb", first.budget_bytes, first.step_seconds)
    assert recorder.last("machine")["name"] == "v100-16gb"
    assert recorder.last("budget")["budget_bytes"] == first.budget_bytes
    assert [one.number for one in bench.plans if one.shown] == [first.number]
    assert len(bench.plans) == recorder.last("plans")["rows"][-1]["number"]


def test_a_slower_plan_that_was_chosen_stays_while_other_budgets_are_swept(graph: Graph) -> None:
    session = Session(graph, machine="v100-16gb", budget="60%")
    recorder = MessageRecorder(session)
    first = session.plans[-1]
    session.show_plan(first.number)
    session.request({"do": "ready"})
    recorder.wait("front", lambda front: front["share"] is None and len(front["points"]) > 3)
    assert session.plan is not None
    assert session.plan.predicted.seconds == first.step_seconds
    assert len(session.plans) < len(recorder.last("front")["points"])  # only those that were shown are listed
    session.close()


def test_what_was_shown_is_undone_and_redone(bench: Workbench) -> None:
    last = shown(bench)
    seen = [last]
    while seen[-1][:2] != ("v100-16gb", bench.plans[0].budget_bytes):
        row = bench.undo()
        seen.append(shown(bench))
        assert (row.plan, row.shown) == (bench.plan, True)
    with pytest.raises(StowageError, match="no other plan was shown before"):
        bench.undo()
    for expected in reversed(seen[:-1]):
        row = bench.redo()
        assert shown(bench) == expected
        assert (row.plan, row.shown) == (bench.plan, True)
    with pytest.raises(StowageError, match="nothing was undone"):
        bench.redo()


def test_a_budget_without_a_plan_is_undone_to_the_plan_before_it(bench: Workbench) -> None:
    before = shown(bench)
    with pytest.warns(UserWarning, match=r"^a budget of 1 B is too small: .* allow at least \d+ bytes$") as warned:
        bench.budget = 1
    assert [one.filename for one in warned] == [__file__]
    assert bench.plan is None
    bench.undo()
    assert shown(bench) == before


def test_after_another_plan_is_shown_there_is_nothing_to_redo(bench: Workbench) -> None:
    bench.undo()
    bench.show_plan(1)
    assert bench.plan is not None
    with pytest.raises(StowageError, match="nothing was undone"):
        bench.redo()


def test_a_search_has_one_row_which_is_its_best_so_far(graph: Graph) -> None:
    session = Session(graph, machine="v100-16gb", budget="50%")
    before, recorder = len(session.plans), MessageRecorder(session)
    session.start_search(1.0)
    recorder.wait("search", lambda search: search["state"] in {"paused", "done"})
    plans = session.plans
    assert len(plans) <= before + 1
    assert session.plan is not None
    assert min(one.step_seconds for one in plans) == session.plan.predicted.seconds


def test_a_note_is_text_in_the_table(bench: Workbench) -> None:
    bench.note_plan(1, "<script>alert(1)</script>", name="a <b>bold</b> one")
    assert (bench.plans[0].name, bench.plans[0].note) == ("a <b>bold</b> one", "<script>alert(1)</script>")
    html = bench.plans._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    with pytest.raises(StowageError, match="at most 1,000 characters, got 1,001"):
        bench.note_plan(1, "x" * 1001)


def test_as_text_the_table_has_a_heading_over_every_column(bench: Workbench) -> None:
    bench.note_plan(1, "two\nlines")
    _, heads, first, *_ = repr(bench.plans).splitlines()
    assert re.split(r"  +", heads.strip()) == [
        "plan", "machine", "budget", "step", "of ideal", "copied", "run again", "method", "note",
    ]  # fmt: skip
    cells = {"plan": "plan 1", "method": bench.plans[0].method, "note": "two lines"}
    assert all(first[heads.index(head) :].startswith(cell) for head, cell in cells.items())
    assert not first[: heads.index("plan")].strip(" ▸★")


def test_a_page_asks_for_the_same_and_is_refused_by_a_notice(bench: Workbench) -> None:
    session, recorder = bench.session, MessageRecorder(bench.session)
    session.request({"do": "write_plan", "plan": 1, "note": "from the page"})
    assert recorder.last("plans")["rows"][0]["note"] == "from the page"
    session.request({"do": "show_plan", "plan": 1})
    assert shown(bench)[:2] == ("v100-16gb", bench.plans[0].budget_bytes)
    session.request({"do": "undo"})
    assert shown(bench)[0] == "k80x8"
    session.request({"do": "redo"})
    assert shown(bench)[0] == "v100-16gb"
    session.request({"do": "load_plans", "text": "{}"})
    assert "is not a list of plans" in recorder.wait("notice")["sentence"]
    session.request({"do": "save_plans"})
    assert recorder.wait("exported")["filename"].endswith(".plans.json")


def test_the_plans_of_a_worker_are_not_those_of_the_step(graph: Graph) -> None:
    session = Session(graph, machine="v100-16gb", budget="70%")
    before, recorder = [one.number for one in session.plans], MessageRecorder(session)
    session.start_partition(2)
    recorder.wait("partition", lambda partition: partition["state"] == "done")
    session.show_worker(0)
    recorder.wait("worker", lambda worker: worker["state"] == "shown")
    session.request({"do": "in_worker", "request": {"do": "budget", "bytes": 5 * 2**20}})
    assert [one.number for one in session.plans] == before
    mark = recorder.mark()
    session.show_plan(before[0])  # of the whole step, which is shown again
    recorder.wait("worker", lambda worker: worker["state"] == "none", mark)
    session.close()


def test_a_plan_that_does_not_exist_is_refused(bench: Workbench) -> None:
    before = shown(bench)
    with pytest.raises(StowageError, match="there is no plan 99; give a number from 1 to"):
        bench.show_plan(99)
    assert shown(bench) == before


def test_a_plan_is_shown_named_and_compared_by_the_name_in_the_list(bench: Workbench) -> None:
    bench.note_plan("plan 1", name="baseline")
    first = bench.plans[0]
    bench.show_plan("baseline")
    assert shown(bench) == ("v100-16gb", first.budget_bytes, first.step_seconds)
    bench.show_plan("plan 2")
    assert [row.number for row in bench.plans if row.shown] == [2]
    assert bench.compare_plans("baseline", "plan 2").first_plan is first.plan
    with pytest.raises(StowageError, match=r"there is no plan 'plan 1'; give a number from 1 to \d, or 'baseline'$"):
        bench.show_plan("plan 1")
    bench.note_plan(2, name="baseline")
    with pytest.raises(StowageError, match=r"^2 plans are named 'baseline'; give the number of one, 1 or 2$"):
        bench.show_plan("baseline")
    for other in (None, True, 1.5, ["baseline"]):
        with pytest.raises(StowageError, match=r"^there is no plan .*; give a number from 1"):
            bench.show_plan(other)  # type: ignore[arg-type]


def test_what_is_no_file_of_plans_is_refused_with_what_to_give(bench: Workbench, tmp_path: Path) -> None:
    before = [row.number for row in bench.plans]
    (tmp_path / "notes.txt").write_text("plan 1 is the best")
    for path, refusal in (
        (None, r"^load_plans takes the path; the path must be a str or a Path, got None$"),
        (3, r"must be a str or a Path, got int$"),
        ([tmp_path], r"must be a str or a Path, got list$"),
        (bench.plans, r"must be a str or a Path, got PlanTable$"),
        (tmp_path, r"^cannot read .*: Is a directory; check the path$"),
        (tmp_path / "missing.json", r"^cannot read .*missing\.json: No such file or directory; check the path$"),
        (tmp_path / "notes.txt", r"notes\.txt: this is not a list of plans: the JSON breaks off or is malformed"),
    ):
        with pytest.raises(StowageError, match=refusal):
            bench.load_plans(path)  # type: ignore[arg-type]
    with pytest.raises(StowageError, match=r"^save_plans takes the path; .* got None$"):
        bench.save_plans(None)  # type: ignore[arg-type]
    assert [row.number for row in bench.plans] == before


def test_a_plan_made_elsewhere_is_set_and_has_a_row(graph: Graph) -> None:
    bench = Workbench(graph, machine="v100-16gb", budget="80%")
    first = bench.plan
    assert first is not None
    made = plan_swaps(graph, machine("k80x8"), "60%", method="swap", time_limit=0, progress=False)
    bench.plan = made
    assert shown(bench) == ("k80x8", made.budget_bytes, made.predicted.seconds)
    count = len(bench.plans)
    bench.plan = first
    assert shown(bench) == ("v100-16gb", first.budget_bytes, first.predicted.seconds)
    bench.plan = made
    assert (len(bench.plans), bench.plans[-1].shown, bench.plans[-1].method) == (count, True, made.method)


def test_what_is_no_plan_of_the_step_is_refused_with_what_to_do(bench: Workbench) -> None:
    before = shown(bench)
    other = capture(zoo.load("mlp:layers=2,optimizer=adam"))
    for plan, refusal in (
        (3, "got int; to show a plan of the list, call show_plan with its number"),
        (
            plan_swaps(other, machine("v100-16gb"), "60%", method="swap", time_limit=0, progress=False),
            "this plan is not for",
        ),
        (replace(bench.plans[0].plan, residencies=()), "this plan is not valid"),
    ):
        with pytest.raises(StowageError, match=refusal):
            bench.plan = plan  # type: ignore[assignment]
        assert shown(bench) == before


def test_two_plans_are_compared(bench: Workbench) -> None:
    one, other = bench.plans[0], bench.plans[1]
    recorder = MessageRecorder(bench.session)
    found = bench.compare_plans(one.number, other.number)
    assert (found.first_plan, found.second_plan) == (one.plan, other.plan)
    bench.session.request({"do": "compare_plans", "first": one.number, "second": other.number})
    sent = recorder.wait("plan_difference")
    assert [row[0] for row in sent["tensors"]] == [each.storage for each in found.tensors]


def test_plans_are_saved_and_loaded_with_names_and_notes(bench: Workbench, graph: Graph, tmp_path: Path) -> None:
    bench.note_plan(1, "the first", name="baseline")
    bench.save_plans(tmp_path / "plans.json")
    other = Workbench(graph, machine="v100-16gb", budget="100%")
    before = len(other.plans)
    count = other.load_plans(tmp_path / "plans.json")
    assert count == len(bench.plans) == len(other.plans) - before
    assert other.load_plans(tmp_path / "plans.json") == 0
    for saved, loaded in zip(bench.plans, other.plans[before:], strict=True):
        assert (loaded.note, loaded.machine, loaded.budget_bytes) == (saved.note, saved.machine, saved.budget_bytes)
        assert loaded.step_seconds == saved.step_seconds
        assert loaded.percent_of_ideal == pytest.approx(saved.percent_of_ideal)
        other.show_plan(loaded.number)
        assert shown(other) == (saved.plan.machine, saved.budget_bytes, saved.step_seconds)
    assert other.plans[before].name == "baseline"


def test_a_loaded_plan_is_drawn_where_only_the_budget_or_the_machine_moves(graph: Graph, tmp_path: Path) -> None:
    path, session = tmp_path / "plans.json", Session(graph, machine="v100-16gb", budget="60%")
    first, recorder = session.plan, MessageRecorder(session)
    assert first is not None
    session.start_search(60.0)
    # a faster one than simple policies find, so that it is not what is found without the file
    recorder.wait("plans", lambda plans: plans["rows"][-1]["step_seconds"] < first.predicted.seconds)
    session.close()  # a search that is only cancelled shows its last plan a moment later
    session.save_plans(path)
    best = session.plan
    assert best is not None
    for start, budget, change in (
        ("v100-16gb", "100%", ("budget", best.budget_bytes)),
        ("k80x8", best.budget_bytes, ("machine", "v100-16gb")),
    ):
        other = Workbench(graph, machine=start, budget=budget)
        assert other.load_plans(path) == len(session.plans)
        setattr(other, *change)
        assert shown(other) == ("v100-16gb", best.budget_bytes, best.predicted.seconds)


def test_a_loaded_plan_for_less_than_the_least_budget_shows_that_less_is_enough(tmp_path: Path) -> None:
    path, graph = tmp_path / "plans.json", capture(zoo.load("gpt:layers=1"))
    least = assess_feasibility(graph, machine("v100-16gb")).with_exact_least().least_bytes
    session = Session(graph, machine="v100-16gb", budget=least)
    recorder = MessageRecorder(session)
    session.request({"do": "ready"})  # a page is open, for which the exact least budget is found
    recorder.wait("budget", lambda budget: budget["state"] == "planned")
    session.save_plans(path)
    session.close()
    other = Workbench(graph, machine="v100-16gb", budget=least)
    assert other.plan is None  # the first estimate is higher
    other.load_plans(path)
    assert shown(other)[1] == least


def test_a_list_of_another_step_or_a_changed_one_is_refused_and_nothing_is_lost(
    bench: Workbench, tmp_path: Path
) -> None:
    path = tmp_path / "plans.json"
    bench.save_plans(path)
    other = Workbench(capture(zoo.load("mlp:layers=2,optimizer=adam")), machine="v100-16gb", budget="100%")
    before, drawn = [one.number for one in other.plans], other.plan
    with pytest.raises(
        StowageError, match=r"these plans are not of .*: open the step or graph that they were made for"
    ):
        other.load_plans(path)
    assert ([one.number for one in other.plans], other.plan) == (before, drawn)
    fields = json.loads(path.read_text())
    fields["plans"][0]["note"] = "changed"
    path.write_text(json.dumps(fields))
    with pytest.raises(StowageError, match="its checksum does not match"):
        bench.load_plans(path)


def test_the_oldest_plans_without_a_name_or_note_are_dropped_and_the_table_says_so(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_list, "MOST_PLANS", 3)
    bench = Workbench(graph, machine="v100-16gb", budget="90%")
    bench.note_plan(bench.plans[0].number, "keep me")
    for share in (85, 80, 75, 70, 65, 60):
        bench.budget = f"{share}%"
        assert bench.plan is not None
    plans = bench.plans
    assert plans[0].note == "keep me"
    assert sum(not one.note for one in plans) <= 4  # what is best or shown stays
    assert plans.dropped > 0
    assert f"{plans.dropped} older without a name or a note were dropped" in repr(plans)
    with pytest.raises(StowageError, match=r"plan \d+ was dropped"):
        bench.show_plan(next(k for k in range(1, 20) if k not in {one.number for one in plans}))


def plans_of(graph: Graph, cache: PlanCache, shares: tuple[int, ...]) -> list[SwapPlan]:
    feasibility = cache.feasibility
    return [
        plan_swaps(
            graph, feasibility.machine, feasibility.peak_bytes * share // 100, method="swap", time_limit=0,
            progress=False,
        )
        for share in shares
    ]  # fmt: skip


def test_a_faster_plan_for_a_budget_does_not_hide_a_smaller_one_that_fits_less(graph: Graph) -> None:
    cache = PlanCache(assess_feasibility(graph, machine("v100-16gb")))
    small, large = plans_of(graph, cache, (60, 90))
    assert small.peak_bytes < large.peak_bytes
    assert small.predicted.seconds > large.predicted.seconds
    cache.add(replace(small, budget_bytes=large.budget_bytes))
    cache.add(large)
    known = cache.fitting(small.peak_bytes)
    assert known is not None
    assert known.predicted.seconds == small.predicted.seconds


def test_a_plan_that_is_found_again_after_it_was_loaded_has_one_row(graph: Graph) -> None:
    cache = PlanCache(assess_feasibility(graph, machine("v100-16gb")))
    (found,) = plans_of(graph, cache, (60,))
    listed = plan_list.PlanList()
    listed.add([(SavedPlan(plan_from_json(plan_to_json(found)), "baseline"), cache)])
    listed.record(found, cache, Job("plan"), False)
    assert [(row.name, row.shown) for row in listed.table(found)] == [("baseline", True)]


def test_a_faster_plan_that_nobody_asked_for_is_no_step_to_undo(graph: Graph) -> None:
    cache = PlanCache(assess_feasibility(graph, machine("v100-16gb")))
    slow, fast = plans_of(graph, cache, (60, 70))
    listed = plan_list.PlanList()
    listed.record(slow, cache, Job("plan"), False)
    listed.record(replace(fast, budget_bytes=slow.budget_bytes), cache, Job("plan"), False, unasked=True)
    assert len(listed.plans) == 2
    assert not listed.can_step(-1)
    listed.record(fast, cache, Job("plan"), False)
    assert listed.can_step(-1)


def searched(session: Session, method: str) -> SwapPlan:
    """What a short search by a method came to."""
    session.start_search(20.0, method)
    search = session.search
    assert search is not None
    return search.wait()


def test_every_method_that_was_searched_has_a_row_though_another_plan_is_faster(tmp_path: Path) -> None:
    session = Session(capture(zoo.load("gpt:layers=2,hidden=64,sequence=32,optimizer=adam")), budget="80%")
    recorder = MessageRecorder(session)
    swapped, recomputed = searched(session, "swap"), searched(session, "recompute")
    assert recomputed.predicted.seconds > swapped.predicted.seconds
    assert session.plan is not None
    assert session.plan.predicted.seconds <= swapped.predicted.seconds
    rows = {row.search: row for row in session.plans if row.search is not None}
    assert {name: row.step_seconds for name, row in rows.items()} == {
        "swap": swapped.predicted.seconds,
        "recompute": recomputed.predicted.seconds,
    }
    slower = rows["recompute"]
    assert not slower.shown
    assert recorder.wait("plans", lambda plans: plans["rows"][-1]["number"] == slower.number)["rows"][-1][
        "method"
    ].startswith("recompute")
    assert session.compare_plans(rows["swap"].number, slower.number).second_plan is slower.plan
    session.write_plan(slower.number, "no copies", "slower")
    session.save_plans(tmp_path / "plans.json")
    session.show_plan(slower.number)
    assert session.plan is not None
    assert session.plan.predicted.seconds == slower.step_seconds
    other = Session(session.graph, budget="100%")
    other.load_plans(tmp_path / "plans.json")
    assert [(row.name, row.note, row.step_seconds) for row in other.plans if row.note] == [
        ("no copies", "slower", slower.step_seconds)
    ]


def test_a_loaded_plan_keeps_the_method_that_was_searched_and_a_new_search_has_its_own_row(tmp_path: Path) -> None:
    graph = capture(zoo.load("mlp:layers=2,optimizer=adam"))
    session, path = Session(graph, machine="v100-16gb", budget="50%"), tmp_path / "plans.json"
    searched(session, "joint")
    session.save_plans(path)
    other = Session(graph, machine="v100-16gb", budget="50%")
    before = len(other.plans)
    other.load_plans(path)
    loaded = other.plans[before:]
    saved = [row for row in session.plans if row.search == "joint"]
    assert [(row.method, row.step_seconds) for row in loaded if row.search] == [
        (row.method, row.step_seconds) for row in saved
    ]
    assert loaded[-1].method.startswith("joint")
    assert other.load_plans(path) == 0
    searched(other, "joint")
    first, _ = (row.plan for row in other.plans if row.search == "joint")
    assert first is loaded[-1].plan
    other.save_plans(tmp_path / "again.json")  # a list that was loaded is saved with as much
    third = Session(graph, machine="v100-16gb", budget="50%")
    third.load_plans(tmp_path / "again.json")
    assert [row.method for row in third.plans if row.search] == [row.method for row in other.plans if row.search]


def test_a_list_of_another_version_of_the_file_is_refused_in_one_sentence(bench: Workbench, tmp_path: Path) -> None:
    path = tmp_path / "plans.json"
    bench.save_plans(path)
    path.write_text(path.read_text().replace('"version":2,"graph"', '"version":1,"graph"'))
    with pytest.raises(StowageError) as refused:
        bench.load_plans(path)
    assert str(refused.value) == (
        f"{path}: this list of plans has version '1' and this program reads version 2; save the list again"
    )


def test_a_search_has_one_row_unless_it_was_noted(graph: Graph) -> None:
    cache = PlanCache(assess_feasibility(graph, machine("v100-16gb")))
    budget = cache.feasibility.peak_bytes
    one, other, last = (replace(plan, budget_bytes=budget) for plan in plans_of(graph, cache, (60, 70, 80)))
    listed = plan_list.PlanList()
    assert listed.record_best(one, cache, "swap")
    assert not listed.record_best(one, cache, "swap")
    assert listed.record_best(one, cache, "joint")
    listed.record_best(other, cache, "swap")
    assert [(row.search, row.plan) for row in listed.table(None)] == [("swap", other), ("joint", one)]
    listed.write(1, note="keep me")
    listed.record_best(last, cache, "swap")
    rows = listed.table(None)
    assert [(row.search, row.plan) for row in rows] == [("swap", other), ("joint", one), ("swap", last)]
    assert rows[1].method == f"joint ({one.method})"


def test_two_searches_of_a_file_that_came_to_the_same_plan_keep_their_words(graph: Graph) -> None:
    cache = PlanCache(assess_feasibility(graph, machine("v100-16gb")))
    (plan,) = plans_of(graph, cache, (60,))
    listed, saved = plan_list.PlanList(), [(SavedPlan(plan, note=note), cache) for note in ("by swap", "by joint")]
    assert [row.note for row in listed.add(saved)] == ["by swap", "by joint"]
    assert listed.add(saved) == []
