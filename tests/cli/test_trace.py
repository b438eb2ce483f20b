"""`--trace`: what a plan foresees and what a run did, for programs that show traces."""

import json
from pathlib import Path


def told(path: Path):
    return json.loads(path.read_text())


def test_a_plan_and_a_run_leave_traces(planner, tmp_path: Path) -> None:
    foreseen, measured = tmp_path / "plan.trace.json", tmp_path / "run.trace.json"
    words = ["mlp:layers=3,hidden=64,batch=16", "--budget", "60%"]
    facts = planner("swap", *words, "--machine", "laptop", "--seconds", 1, "--trace", foreseen, "--json").json
    assert told(foreseen)["otherData"]["measured"] is False
    steps = [event for event in told(foreseen)["traceEvents"] if event["name"] == "step 0"]
    assert abs(steps[0]["dur"] / 1e6 - facts["step_seconds"]) < 1e-8
    facts = planner("run", *words, "--steps", 2, "--trace", measured, "--json").json
    steps = [event for event in told(measured)["traceEvents"] if event["name"].startswith("step ")]
    assert [round(event["dur"] * 1e3) for event in steps] == [round(1e9 * each) for each in facts["step_seconds"]]


def test_a_trace_that_cannot_be_written_is_a_sentence(planner, tmp_path: Path) -> None:
    words = ["mlp:layers=1,hidden=8", "--budget", "100%", "--machine", "laptop"]
    answer = planner("swap", *words, "--trace", tmp_path / "gone" / "trace.json")
    assert answer.status != 0
    assert "cannot write" in answer.err
