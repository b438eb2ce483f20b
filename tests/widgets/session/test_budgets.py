"""Does it fit, what does it cost, why: moving the budget and the machine."""

import sys
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest

from planner import zoo
from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph
from planner.machine import usable_bytes
from planner.plan import validate
from planner.profile import machine
from tests.widgets.session.message_recorder import MessageRecorder
from widgets.session import Session


@pytest.fixture(scope="module")
def graph() -> Graph:
    return capture(zoo.load("mlp:layers=6,optimizer=adam"))


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Threads take turns every microsecond, so that steps that belong together are interrupted often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at(session: Session, recorder: MessageRecorder, size: int) -> dict:
    mark = recorder.mark()
    session.request({"do": "budget", "bytes": size})
    return recorder.planned(mark)


def test_where_the_step_fits_nothing_is_moved(graph: Graph) -> None:
    session = Session(graph, budget="100%")
    recorder = MessageRecorder(session)
    budget = recorder.planned()
    assert (budget["verdict"], budget["state"]) == ("fits", "planned")
    plan = recorder.last("plan")
    assert (plan["moved"], plan["stall_seconds"], plan["placeholder"]) == (0, 0, False)
    assert plan["step_seconds"] == pytest.approx(plan["ideal_seconds"])
    assert recorder.last("search")["state"] == "nothing"
    assert "fits the budget" in recorder.last("search")["sentence"]


def test_where_it_does_not_fit_a_valid_plan_is_drawn_without_a_search(graph: Graph) -> None:
    session = Session(graph, budget="50%")
    recorder = MessageRecorder(session)
    budget = recorder.planned()
    assert (budget["verdict"], budget["state"]) == ("swap", "planned")
    plan = session.plan
    assert plan is not None
    assert validate(plan, graph) == []
    assert plan.peak_bytes <= session.budget
    search = recorder.last("search")
    assert search["state"] == "idle"
    seconds = dict(search["baselines"])
    assert plan.predicted.seconds == min(value for value in seconds.values() if value is not None)
    assert search["bound_seconds"] <= plan.predicted.seconds


def test_an_impossible_budget_names_the_op_and_the_least_that_is_enough(graph: Graph) -> None:
    session = Session(graph, budget="50%")
    recorder = MessageRecorder(session)
    recorder.planned()
    machine = recorder.last("machine")
    budget = at(session, recorder, machine["least_bytes"] - 1)
    assert (budget["verdict"], budget["state"]) == ("impossible", "impossible")
    assert graph.ops[machine["least_op"]].name in budget["sentence"]
    assert f"at least {machine['least_bytes']} bytes" in budget["sentence"]
    assert session.plan is None
    plan = recorder.last("plan")
    assert (plan["placeholder"], plan["moved"], plan["peak_bytes"]) == (True, 0, machine["step_peak_bytes"])
    assert at(session, recorder, machine["least_bytes"])["state"] == "planned"
    assert session.plan is not None


def test_nobody_is_given_the_plan_of_the_budget_before(graph: Graph, frequent_switches: None) -> None:
    session = Session(graph, budget="50%")
    recorder = MessageRecorder(session)
    recorder.planned()
    half, too_little = session.budget, recorder.last("machine")["least_bytes"] - 1
    for _ in range(60):
        at(session, recorder, too_little)
        assert session.plan is None
        assert recorder.last("plan")["placeholder"]
        at(session, recorder, half)


def test_the_verdict_comes_before_the_request_returns(graph: Graph) -> None:
    session = Session(graph, budget="50%")
    recorder = MessageRecorder(session)
    recorder.planned()
    mark = recorder.mark()
    session.request({"do": "budget", "bytes": 1})
    assert [message.content["verdict"] for message in recorder.messages[mark:] if message.kind == "budget"][:1] == [
        "impossible"
    ]


def test_the_least_budget_that_is_named_will_do_where_it_is_typed_back(graph: Graph) -> None:
    session = Session(graph, budget=1)
    recorder = MessageRecorder(session)
    recorder.planned()
    least = recorder.last("machine")["least"]
    assert f"Raise the budget to {least} or more." in recorder.last("search")["sentence"]
    session.budget = least
    assert session.plan is not None
    assert session.budget >= recorder.last("machine")["least_bytes"]
    assert recorder.last("budget")["verdict"] == "swap"


def test_however_fast_the_budget_moves_the_last_one_stays(graph: Graph) -> None:
    session = Session(graph, budget="50%")
    recorder = MessageRecorder(session)
    peak = recorder.wait("machine")["step_peak_bytes"]
    for share in (0.4, 0.9, 0.3, 2.0, 0.0001, 0.6, 0.45, 0.7):
        session.request({"do": "budget", "bytes": round(share * peak)})
    plan = session.plan
    assert plan is not None
    assert plan.budget_bytes == round(0.7 * peak) == session.budget
    time.sleep(0.5)  # nothing of an earlier budget comes late
    assert recorder.last("plan")["budget_bytes"] == round(0.7 * peak)
    assert (recorder.last("budget")["budget_bytes"], recorder.last("budget")["state"]) == (round(0.7 * peak), "planned")
    numbers = [message["plan"] for message in recorder.all("plan")]
    assert numbers == sorted(set(numbers))


def test_another_machine_has_other_times_and_the_same_budget(graph: Graph) -> None:
    session = Session(graph, budget="50%")
    recorder = MessageRecorder(session)
    recorder.planned()
    before, size, mark = recorder.last("machine"), session.budget, recorder.mark()
    session.request({"do": "machine", "name": "k80x8"})
    recorder.wait("machine", since=mark)
    recorder.planned(mark)
    after = recorder.last("machine")
    assert after["name"] == "k80x8"
    assert after["ideal_seconds"] > before["ideal_seconds"]
    assert session.budget == size == recorder.last("plan")["budget_bytes"]
    assert "k80x8" in {name for name, _, _ in after["machines"]}


def test_until_another_machine_is_looked_at_its_name_is_said(graph: Graph) -> None:
    session = Session(graph, machine="v100-16gb", budget="50%")
    recorder = MessageRecorder(session)
    recorder.planned()
    mark = recorder.mark()
    session.request({"do": "machine", "name": "h100"})
    assert recorder.planned(mark)["machine"] == ""
    first = next(message.content for message in recorder.messages[mark:] if message.kind == "budget")
    assert (first["machine"], first["doing"]) == ("H100 SXM5 80 GB", "looking at H100 SXM5 80 GB")


def test_the_budget_follows_the_device_until_somebody_sets_one() -> None:
    session = Session(zoo.load("wresnet:depth=50,batch=96,image=224"), machine="laptop")
    recorder = MessageRecorder(session)
    recorder.planned()
    peak = recorder.last("machine")["step_peak_bytes"]
    for name in ("v100-16gb", "h100", "laptop"):
        session.machine = name
        assert session.plan is not None
        assert session.budget == min(peak, usable_bytes(machine(name)))
    session.budget = "50%"
    session.machine = "h100"
    assert session.plan is not None
    assert session.budget == pytest.approx(peak / 2, abs=1)


def test_a_plan_that_was_searched_for_is_there_again_after_other_machines_and_budgets(graph: Graph) -> None:
    session = Session(graph, machine="v100-16gb", budget="50%")
    size, recorder, first = session.budget, MessageRecorder(session), session.plan
    assert first is not None
    session.start_search(None)
    recorder.wait("plan", lambda plan: plan["step_seconds"] < first.predicted.seconds)
    session.request({"do": "cancel"})
    found = session.plan
    assert found is not None
    for change in (
        lambda: setattr(session, "machine", "laptop"),
        lambda: setattr(session, "machine", "v100-16gb"),
        lambda: setattr(session, "budget", "80%"),
        lambda: setattr(session, "budget", size),
    ):
        change()
        assert session.plan is not None
    assert (session.machine.name, session.budget) == ("v100-16gb", size)
    assert session.plan.predicted.seconds <= found.predicted.seconds


def test_what_a_search_has_found_stays_where_another_budget_is_taken_meanwhile(graph: Graph) -> None:
    session = Session(graph, machine="v100-16gb", budget="40%")
    size = session.budget
    session.start_search(None)
    search = session.search
    assert search is not None
    while search.best is None or (search.progress.state == "running" and search.progress.evaluations < 300):
        time.sleep(0.01)
    best = search.best
    session.budget = "60%"
    assert session.plan is not None
    session.budget = size
    assert session.plan is not None
    assert session.plan.predicted.seconds <= best.predicted.seconds


def test_a_search_is_there_to_be_resumed_where_one_comes_back_to_its_budget(graph: Graph) -> None:
    session = Session(graph, machine="v100-16gb", budget="40%")
    size, recorder = session.budget, MessageRecorder(session)
    session.start_search(None, "swap")
    search = session.search
    assert search is not None
    recorder.wait("search", lambda said: said["evaluations"] > 300)
    session.budget = "60%"
    assert session.plan is not None
    assert session.search is None
    session.machine = "laptop"
    assert session.plan is not None
    session.machine = "v100-16gb"
    assert session.plan is not None
    mark = recorder.mark()
    session.budget = size
    said = recorder.wait("search", lambda said: said["state"] == "cancelled", mark)
    assert said["evaluations"] > 300
    assert session.search is search
    before = search.progress.evaluations
    session.request({"do": "resume"})
    recorder.wait("search", lambda said: said["evaluations"] > before, mark)
    assert session.search is search
    session.request({"do": "cancel"})


def test_a_faster_plan_for_less_memory_is_drawn_once_it_is_known(graph: Graph) -> None:
    session = Session(graph, machine="v100-16gb", budget="50%")
    recorder = MessageRecorder(session)
    recorder.planned()
    session.request({"do": "ready"})
    recorder.wait("front", lambda front: front["share"] is None and len(front["points"]) > 8)
    fitting = [seconds for size, seconds, *_ in recorder.last("front")["points"] if size <= session.budget]
    drawn = recorder.wait("plan", lambda plan: plan["step_seconds"] <= min(fitting) * 1.0002)
    assert drawn["budget_bytes"] == session.budget


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.01, 0.03, 0.1])
def test_the_machine_asked_for_last_is_planned_for_however_early_that_was(graph: Graph, delay: float) -> None:
    session = Session(graph, machine="v100-16gb", budget="50%")
    time.sleep(delay)
    session.machine = "laptop"
    plan = session.plan
    assert plan is not None
    assert (session.machine.name, plan.machine) == ("laptop", "laptop")


def test_the_machine_and_the_budget_that_follows_it_are_those_that_were_set_as_soon_as_they_are_read() -> None:
    session = Session(zoo.load("wresnet:depth=50,batch=96,image=224"), machine="laptop")
    assert session.budget == usable_bytes(machine("laptop"))
    session.machine = "h100"
    assert session.machine.name == "h100"
    session.machine = machine("laptop")
    assert session.machine == machine("laptop")
    session.machine = "h100"
    assert session.budget > usable_bytes(machine("laptop"))


def test_a_gpu_that_has_no_memory_for_a_plan_is_told_and_a_budget_overrides_that(graph: Graph) -> None:
    session, tiny = Session(graph, machine="laptop"), machine("laptop", memory="256MiB")
    recorder = MessageRecorder(session)
    recorder.planned()
    session.machine = tiny
    assert session.machine.name == "laptop"
    assert "has 256 MiB of memory, of which 544 MiB are reserved" in recorder.last("notice")["sentence"]
    with pytest.raises(StowageError, match="of which 544 MiB are reserved"):
        _ = Session(graph, machine=tiny).plan
    given = Session(graph, machine=tiny, budget="60%")
    assert given.plan is not None
    assert given.machine == tiny


def test_a_machine_that_is_none_is_told_in_one_line_and_nothing_changes(graph: Graph) -> None:
    session = Session(graph, budget="50%")
    recorder = MessageRecorder(session)
    recorder.planned()
    session.request({"do": "machine", "name": "v10"})
    assert "unknown machine 'v10'" in recorder.last("notice")["sentence"]
    assert session.plan is not None


def test_other_budgets_are_looked_at_once_somebody_looks_on(graph: Graph) -> None:
    session = Session(graph, budget="50%")
    recorder = MessageRecorder(session)
    recorder.planned()
    time.sleep(0.3)
    assert len(recorder.last("samples")["points"]) <= 2
    session.request({"do": "ready"})
    recorder.wait("front", lambda front: front["share"] is None and len(front["points"]) > 8)
    sizes, seconds = zip(*recorder.last("samples")["points"], strict=True)
    assert list(sizes) == sorted(set(sizes))
    assert list(seconds) == sorted(seconds, reverse=True)
    machine = recorder.last("machine")
    assert (sizes[0], sizes[-1]) == (machine["least_bytes"], machine["step_peak_bytes"])
    assert seconds[-1] == pytest.approx(machine["ideal_seconds"])
    front = [(size, step) for size, step, *_, on in recorder.last("front")["points"] if on]
    assert all(step < earlier for (_, earlier), (_, step) in pairwise(front))


def test_a_point_of_the_front_becomes_the_plan_or_what_it_is_compared_with(graph: Graph) -> None:
    session = Session(graph, budget="50%")
    recorder = MessageRecorder(session)
    session.request({"do": "ready"})
    recorder.wait("front", lambda front: front["share"] is None and len(front["points"]) > 8)
    size, seconds, *_ = recorder.last("front")["points"][3]
    session.request({"do": "compare", "bytes": size})
    compared = recorder.last("compare")["plan"]
    assert (compared["budget_bytes"], compared["step_seconds"]) <= (size, seconds)
    mark = recorder.mark()
    session.request({"do": "take", "bytes": size})
    recorder.planned(mark)
    said = [message.content for message in recorder.messages[mark:] if message.kind == "budget"]
    assert [(one["state"], one["doing"]) for one in said[:2]] == [("planning", "drawing the plan"), ("planned", "")]
    plan = session.plan
    assert plan is not None
    assert (plan.budget_bytes, plan.predicted.seconds) <= (size, seconds)
    session.request({"do": "compare", "bytes": None})
    assert recorder.last("compare")["plan"] is None
    session.request({"do": "compare", "bytes": size + 1})
    assert "choose a point of the front" in recorder.last("notice")["sentence"]
