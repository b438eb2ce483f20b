"""One worker of a partition in place of the whole step: its graph, its plan, and the way back."""

from collections.abc import Iterator
from typing import Any

import pytest

from planner import zoo
from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph, Kind, fingerprint, load, save
from planner.partition import worker_graph
from tests.widgets.session.hearing import Ear
from widgets.messages import at_rest
from widgets.session import Session


@pytest.fixture(scope="module")
def graph() -> Graph:
    return capture(zoo.load("mlp:layers=2,hidden=32,optimizer=adam"))


def split(graph: Graph, **wanted: Any) -> Session:
    """A session whose step is split over two workers."""
    session = Session(graph, machine="v100-16gb", budget="60%")
    ear = Ear(session)
    ear.planned()
    session.start_partition(2, **wanted)
    ear.wait("partition", lambda partition: partition["state"] == "done")
    return session


@pytest.fixture(scope="module")
def session(graph: Graph) -> Iterator[Session]:
    session = split(graph)
    yield session
    session.close()


@pytest.fixture
def ear(session: Session) -> Iterator[Ear]:
    """What is heard of it from now on; at the end the whole step is shown again."""
    ear = Ear(session)
    yield ear
    session.show_worker(None)
    ear.leave()


def shown(ear: Ear, worker: int, since: int = 0) -> dict[str, Any]:
    return ear.wait("worker", lambda said: said["state"] == "shown" and said["worker"] == worker, since)


def test_a_worker_is_shown_with_its_own_graph_and_a_valid_plan_within_the_budget(ear: Ear, graph: Graph) -> None:
    session = ear.session
    session.request({"do": "show_worker", "worker": 1})
    assert (ear.last("worker")["state"], ear.last("worker")["workers"]) == ("making", 2)
    shown(ear, 1)
    assert session.partition is not None
    own = worker_graph(session.partition, graph, 1, progress=False)
    said, plan = ear.last("worker_graph"), ear.last("worker_plan")
    assert said["storage_names"] == [storage.name for storage in own.storages]
    assert said["facts"][-1] == "worker 1 (of 0 to 1)"
    assert plan["peak_bytes"] <= plan["budget_bytes"] == session.budget
    assert plan["valid"]
    kinds = [each.kind for each in session.messages()]
    assert kinds.index("worker_graph") < kinds.index("worker_plan") < kinds.index("worker")
    assert ear.last("graph")["storage_names"] == [storage.name for storage in graph.storages]


def test_what_lasts_is_linked_with_the_whole_step_and_nothing_else(ear: Ear, graph: Graph) -> None:
    ear.session.show_worker(0)
    shown(ear, 0)
    parts, names = ear.columns("worker")["storages"], ear.last("worker_graph")["storage_names"]
    linked = {graph.storages[whole].name: names[part] for whole, part in enumerate(parts) if part >= 0}
    assert all(name == part for name, part in linked.items())
    parameters = {storage.name for storage in graph.storages if storage.persistent}
    assert parameters <= linked.keys()
    assert "layers.0.weight" in linked


def test_going_back_and_again_costs_nothing(ear: Ear) -> None:
    session = ear.session
    session.show_worker(0)
    shown(ear, 0)
    number = ear.last("worker_plan")["plan"]
    session.show_worker(None)
    assert ear.last("worker")["state"] == "none"
    assert not [each for each in session.messages() if each.kind.startswith("worker_")]
    mark = ear.mark()
    session.show_worker(0)  # answered before it returns
    assert [each["state"] for each in ear.all("worker")[-2:]] == ["none", "shown"]
    assert ear.heard[mark].kind == "worker_graph"
    assert ear.last("worker_plan")["plan"] == number


def test_what_is_asked_of_a_worker_is_done_in_its_plan_alone(ear: Ear) -> None:
    session = ear.session
    session.show_worker(0)
    shown(ear, 0)
    least, before = ear.last("worker_machine")["least_bytes"], session.budget
    mark = ear.mark()
    wanted = int(1.3 * least)
    session.request({"do": "in_worker", "request": {"do": "budget", "bytes": wanted}})
    budget = ear.wait("worker_budget", lambda budget: budget["state"] == "planned", mark)
    assert budget["budget_bytes"] == wanted
    assert ear.last("worker_plan")["peak_bytes"] <= wanted
    assert session.budget == before
    session.request({"do": "in_worker", "request": {"do": "search"}})
    ear.wait("worker_search", lambda search: search["state"] == "running", mark)
    session.request({"do": "in_worker", "request": {"do": "cancel"}})
    assert "search" not in {each.kind for each in ear.heard[mark:]}


def test_another_partition_shows_the_whole_step_again(graph: Graph) -> None:
    ear = Ear(split(graph))
    ear.session.show_worker(1)
    shown(ear, 1)
    ear.session.start_partition(3)
    ear.wait("worker", lambda worker: worker["state"] == "none")
    mark = ear.mark()
    ear.wait("partition", lambda partition: partition["state"] == "done", mark)
    ear.session.show_worker(2)
    assert shown(ear, 2)["workers"] == 3
    ear.session.close()


def test_cancelled_it_shows_the_whole_step_and_can_be_begun_again(graph: Graph) -> None:
    ear = Ear(split(graph))
    ear.session.show_worker(0)
    ear.session.request({"do": "cancel_worker"})
    assert ear.last("worker")["state"] == "cancelled"
    mark = ear.mark()
    ear.session.show_worker(1)
    shown(ear, 1, mark)
    mine = [each.content for each in ear.heard[mark:] if each.kind == "worker" and each.content["state"] == "shown"]
    assert [each["worker"] for each in mine] == [1]


def test_workers_that_do_the_same_share_a_plan() -> None:
    small = capture(zoo.load("mlp:layers=1,hidden=16,optimizer=sgd"))
    names = [storage.name for storage in small.storages if storage.kind is Kind.PARAMETER]
    session = split(small, pins={name: ["replicated"] for name in names})
    ear = Ear(session)
    for worker in (0, 1):
        session.show_worker(worker)
        shown(ear, worker)
    assert session.partition is not None
    own = [worker_graph(session.partition, session.graph, worker, progress=False) for worker in (0, 1)]
    assert fingerprint(own[0]) == fingerprint(own[1])
    numbers = [each["plan"] for each in ear.all("worker_plan")]
    session.close()
    assert numbers == [1, 1]


@pytest.mark.parametrize("wanted", [{"worker": 2}, {"worker": -1}, {"worker": "first"}, {}])
def test_a_worker_that_is_not_there_is_refused(ear: Ear, wanted: dict[str, Any]) -> None:
    ear.session.request({"do": "show_worker", **wanted})
    assert ear.last("notice")["sentence"]
    assert "shown" not in {each["state"] for each in ear.all("worker")}


def test_without_a_partition_or_a_worker_it_says_what_to_do(graph: Graph) -> None:
    session = Session(graph)
    _ = session.graph
    with pytest.raises(StowageError, match="search for one first"):
        session.show_worker(0)
    ear = Ear(session)
    session.request({"do": "in_worker", "request": {"do": "search"}})
    assert "choose one again" in ear.last("notice")["sentence"]
    session.close()


def test_a_graph_without_a_program_says_so(graph: Graph, tmp_path: Any) -> None:
    save(graph, tmp_path / "graph.json")
    session = Session(load(tmp_path / "graph.json"), machine="v100-16gb")
    ear = Ear(session)
    session.start_partition(2)
    ear.wait("partition", lambda partition: partition["state"] == "done")
    session.show_worker(0)
    assert "capture the step again" in ear.wait("worker", lambda worker: worker["state"] == "failed")["sentence"]
    session.close()


def test_saved_or_closed_while_a_worker_is_made_it_is_at_rest(graph: Graph) -> None:
    ear = Ear(split(graph))
    ear.session.show_worker(0)
    sent = [each for each in ear.session.messages() if each.kind == "worker"]
    assert at_rest(sent, "saved")[0].content["state"] == "cancelled"
    ear.session.close()
    assert ear.last("worker")["state"] in {"cancelled", "shown"}


def test_what_is_exported_of_a_worker_is_named_after_it(ear: Ear) -> None:
    ear.session.show_worker(1)
    shown(ear, 1)
    mark = ear.mark()
    ear.session.request({"do": "in_worker", "view": 7, "request": {"do": "export", "format": "plan"}})
    exported = ear.wait("exported", since=mark)
    assert "worker-1-of-0-to-1.plan.json" in exported["filename"]
    assert exported["view"] == 7
