"""`planner explain`: why a plan that was written is as it is, as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from planner import graph as graphs
from planner.machine import PRESETS, op_seconds
from planner.plan import load_plan, save_plan
from planner.swap import explain, plan_swaps

MODEL, MACHINE = "mlp:layers=6,hidden=96,batch=64,optimizer=adam", "v100-16gb"


@pytest.fixture
def saved(planner, tmp_path: Path) -> tuple[Path, Path]:
    """A plan within 60 %, and its graph."""
    plan, graph = tmp_path / "plan.json", tmp_path / "graph.json"
    planner("capture", MODEL, "--out", graph)
    planner("swap", MODEL, "--machine", MACHINE, "--budget", "60%", "--seconds", "0", "--method", "swap", "--out", plan)
    return plan, graph


@pytest.mark.parametrize("columns", [60, 80, 400])
def test_its_lines_go_on_under_their_own_text_in_a_narrow_terminal(planner, saved, monkeypatch, columns) -> None:
    plan, graph = saved
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = planner("explain", plan, graph).out.splitlines()
    assert max(map(len, lines)) <= columns
    expected = str(explain(load_plan(plan), graphs.load(graph), PRESETS[MACHINE])).splitlines()
    assert (lines == expected) == (columns == 400)
    continued = [line for line in lines if line.startswith(" " * 13) and line not in expected]
    assert bool(continued) == (columns < 400)


def test_it_says_what_the_function_says(planner, saved: tuple[Path, Path]) -> None:
    plan, graph = saved
    expected = explain(load_plan(plan), graphs.load(graph), PRESETS[MACHINE])
    assert planner("explain", plan, graph).out.split() == str(expected).split()
    facts, wanted = planner("explain", plan, graph, "--json").json, json.loads(json.dumps(expected.to_json()))
    assert facts.keys() == wanted.keys()
    assert facts["holders"] == wanted["holders"]
    assert facts["fates"]
    assert [(one["name"], one["verdict"]) for one in facts["fates"]] == [
        (one["name"], one["verdict"]) for one in wanted["fates"]
    ]
    assert facts["step_seconds"] == pytest.approx(wanted["step_seconds"])


def test_ops_take_the_times_that_the_plan_was_made_with(planner, saved: tuple[Path, Path], tmp_path: Path) -> None:
    graph, slow = graphs.load(saved[1]), tmp_path / "slow.json"
    seconds = 1000 * op_seconds(graph, PRESETS[MACHINE])
    save_plan(plan_swaps(graph, PRESETS[MACHINE], "60%", seconds=seconds, method="swap", time_limit=0), slow)
    facts = planner("explain", slow, saved[1], "--json").json
    assert facts["compute_seconds"] == pytest.approx(seconds.sum())


def test_another_machine_has_another_link(planner, saved: tuple[Path, Path]) -> None:
    slower = planner("explain", *saved, "--machine", f"{MACHINE}:host_link=0.1GB/s", "--json").json
    assert slower["stall_seconds"] > planner("explain", *saved, "--json").json["stall_seconds"]


def test_mistakes_are_sentences(planner, saved: tuple[Path, Path], tmp_path: Path) -> None:
    plan, graph = saved
    other, unknown = tmp_path / "other.json", tmp_path / "unknown.json"
    planner("capture", "mlp:layers=2,hidden=8,batch=2", "--out", other)
    save_plan(replace(load_plan(plan), machine="abacus"), unknown)
    for words, said in (
        ([graph, plan], f"error: {graph}: this is not a plan"),
        ([plan, plan], "the order is: explain PLAN GRAPH"),
        ([plan, other], f"error: {plan} is not for mlp:layers=2,hidden=8,batch=2: give the graph that it was made for"),
        ([plan, graph, "--machine", "abacus"], "error: unknown machine 'abacus'; choose one of"),
        ([unknown, graph], "error: the plan is for a machine that is not known here: unknown machine 'abacus'"),
        ([plan], "Missing argument 'GRAPH'; see python -m planner explain --help"),
    ):
        answer = planner("explain", *words)
        assert (answer.status, answer.out) == (2, "")
        assert said in answer.err
    assert "python -m planner explain plan.json graph.json --json" in planner("explain", "--help").out
