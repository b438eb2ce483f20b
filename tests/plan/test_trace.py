"""A trace says when everything in a step happens, as the timeline has it, in a form that other programs read."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest

from planner.errors import StowageError
from planner.graph import GraphBuilder, Kind
from planner.memory import buffers_to_csv, plan_buffers, read_buffers
from planner.plan import save_trace, trace_json
from planner.run import run
from planner.swap import plan_swaps
from tests.plan.plans import random_plan
from tests.run.steps import ALL, planned
from tests.swap.random_graphs import build, machine
from tests.widgets.steps import MIB, by_hand, plan_by_hand, real, real_plan

SPEC = "mlp:layers=6,hidden=64,batch=256,optimizer=adam"
STEPS, COMPUTE, WAITS, OUT, IN = "steps", "compute", "compute waits", "copies to the host", "copies to the device"
NANOSECOND = 1e-3


def lanes(events):
    """Spans by the name of their thread."""
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    found = {name: [] for name in names.values()}
    for event in events:
        if event["ph"] == "X":
            found[names[event["tid"]]].append(event)
    return found


def events_of(*given):
    return json.loads(trace_json(*given))["traceEvents"]


def test_an_op_says_the_line_of_code_that_runs_it():
    graph = by_hand()
    graph = replace(graph, ops=(replace(graph.ops[0], source="model.py:7"), *graph.ops[1:]))
    found = lanes(events_of(graph, plan_by_hand(graph)))
    assert [event["args"].get("line") for event in found[COMPUTE][:2]] == ["model.py:7", None]


def test_the_step_by_hand():
    graph = by_hand()
    found = lanes(events_of(graph, plan_by_hand(graph)))
    told = {name: [(e["name"], e["ts"] / 1e6, e["dur"] / 1e6) for e in lane] for name, lane in found.items()}
    assert told == {
        STEPS: [("step 0", 0, 7)],
        COMPUTE: [("a/mm", 0, 1), ("b/mm", 1, 1), ("sum", 2.5, 1), ("b/gradient", 5, 1), ("b/update", 6, 1)],
        WAITS: [("for a/mm to leave", 2, 0.5), ("for a/mm to arrive", 3.5, 1.5)],
        OUT: [("a/mm", 1, 1.5)],
        IN: [("a/mm", 3.5, 1.5)],
    }
    assert found[COMPUTE][1]["args"] == {
        "op": 1, "target": "aten.mm.default", "module": "b", "phase": "forward", "bytes": 18 * MIB,
    }  # fmt: skip
    assert found[OUT][0]["args"] == {"storage": 3, "kind": "activation", "bytes": 8 * MIB, "GB/s": 0.006}


@pytest.mark.parametrize("budget", ["40%", "70%", "100%"])
def test_a_predicted_step_adds_up_to_its_timeline(budget):
    graph, plan = real(SPEC)[1], real_plan(SPEC, budget)
    found, predicted = lanes(events_of(graph, plan)), plan.predicted
    assert [event["args"]["op"] for event in found[COMPUTE]] == list(plan.order)
    assert [event["args"]["storage"] for event in found[OUT]] == [copy.storage for copy in plan.swap_outs]
    assert [event["args"]["storage"] for event in found[IN]] == [copy.storage for copy in plan.swap_ins]
    for lane, spans in ((COMPUTE, predicted.compute), (OUT, predicted.swap_out), (IN, predicted.swap_in)):
        told = np.array([[event["ts"], event["ts"] + event["dur"]] for event in found[lane]]).reshape(-1, 2)
        assert np.allclose(told, 1e6 * spans, atol=NANOSECOND)
    waited = sum(event["dur"] for event in found[WAITS])
    assert waited == pytest.approx(1e6 * predicted.stall_seconds, abs=NANOSECOND * 2 * len(plan.order))


def test_spans_of_a_thread_never_overlap_and_all_lie_in_their_step():
    for seed in range(30):
        random = Random(seed)
        graph = build(random, random.randint(1, 3))
        plan = random_plan(graph, list(range(len(graph.ops))), seed)
        found = lanes(events_of(graph, plan, [plan.predicted] * 3))
        assert len(found[OUT]) == 3 * len(plan.swap_outs)
        assert [event["name"] for event in found[STEPS]] == ["step 0", "step 1", "step 2"]
        for lane in found.values():
            for before, after in pairwise(lane):
                assert before["ts"] + before["dur"] <= after["ts"] + NANOSECOND / 10
        last = found[STEPS][-1]
        for event in (event for lane in found.values() for event in lane):
            assert 0 <= event["ts"] <= event["ts"] + event["dur"] <= last["ts"] + last["dur"] + NANOSECOND / 10


@pytest.fixture(scope="module")
def finished():
    step = ALL["convolutions"]()
    return step, run(step, planned(step, "40%"), steps=3).wait()


def test_a_run_is_its_steps_one_after_another_with_the_memory_that_was_measured(finished):
    from planner.capture import capture

    step, result = finished
    graph, plan = capture(step), result.plan
    assert plan.swap_ins
    events = events_of(graph, plan, result.timelines)
    found = lanes(events)
    assert len(found[COMPUTE]) == 3 * len(plan.order)
    assert [e["dur"] for e in found[STEPS]] == pytest.approx([1e6 * s for s in result.step_seconds], abs=NANOSECOND)
    told = {round(1e3 * e["ts"]): sum(e["args"].values()) for e in events if e["ph"] == "C"}  # the last at a moment
    measured, begin = {}, 0
    for timeline in result.timelines:
        for at, size in zip(timeline.sample_seconds.tolist(), timeline.sample_bytes.tolist(), strict=True):
            measured[begin + round(1e9 * at)] = size
        begin += round(1e9 * timeline.seconds)
    assert told == measured


def test_an_arrow_leads_from_a_copy_out_to_the_copy_back():
    graph, plan = real(SPEC)[1], real_plan(SPEC, "40%")
    events = events_of(graph, plan)
    found = lanes(events)
    ends = {(event["ph"], event["id"]): event["ts"] for event in events if event["ph"] in "sf"}
    left = {event["ts"]: event["args"]["storage"] for event in found[OUT]}
    back = {event["ts"]: event["args"]["storage"] for event in found[IN]}
    arrows = {number for _, number in ends}
    assert arrows
    for number in arrows:
        assert ends["s", number] < ends["f", number]
        assert left[ends["s", number]] == back[ends["f", number]]
    gone = [(copy.storage, start) for copy, (start, _) in zip(plan.swap_outs, plan.predicted.swap_out, strict=True)]
    came = [(copy.storage, start) for copy, (start, _) in zip(plan.swap_ins, plan.predicted.swap_in, strict=True)]
    assert len(arrows) == sum(any(s == storage and t > start for s, t in came) for storage, start in gone)


def test_names_are_text_and_a_step_without_ops_has_a_trace(tmp_path: Path):
    builder = GraphBuilder("</script> ☃")
    builder.add_tensor("w\"'", builder.add_storage("w\"'", 64, Kind.PARAMETER), (16,))
    graph = builder.build([])
    plan = plan_swaps(graph, machine(), 64)
    save_trace(tmp_path / "trace.json", graph, plan)
    told = json.loads((tmp_path / "trace.json").read_text())
    assert told["traceEvents"][0]["args"] == {"name": "</script> ☃"}
    assert told["otherData"]["measured"] is False


def test_what_is_not_about_one_step_is_refused():
    graph, plan = real(SPEC)[1], real_plan(SPEC, "40%")
    with pytest.raises(StowageError, match="this plan is not for by hand"):
        trace_json(by_hand(), plan)
    with pytest.raises(StowageError, match="not one of this plan"):
        trace_json(graph, plan, [real_plan(SPEC, "70%").predicted])


def test_a_plans_buffers_are_a_packing_problem_that_its_offsets_solve(tmp_path: Path):
    graph, plan = real(SPEC)[1], real_plan(SPEC, "40%")
    path = tmp_path / "buffers.csv"
    path.write_text(buffers_to_csv(plan_buffers(graph, plan)))
    found = read_buffers(path)
    assert found.offsets is not None
    assert (found.offsets + found.sizes).max() == plan.peak_bytes
    assert len(found.ids) == len(plan.residencies)
    for slot in range(len(plan.order)):
        there = (found.lower <= slot) & (slot < found.upper)
        ends = sorted(zip(found.offsets[there], (found.offsets + found.sizes)[there], strict=True))
        assert all(stop <= start for (_, stop), (start, _) in pairwise(ends))
