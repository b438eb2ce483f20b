"""A graph and a plan as the page gets them: the columns say what graph and plan say."""

import json
from dataclasses import replace

import numpy as np
import pytest

from planner.graph import Phase, storage_modules
from planner.memory import lifetimes
from planner.plan import PlanSummary
from tests.widgets.steps import MIB, by_hand, plan_by_hand, real, real_plan
from widgets.info.colour_groups import GROUP_OF, STACK
from widgets.messages.graph_message import graph_message
from widgets.messages.message import message, unpack
from widgets.messages.plan_message import PlanStatus, plan_message

MODEL = "mlp:layers=5,optimizer=adam"


def test_a_message_has_a_buffer_for_each_column_and_no_number_that_json_lacks() -> None:
    content = {"a": float("nan"), "b": [np.float32(2), np.int64(3), float("inf")], "c": {"d": np.True_}}
    sent = message("kind", content, {"x": ("f4", [1, 2]), "y": ("i4", []), "z": ("f8", np.array([np.nan]))})
    assert json.loads(json.dumps(sent.content, allow_nan=False)) == {
        "kind": "kind", "a": None, "b": [2, 3, None], "c": {"d": True},
        "columns": [["x", "f4", 2], ["y", "i4", 0], ["z", "f8", 1]],
    }  # fmt: skip
    assert [len(buffer) for buffer in sent.buffers] == [8, 0, 8]
    assert unpack(sent)["x"].tolist() == [1, 2]


def test_the_columns_say_what_each_op_works_on_and_which_module_has_it() -> None:
    graph = real(MODEL)[1]
    sent = graph_message(graph, 123, ["Adam"])
    columns, said = unpack(sent), sent.content
    assert (said["name"], said["facts"], said["samples"], said["step_peak_bytes"]) == (
        "mlp",
        ["layers 5", "Adam"],
        64,
        123,
    )
    assert said["parameters"] == 5 * (512 * 512 + 512) + 512 * 10 + 10
    owners = storage_modules(graph)
    for op in graph.ops:
        first, last = columns["op_touch_start"][op.id : op.id + 2]
        touched, reads = columns["op_touch"][first:last].tolist(), columns["op_read_count"][op.id]
        assert touched[:reads] == list(graph.reads[op.id])
        assert set(touched) == {*graph.reads[op.id], *graph.writes[op.id], *({op.workspace} - {-1})}
        assert len(touched) == len(set(touched))
        assert columns["op_working_set"][op.id] == sum(graph.storages[storage].bytes for storage in touched)
        assert said["module_paths"][columns["op_module"][op.id]] == op.module
        assert said["targets"][columns["op_target"][op.id]] == op.target
        assert list(Phase)[columns["op_phase"][op.id]] is op.phase
    for storage in graph.storages:
        assert said["storage_names"][storage.id] == storage.name
        assert said["module_paths"][columns["storage_module"][storage.id]] == owners[storage.id]
        assert STACK[columns["storage_kind"][storage.id]] is GROUP_OF[storage.kind]
        assert columns["storage_bytes"][storage.id] == storage.bytes
        touching = [op for op in graph.ops if storage.id in {*graph.reads[op.id], *graph.writes[op.id], op.workspace}]
        lines = [op.source for op in touching if op.source]
        assert said["sources"][columns["storage_source"][storage.id]] == (lines[0] if lines else "")
    parents = columns["module_parent"].tolist()
    assert parents[0] == -1
    assert all(0 <= parent < module for module, parent in enumerate(parents) if module)
    for module, parent in enumerate(parents[1:], 1):
        assert said["module_paths"][module].rpartition(".")[0] == said["module_paths"][parent]


def test_a_line_of_a_notebooks_cell_is_called_that() -> None:
    graph = by_hand()
    ops = (replace(graph.ops[0], source="3141592653.py:7"), replace(graph.ops[1], source="model.py:8"), *graph.ops[2:])
    sent = graph_message(replace(graph, ops=ops), 1)
    sources = [sent.content["sources"][source] for source in unpack(sent)["op_source"][:3]]
    assert sources == ["line 7 of a cell", "model.py:8", graph.ops[2].source]
    made = graph.writes[0][0]
    assert sent.content["sources"][unpack(sent)["storage_source"][made]] == "line 7 of a cell"


def test_an_op_belongs_to_the_forward_op_whose_gradient_or_parameter_it_computes() -> None:
    graph = real(MODEL)[1]
    forward_of = unpack(graph_message(graph, 1))["op_forward"].tolist()
    for op in graph.ops:
        if op.phase is Phase.FORWARD:
            assert forward_of[op.id] == -1
        elif op.module:
            twin = graph.ops[forward_of[op.id]]
            assert (twin.phase, twin.module) == (Phase.FORWARD, op.module), op.name
    relus = {op.name: op.id for op in graph.ops if op.target == "aten.relu.default"}
    backward = [op for op in graph.ops if op.target == "aten.threshold_backward.default"]
    assert [forward_of[op.id] for op in backward] == sorted(relus.values(), reverse=True)


def test_a_plan_by_hand() -> None:
    graph = by_hand()
    plan = plan_by_hand(graph)
    sent = plan_message(graph, plan, PlanStatus(4, PlanSummary(graph, plan, 5.0, 4.5)))
    said, columns = sent.content, unpack(sent)
    assert (said["plan"], said["moved"], said["bytes_in"], said["bytes_out"]) == (4, 1, 8 * MIB, 8 * MIB)
    assert (said["step_seconds"], said["stall_seconds"], said["bound_seconds"]) == (7.0, 2.0, 4.5)
    away = np.flatnonzero(columns["residency_storage"] == 3)
    assert columns["residency_start"][away].tolist() == [0, 3.5]
    assert columns["residency_stop"][away].tolist() == [2.5, 6]
    assert columns["residency_slot"][away].tolist() == [0, 3]
    assert columns["residency_slot_stop"][away].tolist() == [2, 4]
    assert columns["residency_offset"][away].tolist() == [7 * MIB, 7 * MIB]
    assert np.array_equal(columns["residency_leave"][away], [1, np.nan], equal_nan=True)
    assert np.array_equal(columns["residency_arrive"][away], [np.nan, 5], equal_nan=True)
    assert (columns["stall_start"].tolist(), columns["stall_stop"].tolist()) == ([2, 3.5], [2.5, 5])
    assert (columns["stall_op"].tolist(), columns["stall_storage"].tolist()) == ([2, 3], [3, 3])
    assert (columns["out_start"].tolist(), columns["in_stop"].tolist()) == ([1], [5])


@pytest.mark.parametrize("budget", ["100%", "40%"])
def test_bytes_over_slots_are_those_of_the_plan(budget: str) -> None:
    graph, plan = real(MODEL)[1], real_plan(MODEL, budget)
    columns = unpack(plan_message(graph, plan, PlanStatus(1, PlanSummary(graph, plan, 1.0))))
    sizes = np.array([storage.bytes for storage in graph.storages])
    ends = columns["residency_offset"] + sizes[columns["residency_storage"]]
    assert ends.max() == plan.peak_bytes
    assert columns["unswapped"].tolist() == lifetimes(graph, plan.order).live_bytes.tolist()
    assert columns["order"].tolist() == list(plan.order)
    assert len(columns["residency_storage"]) == sum(bool(sizes[stay.storage]) for stay in plan.residencies)
    assert (columns["residency_stop"] > columns["residency_start"]).all()
    assert len(columns["in_storage"]) == len(plan.swap_ins)
