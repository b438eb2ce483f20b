"""One op, no op, nothing in a tensor, and names that nobody foresaw."""

import json

import torch
from torch import nn

from planner.graph import Graph, GraphBuilder, Kind
from planner.step import InferenceStep, TrainStep
from tests.widgets.session.message_recorder import MessageRecorder
from widgets.session import Session


def drawn(session: Session) -> MessageRecorder:
    recorder = MessageRecorder(session)
    assert session.plan is not None
    recorder.planned()
    for message in session.messages():
        json.dumps(message.content, allow_nan=False)
    return recorder


def test_one_op() -> None:
    step = InferenceStep(nn.Linear(3, 2), torch.ones(4, 3))
    recorder = drawn(Session(step))
    assert len(recorder.columns("plan")["order"]) == 1
    assert recorder.last("budget")["verdict"] == "fits"
    recorder.session.start_run(1)
    assert recorder.wait("run", lambda run: run["state"] in {"done", "failed"})["state"] == "done"


def test_no_op_at_all() -> None:
    recorder = drawn(Session(Graph("nothing", (), (), ())))
    assert recorder.last("machine")["least_op"] == -1
    assert (recorder.last("plan")["step_seconds"], recorder.last("budget")["verdict"]) == (0, "fits")


def test_tensors_without_bytes() -> None:
    class Empty(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.none = nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x * self.weight).sum() + self.none.sum()

    step = TrainStep(Empty(), torch.ones(3, 4), loss=lambda model, x: model(x))
    recorder = drawn(Session(step, budget="80%"))
    sizes = recorder.columns("graph")["storage_bytes"]
    assert (sizes == 0).any()
    assert (sizes[recorder.columns("plan")["residency_storage"]] > 0).all()


def test_names_in_other_scripts_and_with_markup_arrive_as_they_are() -> None:
    name, odd = "модель <b>&amp; \N{ROCKET}", "<img src=x onerror=alert(1)>"
    build = GraphBuilder(name)
    build.modules |= {"": "Net", odd: "</script>"}
    weight = build.add_tensor(f"{odd}.вес", build.add_storage(f"{odd}.вес", 64, Kind.PARAMETER), (16,))
    result = build.add_tensor("r", build.add_storage("r", 64, Kind.OUTPUT), (16,))
    build.add_op(f"{odd}/relu", "aten.relu.default", [weight], [result], module=odd)
    recorder = drawn(Session(build.build([result])))
    graph = recorder.last("graph")
    assert graph["name"] == name
    assert graph["module_paths"] == ["", odd]
    assert graph["module_kinds"] == ["Net", "</script>"]
    assert f"{odd}.вес" in graph["storage_names"]
    mark = recorder.mark()
    recorder.session.request({"do": "export", "format": "plan"})
    assert recorder.wait("exported", since=mark)["filename"].isascii()
