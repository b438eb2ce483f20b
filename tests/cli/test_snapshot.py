"""`planner snapshot`: the peak, who holds it, and why it is not the predicted one."""

import json
import pickle
from pathlib import Path

import pytest
from caching_allocator import MIB, Allocator, frame

import planner as planning
from planner import graph as graphs
from tests.snapshot.test_comparison import step


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A run of the step of three storages, which allocates 5 MiB more than the step."""
    allocator = Allocator()
    for size, line in ((3, 12), (12, 12), (12, 12), (5, 4)):
        allocator.alloc(size * MIB, [frame("/home/me/model.py", line)])
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(allocator.snapshot()))
    graphs.save(step(), tmp_path / "graph.json")
    return path


def test_the_peak_and_its_holders_are_shown(planner, recorded: Path) -> None:
    facts = planner("snapshot", recorded, "--json").json
    assert facts["peak_reserved_bytes"] == facts["allocated_bytes"] + facts["fragmentation_bytes"] == 32 * MIB
    assert facts["holders"] == [
        {"line": "model.py:12", "bytes": 27 * MIB, "allocations": 3},
        {"line": "model.py:4", "bytes": 5 * MIB, "allocations": 1},
    ]
    told = planner("snapshot", recorded, "--lines", 1).out
    assert [line.split() for line in told.splitlines()[-2:]] == [
        ["model.py:12", "27.0", "MiB", "3"],
        ["1", "more", "5.00", "MiB", "1"],
    ]


def test_it_is_compared_with_a_graph(planner, recorded: Path) -> None:
    words = ["snapshot", recorded, "--graph", recorded.parent / "graph.json"]
    compared = planner(*words, "--json").json["comparison"]
    assert sum(compared["rows"].values()) == compared["measured_bytes"] - compared["predicted_bytes"] == 5 * MIB
    assert compared["lines"][0] == {"line": "model.py:4", "measured_bytes": 5 * MIB, "predicted_bytes": 0}
    told = planner(*words).out
    assert "prediction's error      +5.00 MiB" in told
    assert told.splitlines()[-3].split() == ["measured", "peak", "32.0", "MiB"]
    assert told.splitlines()[-1] == "27 MiB (100 %) of what was predicted is found in the snapshot by line and size."
    assert (compared["paired_bytes"], compared["is_of_another_step"]) == (27 * MIB, False)


def test_without_events_it_says_so(planner, recorded: Path, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    data = pickle.loads(recorded.read_bytes())
    said = "no events were recorded, so its peak is what there is at the end; call torch.cuda.memory._record_memory_"
    assert said not in " ".join(planner("snapshot", recorded).out.split())
    recorded.write_bytes(pickle.dumps({**data, "device_traces": []}))
    text = planner("snapshot", recorded).out
    assert said in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--device", "3"], "it has nothing of device 3; choose 0"),
        (["--plan", "plan.json"], "--plan needs the step that it is for: add --graph graph.json"),
        (["--lines", "0"], "0 is not in the range"),
        (["--graph", "none.json"], "none.json"),
    ],
)
def test_mistakes_are_sentences(planner, recorded: Path, more: list[str], said: str) -> None:
    answer = planner("snapshot", recorded, *more)
    assert answer.status == 2
    assert answer.err.startswith("error: ")
    assert said in answer.err


def test_what_is_no_snapshot_is_refused(planner, tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text(json.dumps({}))
    answer = planner("snapshot", tmp_path / "graph.json")
    assert answer.status == 2
    assert "it is no pickle; give a file that torch.cuda.memory._dump_snapshot wrote" in answer.err


def test_a_plan_leaves_a_snapshot_with_the_op_times_of_a_trace(planner, tmp_path: Path) -> None:
    model, trace, written = "mlp:layers=2,hidden=64,batch=32", tmp_path / "trace.json", tmp_path / "plan.pickle"
    events = []
    for op in planning.capture(planning.zoo.load(model), progress=False).ops:
        name = "::".join(op.target.split(".")[:2])
        called = {"ph": "X", "ts": 100 * op.id, "dur": 9, "args": {"External id": op.id}}
        events += [{**called, "cat": "cpu_op", "name": name}, {**called, "cat": "kernel", "dur": 1e6}]
    trace.write_text(json.dumps(events))
    words = ["swap", model, "--budget", "100%", "--seconds", 0, "--op-times", trace, "--snapshot", written, "--json"]
    facts = planner(*words, "--machine", "laptop").json
    assert facts["ideal_seconds"] == pytest.approx(len(events) / 2)  # a second for each op
    assert facts["peak_bytes"] <= planner("snapshot", written, "--json").json["peak_reserved_bytes"]
    refused = planner(*words, "--machine", "cpu")
    assert (refused.status, refused.out) == (2, "")
    assert "the op times of cpu are measured here; drop the trace, or plan for a GPU" in refused.err
