"""A partition as one watches it: the search, pins, earlier partitions, and the blocks of a tensor."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from planner import zoo
from planner.capture import capture
from planner.errors import StowageError
from planner.graph import Graph
from planner.partition import search_partition, validate_partition
from tests.widgets.session.message_recorder import MessageRecorder
from widgets.info import get_tensor_blocks, get_worker_peaks
from widgets.session import Session


@pytest.fixture(scope="module")
def graph() -> Graph:
    return capture(zoo.load("gpt:layers=2,hidden=64,sequence=32"))


@pytest.fixture
def session(graph: Graph) -> Iterator[Session]:
    session = Session(graph)
    yield session
    session.close()


def ended(recorder: MessageRecorder, since: int = 0) -> dict[str, Any]:
    """The partition message once the search has ended."""
    return recorder.wait("partition", lambda partition: partition["state"] != "running", since)


def row_of(shown: dict[str, Any], name: str) -> int:
    return next(number for number, row in enumerate(shown["rows"]) if row["name"] == name)


def test_the_partition_shown_is_the_one_that_the_search_finds(session: Session, graph: Graph) -> None:
    _ = session.graph
    recorder = MessageRecorder(session)
    assert session.partition is None
    session.request({"do": "partition", "workers": 4})
    assert recorder.last("partition")["state"] == "running"
    partition = ended(recorder)
    found = search_partition(graph, 4, time_limit=None).wait(progress=False)
    assert session.partition is not None
    assert validate_partition(session.partition, graph) == []
    assert (partition["state"], partition["workers"]) == ("done", 4)
    shown = partition["shown"]
    assert shown["bytes"] == sum(shown["bytes_per_level"]) == found.bytes_moved == session.partition.bytes_moved
    peaks = get_worker_peaks(graph, session.partition)
    assert [bytes for _, bytes, _ in shown["peaks"]] == [row.peak_bytes for row in peaks.rows]
    assert shown["single_bytes"] == peaks.single_bytes
    assert {"tokens.weight", "blocks.*.expand.weight", "head.weight"} <= {row["name"] for row in shown["rows"]}


def test_a_pin_is_met_its_cost_is_said_and_what_was_before_can_be_shown_again(session: Session) -> None:
    recorder = MessageRecorder(session)
    session.start_partition(4)
    free = ended(recorder)["shown"]
    row = row_of(free, "blocks.*.expand.weight")
    assert set(free["rows"][row]["pins"]) == {None}
    mark = recorder.mark()
    session.request({"do": "pin", "row": row, "level": 1, "value": "replicated"})
    pinned = ended(recorder, mark)["shown"]
    again = pinned["rows"][row_of(pinned, "blocks.*.expand.weight")]
    assert again["ways"][1] == "copies"
    assert again["pins"] == [None, "replicated"]
    assert pinned["added_bytes"] == pinned["bytes"] - free["bytes"] >= 0
    assert [each["pins"] for each in recorder.last("partition")["found"]] == [0, 2]  # of both layers
    session.request({"do": "show_partition", "which": free["number"]})
    assert recorder.last("partition")["shown"] == free
    session.request({"do": "show_partition", "which": pinned["number"]})
    assert recorder.last("partition")["shown"]["rows"][row]["pins"] == [None, "replicated"]
    mark = recorder.mark()
    session.request({"do": "release"})
    assert ended(recorder, mark)["shown"]["bytes"] == free["bytes"]


def test_pins_that_cannot_be_met_are_refused_in_a_sentence_and_can_be_released(session: Session) -> None:
    recorder = MessageRecorder(session)
    session.start_partition(2)
    shown = ended(recorder)["shown"]
    mark = recorder.mark()
    session.start_partition(2, pins={"head.weight": [7]})
    refused = ended(recorder, mark)
    assert refused["state"] == "failed"
    assert "head.weight" in refused["sentence"]
    assert refused["shown"]["bytes"] == shown["bytes"]
    mark = recorder.mark()
    session.request({"do": "release"})
    assert ended(recorder, mark)["state"] == "done"


def test_another_number_of_workers_is_another_partition_and_pins_are_not_kept(session: Session) -> None:
    recorder = MessageRecorder(session)
    session.start_partition(2, pins={"head.weight": ["replicated"]})
    assert ended(recorder)["shown"]["pins"] == 1
    mark = recorder.mark()
    session.start_partition(3)
    partition = ended(recorder, mark)
    assert partition["shown"]["mesh"] == [3]
    assert partition["shown"]["pins"] == 0
    assert [each["mesh"] for each in partition["found"]] == [[2], [3]]
    session.request({"do": "show_partition", "which": 1})
    mark = recorder.mark()
    session.request({"do": "partition", "workers": 2})
    assert ended(recorder, mark)["shown"]["pins"] == 1


def test_the_blocks_are_those_of_the_tensor_asked_for_in_every_partition(session: Session, graph: Graph) -> None:
    recorder = MessageRecorder(session)
    session.start_partition(4)
    ended(recorder)
    assert recorder.last("blocks")["number"] == 1
    tensor = next(tensor for tensor in graph.tensors if tensor.name == "tokens.weight")
    session.request({"do": "blocks", "storage": tensor.storage})
    assert session.partition is not None
    expected = get_tensor_blocks(graph, session.partition, tensor.name)
    blocks = recorder.last("blocks")
    assert (blocks["name"], blocks["shape"]) == (tensor.name, list(tensor.shape))
    assert [tuple(block[4]) for block in blocks["blocks"]] == [block.workers for block in expected.blocks]
    mark = recorder.mark()
    session.start_partition(2)
    ended(recorder, mark)
    assert (recorder.last("blocks")["name"], recorder.last("blocks")["workers"]) == (tensor.name, 2)


def test_within_a_memory_limit_it_moves_fewer_bytes_and_no_worker_takes_more(session: Session) -> None:
    recorder = MessageRecorder(session)
    session.start_partition(2, memory="none")
    least = ended(recorder)
    assert least["limit_bytes"] is None
    mark = recorder.mark()
    session.request({"do": "partition", "workers": 2, "memory": "budget"})
    within = ended(recorder, mark)
    assert within["limit_bytes"] == session.budget
    assert within["shown"]["bytes"] <= least["shown"]["bytes"]
    assert max(bytes for _, bytes, _ in within["shown"]["peaks"]) <= session.budget
    assert [each["limit_bytes"] for each in within["found"]] == [None, session.budget]
    mark = recorder.mark()
    session.request({"do": "show_partition", "which": 1})  # what it was within is chosen again
    assert recorder.wait("partition", since=mark)["limit_bytes"] is None


def test_too_little_memory_is_refused_with_the_least_that_would_do(session: Session) -> None:
    recorder = MessageRecorder(session)
    session.start_partition(2, memory=1000)
    refused = ended(recorder)
    assert (refused["state"], refused["shown"]) == ("failed", None)
    assert f"allow at least {refused['least_bytes']} bytes" in refused["sentence"]
    mark = recorder.mark()
    session.request({"do": "partition", "workers": 2, "memory": refused["least_bytes"]})
    met = ended(recorder, mark)
    assert met["state"] == "done"
    assert max(bytes for _, bytes, _ in met["shown"]["peaks"]) <= refused["least_bytes"]
    session.request({"do": "partition", "workers": 2, "memory": "plenty"})
    assert "plenty" in recorder.last("notice")["sentence"]


def test_cancelled_it_goes_on_where_it_stopped(session: Session, graph: Graph) -> None:
    recorder = MessageRecorder(session)
    session.start_partition(4)
    recorder.wait("partition", lambda partition: partition["shown"] is not None)
    session.request({"do": "cancel_partition"})
    for thread in threading.enumerate():
        if thread.name == "stowage partition":
            thread.join()
    mark = recorder.mark()
    session.request({"do": "resume_partition"})
    assert ended(recorder, mark)["state"] == "done"
    assert session.partition is not None
    found = search_partition(graph, 4, time_limit=None).wait(progress=False)
    assert session.partition.bytes_moved == found.bytes_moved


def test_cancelled_it_keeps_what_it_found(session: Session) -> None:
    recorder = MessageRecorder(session)
    session.start_partition(8)
    recorder.wait("partition", lambda partition: partition["shown"] is not None)
    session.request({"do": "cancel_partition"})
    assert recorder.last("partition")["state"] in {"cancelled", "done"}
    assert session.partition is not None


def test_cancelled_before_it_found_anything_it_can_be_begun_again(session: Session) -> None:
    _ = session.graph
    recorder = MessageRecorder(session)
    session.start_partition(4)
    session.request({"do": "cancel_partition"})
    for thread in threading.enumerate():
        if thread.name == "stowage partition":
            thread.join()
    assert recorder.last("partition")["state"] == "cancelled"
    mark = recorder.mark()
    session.request({"do": "partition", "workers": 4})
    assert ended(recorder, mark)["state"] == "done"
    assert {partition["state"] for partition in recorder.all("partition")} == {"running", "cancelled", "done"}


@pytest.mark.parametrize(
    "wanted",
    [
        {"do": "partition", "workers": 1}, {"do": "partition"}, {"do": "partition", "workers": "many"},
        {"do": "pin", "row": 0, "level": 0, "value": 1}, {"do": "show_partition", "which": 4},
        {"do": "blocks", "storage": 10**6}, {"do": "pin", "row": 0, "level": 0, "value": [1]},
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_answered_by_a_notice(session: Session, wanted: dict[str, Any]) -> None:
    _ = session.graph
    recorder = MessageRecorder(session)
    session.request(wanted)
    assert recorder.last("notice")["sentence"]
    assert session.partition is None


def test_closed_it_says_so_and_begins_nothing_more(graph: Graph) -> None:
    session = Session(graph)
    _ = session.graph
    recorder = MessageRecorder(session)
    session.start_partition(8)
    session.close()
    assert recorder.last("partition")["state"] in {"cancelled", "done"}
    with pytest.raises(StowageError, match="was closed"):
        session.start_partition(2)
