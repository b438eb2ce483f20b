"""A plan written as a snapshot, opened by PyTorch's own functions and by ours."""

import json
import pickle
import re
from base64 import b64decode
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from torch.cuda import _memory_viz as viewer

import planner
from planner import StowageError, snapshot
from planner.graph import Graph, storage_lines
from planner.plan import PlanIndex, SwapPlan
from tests.snapshot.test_comparison import step


@cache
def planned(machine: str, budget: str) -> tuple[Graph, SwapPlan]:
    graph = planner.capture(planner.zoo.mlp(layers=3, hidden=512, batch=256), progress=False)
    seconds = planner.machine.op_seconds(graph, planner.machine.PRESETS["v100-16gb"])
    return graph, planner.plan_swaps(
        graph, planner.machine.PRESETS[machine], budget, seconds=seconds, method="calendar", progress=False
    )


def written(folder: Path, graph: Graph, plan: SwapPlan) -> dict[str, Any]:
    snapshot.write(folder / "plan.pickle", graph, plan)
    data = pickle.loads((folder / "plan.pickle").read_bytes())
    assert isinstance(data, dict)
    return data


CASES = [("v100-16gb", "100%"), ("v100-16gb", "70%"), ("laptop", "80%")]


@pytest.mark.parametrize(("machine", "budget"), CASES)
def test_pytorchs_functions_open_it(tmp_path: Path, machine: str, budget: str) -> None:
    graph, plan = planned(machine, budget)
    data = written(tmp_path, graph, plan)
    assert "segments: 1\n" in viewer.segsum(data)  # checks that blocks fill the segment
    allocated = re.findall(r"^\w+ = (?:seg_0|MEM)\[", viewer.trace(data), re.MULTILINE)
    assert len(allocated) == sum(event["action"] == "alloc" for event in data["device_traces"][0]) > 0
    for text in (viewer.memory(data, lambda lines: lines), viewer.segments(data, lambda lines: lines)):
        assert "perceptron.py:23:layers.0.weight (parameter) 1048576\n" in text
    for page in (viewer.trace_plot(data), viewer.segment_plot(data), viewer.trace_plot(data, plot_segments=True)):
        (file,) = json.loads(page.partition("local_files = ")[2].partition("\n")[0])
        assert pickle.loads(b64decode(file["base64"])) == data


@pytest.mark.parametrize(("machine", "budget"), CASES)
def test_it_holds_what_the_plan_holds_in_every_slot(tmp_path: Path, machine: str, budget: str) -> None:
    graph, plan = planned(machine, budget)
    written(tmp_path, graph, plan)
    found = snapshot.read(tmp_path / "plan.pickle")
    index = PlanIndex(graph.with_workspaces(dict(plan.workspaces)), plan)
    held = [
        sum(int(size) for size in index.bytes[(index.start <= slot) & (slot < index.stop)])
        for slot in range(index.slots)
    ]
    assert found.usage.requested.max() == max(held)
    assert plan.peak_bytes <= found.peak.reserved_bytes < plan.peak_bytes + 2 * 2**20
    lives, kept = found.allocations, sorted(index.offset[~index.ends & (index.bytes > 0)].tolist())
    assert sorted((lives.address[lives.end == len(found.events)] - found.segments.address[0]).tolist()) == kept
    lines = {line for line in storage_lines(graph) if line}
    assert {one.line for one in found.holders()} - {""} <= lines
    assert found.events.microseconds[-1] <= round(1e6 * plan.predicted.seconds)


def test_a_plan_of_another_graph_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StowageError, match="this plan is not for step; give the graph that it was made for"):
        snapshot.write(tmp_path / "plan.pickle", step(), planned(*CASES[0])[1])
    with pytest.raises(StowageError, match=r"cannot write .*; choose another place"):
        snapshot.write(tmp_path / "none" / "plan.pickle", *planned(*CASES[0]))
