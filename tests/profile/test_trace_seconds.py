"""Op times from traces of torch.profiler, and which traces are of another model."""

import gzip
import json
import statistics
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import planner
from planner import StowageError
from planner.graph import Graph
from planner.machine import PRESETS, op_seconds
from planner.profile import trace_seconds

V100 = PRESETS["v100-16gb"]
HERE = replace(V100, name="here", devices=(replace(V100.device, kind="cpu"),))
STEPS = 3


@cache
def recorded(shapes: bool) -> tuple[Graph, str]:
    """A training step, and the trace of some steps of eager PyTorch."""
    step = planner.zoo.mlp(layers=2, hidden=32, batch=16)
    graph = planner.capture(step, progress=False)
    model = torch.nn.Sequential(*(torch.nn.Linear(32, 32), torch.nn.ReLU()) * 2, torch.nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    batch, wanted = torch.randn(16, 32), torch.zeros(16, dtype=torch.int64)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=shapes) as profiled:
        for _ in range(STEPS):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(batch), wanted).backward()
            optimizer.step()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiled.export_chrome_trace(str(path))
        return graph, path.read_text()


def events(shapes: bool = True) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(recorded(shapes)[1])["traceEvents"]
    return found


def durations(name: str, dims: list[list[int]]) -> list[float]:
    return [
        event["dur"] / 1e6
        for event in events()
        if event.get("cat") == "cpu_op"
        and event["name"] == name
        and [shape for shape in event["args"]["Input Dims"] if shape] == dims
    ]


@pytest.mark.parametrize("packed", [False, True])
def test_ops_get_the_median_of_the_calls_with_their_inputs(tmp_path: Path, packed: bool) -> None:
    graph, text = recorded(True)
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    found = trace_seconds(path, graph, HERE)
    assert found.share > 0.8
    expected = {
        "classifier/addmm": durations("aten::addmm", [[10], [16, 32], [32, 10]]),
        "layers.0/mm": durations("aten::mm", [[32, 16], [16, 32]]),
        "log_softmax": durations("aten::_log_softmax", [[16, 10]]),
    }
    by_name = {op.name: op.id for op in graph.ops}
    for name, times in expected.items():
        assert found.seconds[by_name[name]] == statistics.median(times), name
    roofline = op_seconds(graph, HERE)
    assert found.seconds[~found.measured].tolist() == roofline[~found.measured].tolist()


def test_without_shapes_ops_are_found_by_their_order(tmp_path: Path) -> None:
    graph, text = recorded(False)
    path = tmp_path / "trace.json"
    path.write_text(text)
    found = trace_seconds(path, graph, HERE)
    calls = [event["dur"] / 1e6 for event in events(False) if event.get("name") == "aten::addmm"]
    ours = [op.id for op in graph.ops if op.target == "aten.addmm.default"]
    assert found.seconds[ours].tolist() == [statistics.median(calls[k :: len(ours)]) for k in range(len(ours))]


def test_on_a_gpu_an_op_takes_as_long_as_its_kernels(tmp_path: Path) -> None:
    """Also those that ops within it launch, however long the launch takes on the CPU."""
    graph = recorded(True)[0]

    def call(name: str, number: int, start: float, length: float, *dims: list[int]) -> dict[str, Any]:
        arguments = {"External id": number, "Input Dims": dims, "Input type": ["float"] * len(dims)}
        return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": length,
                "args": arguments}  # fmt: skip

    def kernel(number: int, length: float) -> dict[str, Any]:
        return {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 900, "dur": length,
                "args": {"External id": number}}  # fmt: skip

    trace, times = list[dict[str, Any]](), list[float]()
    for op in graph.ops:
        namespace, name, _ = op.target.split(".")
        start, length = 100.0 * op.id, float(op.id + 1)
        shapes = [list(graph.tensors[tensor].shape) for tensor in op.inputs]
        types = [{"int64": "long int"}.get(graph.tensors[tensor].dtype, "float") for tensor in op.inputs]
        outer = call(f"{namespace}::{name}", 2 * op.id, start, 50, *shapes)
        outer["args"]["Input type"] = types
        trace += [outer, call("aten::inner", 2 * op.id + 1, start + 1, 40)]
        trace += [kernel(2 * op.id, length), kernel(2 * op.id + 1, 1000)]
        times.append((length + 1000) / 1e6)
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace))
    found = trace_seconds(path, graph, V100)
    assert found.share == 1
    alike: dict[Any, list[int]] = {}
    for op in graph.ops:
        inputs = tuple((graph.tensors[tensor].shape, graph.tensors[tensor].dtype) for tensor in op.inputs)
        alike.setdefault((op.target.split(".")[1], inputs), []).append(op.id)
    for ids in alike.values():
        assert np.allclose(found.seconds[ids], statistics.median(times[op] for op in ids))


def test_a_trace_of_another_model_is_refused_with_its_share(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(recorded(True)[1])
    other = planner.capture(planner.zoo.mlp(layers=2, hidden=48, batch=16), progress=False)
    with pytest.raises(StowageError, match=r"has \d+ % of the ops of mlp:.* by name, shapes and types; trace the same"):
        trace_seconds(path, other, HERE)


def test_a_trace_of_another_type_of_device_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(recorded(True)[1])
    with pytest.raises(StowageError, match="has times of a cpu device, and v100-16gb is another; trace with Profiler"):
        trace_seconds(path, recorded(True)[0], V100)
    kernel = {"ph": "X", "cat": "kernel", "ts": 1, "dur": 1, "args": {"External id": 1}}
    path.write_text(json.dumps([*events(), kernel]))
    with pytest.raises(StowageError, match="has times of a cuda device, and here is another; choose the GPU that it"):
        trace_seconds(path, recorded(True)[0], HERE)
