"""Files that a session gives away are read back as what they say."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from planner import zoo
from planner.memory import read_buffers
from planner.plan import plan_from_json
from planner.step import TrainStep
from tests.widgets.session.message_recorder import MessageRecorder
from widgets.session import Session


def export(session: Session, wanted: str) -> tuple[str, bytes]:
    recorder = MessageRecorder(session)
    mark = recorder.mark()
    session.request({"do": "export", "format": wanted})
    said = recorder.wait("exported", since=mark)
    data = next(message for message in recorder.messages[mark:] if message.kind == "exported").buffers[0]
    assert said["columns"] == [["bytes", "u1", len(data)]]
    recorder.wait("notice", lambda notice: said["filename"] in notice["sentence"], mark)
    return said["filename"], data


@pytest.fixture(scope="module")
def session() -> Session:
    session = Session(zoo.load("mlp:layers=4,optimizer=adam"), budget="50%")
    assert session.plan is not None
    assert session.plan.swap_ins
    return session


def test_the_plan_is_the_plan(session: Session) -> None:
    name, data = export(session, "plan")
    assert name == "mlp-optimizer-adam.plan.json"
    read, plan = plan_from_json(data.decode()), session.plan
    assert plan is not None
    assert (read.order, read.residencies, read.swap_ins) == (plan.order, plan.residencies, plan.swap_ins)


def test_only_the_view_that_asked_saves_the_file(session: Session) -> None:
    recorder = MessageRecorder(session)
    session.request({"do": "export", "format": "plan", "view": 0.25})
    assert recorder.wait("exported")["view"] == 0.25


def test_the_buffers_are_a_packing_problem_with_a_solution_that_holds(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "buffers.csv"
    path.write_bytes(export(session, "csv")[1])
    found, plan = read_buffers(path), session.plan
    assert plan is not None
    assert found.offsets is not None
    assert int((found.offsets + found.sizes).max()) == plan.peak_bytes
    for slot in range(len(plan.order)):
        there = (found.lower <= slot) & (slot < found.upper)
        places = np.argsort(found.offsets[there])
        start, stop = found.offsets[there][places], (found.offsets + found.sizes)[there][places]
        assert (start[1:] >= stop[:-1]).all()


def test_the_trace_has_every_op_and_copy_when_the_plan_has_it(session: Session) -> None:
    events = json.loads(export(session, "trace")[1])["traceEvents"]
    plan = session.plan
    assert plan is not None
    spans = [[event for event in events if event["ph"] == "X" and event["tid"] == lane] for lane in range(3)]
    assert [len(lane) for lane in spans] == [len(plan.order), len(plan.swap_outs), len(plan.swap_ins)]
    for lane, expected in zip(
        spans, (plan.predicted.compute, plan.predicted.swap_out, plan.predicted.swap_in), strict=True
    ):
        measured = [[event["ts"], event["ts"] + event["dur"]] for event in lane]
        assert np.allclose(np.array(measured).reshape(-1, 2), 1e6 * expected, atol=1e-3)
    assert [event["name"] for event in spans[0]] == [session.graph.ops[op].name for op in plan.order]


def test_what_is_not_there_yet_says_what_to_do(session: Session) -> None:
    recorder = MessageRecorder(session)
    session.request({"do": "export", "format": "run_trace"})
    recorder.wait("notice", lambda notice: "run a step first" in notice["sentence"])
    session.request({"do": "export", "format": "pdf"})
    assert "there is no export to pdf" in recorder.last("notice")["sentence"]


def test_all_files_that_are_asked_for_at_once_arrive(session: Session) -> None:
    recorder = MessageRecorder(session)
    for wanted in ("html", "trace", "plan", "csv"):
        session.request({"do": "export", "format": wanted, "view": 0.5})
    for ending in (".html", ".trace.json", ".plan.json", ".buffers.csv"):
        assert recorder.wait("exported", lambda said, ending=ending: said["filename"].endswith(ending))["view"] == 0.5


def test_a_name_that_no_file_can_hold_is_told_in_one_line() -> None:
    model = nn.Module()
    model.add_module("layer\ud800", nn.Linear(4, 4))
    step = TrainStep(model, torch.ones(2, 4), loss=lambda model, x: next(model.children())(x).sum())
    session = Session(step, machine="laptop")
    recorder = MessageRecorder(session)
    assert session.plan is not None
    session.request({"do": "export", "format": "html"})
    assert "half a character" in recorder.wait("notice")["sentence"]
