"""One worker of a partition in place of the whole step: its graph, its plan, and the way back."""

from collections.abc import Iterator
from typing import Any

import pytest

from planner import zoo
from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph, Kind, fingerprint, load, save
from planner.partition import worker_graph
from tests.widgets.session.message_recorder import MessageRecorder
from widgets.messages import at_rest
from widgets.session import Session


@pytest.fixture(scope="module")
def graph() -> Graph:
    return capture(zoo.load("mlp:layers=2,hidden=32,optimizer=adam"))


def split(graph: Graph, **wanted: Any) -> Session:
    """A session whose step is split over two workers."""
    session = Session(graph, machine="v100-16gb", budget="60%")
    recorder = MessageRecorder(session)
    recorder.planned()
    session.start_partition(2, **wanted)
    recorder.wait("partition", lambda partition: partition["state"] == "done")
    return session


@pytest.fixture(scope="module")
def session(graph: Graph) -> Iterator[Session]:
    session = split(graph)
    yield session
    session.close()


@pytest.fixture
def recorder(session: Session) -> Iterator[MessageRecorder]:
    """What is heard of it from now on; at the end the whole step is shown again."""
    recorder = MessageRecorder(session)
    yield recorder
    session.show_worker(None)
    recorder.leave()


def shown(recorder: MessageRecorder, worker: int, since: int = 0) -> dict[str, Any]:
    return recorder.wait("worker", lambda said: said["state"] == "shown" and said["worker"] == worker, since)


def test_a_worker_is_shown_with_its_own_graph_and_a_valid_plan_within_the_budget(
    recorder: MessageRecorder, graph: Graph
) -> None:
    session = recorder.session
    session.request({"do": "show_worker", "worker": 1})
    assert (recorder.last("worker")["state"], recorder.last("worker")["workers"]) == ("making", 2)
    shown(recorder, 1)
    assert session.partition is not None
    own = worker_graph(session.partition, graph, 1, progress=False)
    said, plan = recorder.last("worker_graph"), recorder.last("worker_plan")
    assert said["storage_names"] == [storage.name for storage in own.storages]
    assert said["facts"][-1] == "worker 1 (of 0 to 1)"
    assert plan["peak_bytes"] <= plan["budget_bytes"] == session.budget
    assert plan["valid"]
    kinds = [each.kind for each in session.messages()]
    assert kinds.index("worker_graph") < kinds.index("worker_plan") < kinds.index("worker")
    assert recorder.last("graph")["storage_names"] == [storage.name for storage in graph.storages]


def test_what_lasts_is_linked_with_the_whole_step_and_nothing_else(recorder: MessageRecorder, graph: Graph) -> None:
    recorder.session.show_worker(0)
    shown(recorder, 0)
    parts, names = recorder.columns("worker")["storages"], recorder.last("worker_graph")["storage_names"]
    linked = {graph.storages[whole].name: names[part] for whole, part in enumerate(parts) if part >= 0}
    assert all(name == part for name, part in linked.items())
    parameters = {storage.name for storage in graph.storages if storage.persistent}
    assert parameters <= linked.keys()
    assert "layers.0.weight" in linked


def test_going_back_and_again_costs_nothing(recorder: MessageRecorder) -> None:
    session = recorder.session
    session.show_worker(0)
    shown(recorder, 0)
    number = recorder.last("worker_plan")["plan"]
    session.show_worker(None)
    assert recorder.last("worker")["state"] == "none"
    assert not [each for each in session.messages() if each.kind.startswith("worker_")]
    mark = recorder.mark()
    session.show_worker(0)  # answered before it returns
    assert [each["state"] for each in recorder.all("worker")[-2:]] == ["none", "shown"]
    assert recorder.messages[mark].kind == "worker_graph"
    assert recorder.last("worker_plan")["plan"] == number


def test_what_is_asked_of_a_worker_is_done_in_its_plan_alone(recorder: MessageRecorder) -> None:
    session = recorder.session
    session.show_worker(0)
    shown(recorder, 0)
    least, before = recorder.last("worker_machine")["least_bytes"], session.budget
    mark = recorder.mark()
    wanted = int(1.3 * least)
    session.request({"do": "in_worker", "request": {"do": "budget", "bytes": wanted}})
    budget = recorder.wait("worker_budget", lambda budget: budget["state"] == "planned", mark)
    assert budget["budget_bytes"] == wanted
    assert recorder.last("worker_plan")["peak_bytes"] <= wanted
    assert session.budget == before
    session.request({"do": "in_worker", "request": {"do": "search"}})
    recorder.wait("worker_search", lambda search: search["state"] == "running", mark)
    session.request({"do": "in_worker", "request": {"do": "cancel"}})
    assert "search" not in {each.kind for each in recorder.messages[mark:]}


def test_another_partition_shows_the_whole_step_again(graph: Graph) -> None:
    recorder = MessageRecorder(split(graph))
    recorder.session.show_worker(1)
    shown(recorder, 1)
    recorder.session.start_partition(3)
    recorder.wait("worker", lambda worker: worker["state"] == "none")
    mark = recorder.mark()
    recorder.wait("partition", lambda partition: partition["state"] == "done", mark)
    recorder.session.show_worker(2)
    assert shown(recorder, 2)["workers"] == 3
    recorder.session.close()


def test_cancelled_it_shows_the_whole_step_and_can_be_begun_again(graph: Graph) -> None:
    recorder = MessageRecorder(split(graph))
    recorder.session.show_worker(0)
    recorder.session.request({"do": "cancel_worker"})
    assert recorder.last("worker")["state"] == "cancelled"
    mark = recorder.mark()
    recorder.session.show_worker(1)
    shown(recorder, 1, mark)
    mine = [
        each.content for each in recorder.messages[mark:] if each.kind == "worker" and each.content["state"] == "shown"
    ]
    assert [each["worker"] for each in mine] == [1]


def test_workers_that_do_the_same_share_a_plan() -> None:
    small = capture(zoo.load("mlp:layers=1,hidden=16,optimizer=sgd"))
    names = [storage.name for storage in small.storages if storage.kind is Kind.PARAMETER]
    session = split(small, pins={name: ["replicated"] for name in names})
    recorder = MessageRecorder(session)
    for worker in (0, 1):
        session.show_worker(worker)
        shown(recorder, worker)
    assert session.partition is not None
    own = [worker_graph(session.partition, session.graph, worker, progress=False) for worker in (0, 1)]
    assert fingerprint(own[0]) == fingerprint(own[1])
    numbers = [each["plan"] for each in recorder.all("worker_plan")]
    session.close()
    assert numbers == [1, 1]


@pytest.mark.parametrize("wanted", [{"worker": 2}, {"worker": -1}, {"worker": "first"}, {}])
def test_a_worker_that_is_not_there_is_refused(recorder: MessageRecorder, wanted: dict[str, Any]) -> None:
    recorder.session.request({"do": "show_worker", **wanted})
    assert recorder.last("notice")["sentence"]
    assert "shown" not in {each["state"] for each in recorder.all("worker")}


def test_without_a_partition_or_a_worker_it_says_what_to_do(graph: Graph) -> None:
    session = Session(graph)
    _ = session.graph
    with pytest.raises(StowageError, match="search for one first"):
        session.show_worker(0)
    recorder = MessageRecorder(session)
    session.request({"do": "in_worker", "request": {"do": "search"}})
    assert "choose one again" in recorder.last("notice")["sentence"]
    session.close()


def test_a_graph_without_a_program_says_so(graph: Graph, tmp_path: Any) -> None:
    save(graph, tmp_path / "graph.json")
    session = Session(load(tmp_path / "graph.json"), machine="v100-16gb")
    recorder = MessageRecorder(session)
    session.start_partition(2)
    recorder.wait("partition", lambda partition: partition["state"] == "done")
    session.show_worker(0)
    assert "capture the step again" in recorder.wait("worker", lambda worker: worker["state"] == "failed")["sentence"]
    session.close()


def test_saved_or_closed_while_a_worker_is_made_it_is_at_rest(graph: Graph) -> None:
    recorder = MessageRecorder(split(graph))
    recorder.session.show_worker(0)
    sent = [each for each in recorder.session.messages() if each.kind == "worker"]
    assert at_rest(sent, "saved")[0].content["state"] == "cancelled"
    recorder.session.close()
    assert recorder.last("worker")["state"] in {"cancelled", "shown"}


def test_what_is_exported_of_a_worker_is_named_after_it(recorder: MessageRecorder) -> None:
    recorder.session.show_worker(1)
    shown(recorder, 1)
    mark = recorder.mark()
    recorder.session.request({"do": "in_worker", "view": 7, "request": {"do": "export", "format": "plan"}})
    exported = recorder.wait("exported", since=mark)
    assert "worker-1-of-0-to-1.plan.json" in exported["filename"]
    assert exported["view"] == 7
