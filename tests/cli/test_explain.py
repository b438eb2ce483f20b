"""`planner explain`: why a plan that was written is as it is, as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from planner import graph as graphs
from planner.cli import main
from planner.machine import PRESETS, op_seconds
from planner.plan import load_plan, save_plan
from planner.swap import explain, plan_swaps

MODEL, MACHINE = "mlp:layers=6,hidden=96,batch=64,optimizer=adam", "v100-16gb"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A plan within 60 %, and its graph, as the commands write them."""
    folder = tmp_path_factory.mktemp("saved")
    plan, graph = folder / "plan.json", folder / "graph.json"
    words = ["--machine", MACHINE, "--budget", "60%", "--seconds", "0", "--method", "swap", "--out", str(plan)]
    for command in (["capture", MODEL, "--out", str(graph)], ["swap", MODEL, *words]):
        with pytest.raises(SystemExit) as end:
            main(command)
        assert not end.value.code
    return plan, graph


def test_it_says_what_the_function_says(planner, saved: tuple[Path, Path], monkeypatch) -> None:
    plan, graph = saved
    expected = explain(load_plan(plan), graphs.load(graph), PRESETS[MACHINE])
    monkeypatch.setenv("COLUMNS", "1000")
    assert planner("explain", plan, graph).out == f"{expected}\n"
    facts, wanted = planner("explain", plan, graph, "--json").json, json.loads(json.dumps(expected.to_json()))
    assert facts.keys() == wanted.keys()
    assert facts["holders"] == wanted["holders"]
    assert facts["fates"]
    assert [(one["name"], one["verdict"]) for one in facts["fates"]] == [
        (one["name"], one["verdict"]) for one in wanted["fates"]
    ]
    assert facts["step_seconds"] == pytest.approx(wanted["step_seconds"])


@pytest.mark.parametrize("columns", [50, 80])
def test_a_line_that_has_no_room_goes_on_below_its_own_text(planner, saved: tuple[Path, Path], monkeypatch, columns):
    text = str(explain(load_plan(saved[0]), graphs.load(saved[1]), PRESETS[MACHINE]))
    assert max(map(len, text.splitlines())) > 80
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = planner("explain", *saved).out.splitlines()
    assert max(map(len, lines)) <= columns
    assert " ".join(lines).split() == text.split()
    (row,) = (place for place, line in enumerate(lines) if "  layers.0.weight: idle" in line)
    assert lines[row].index("layers") == len(lines[row + 1]) - len(lines[row + 1].lstrip())
    assert lines[row].startswith("     36 KiB  ")


def test_a_swap_that_is_explained_has_room_too(planner, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = ("--machine", MACHINE, "--budget", "60%", "--seconds", "0", "--method", "swap")
    text = planner("swap", MODEL, *words, "--explain").out
    assert "\nPeak: " in text
    assert max(map(len, text.splitlines())) <= 80


def test_ops_take_the_times_that_the_plan_was_made_with(planner, saved: tuple[Path, Path], tmp_path: Path) -> None:
    graph, slow = graphs.load(saved[1]), tmp_path / "slow.json"
    seconds = 1000 * op_seconds(graph, PRESETS[MACHINE])
    save_plan(plan_swaps(graph, PRESETS[MACHINE], "60%", seconds=seconds, method="swap", time_limit=0), slow)
    facts = planner("explain", slow, saved[1], "--json").json
    assert facts["compute_seconds"] == pytest.approx(seconds.sum())


def test_another_machine_has_another_link(planner, saved: tuple[Path, Path]) -> None:
    slower = planner("explain", *saved, "--machine", f"{MACHINE}:host_link=0.1GB/s", "--json").json
    assert slower["stall_seconds"] > planner("explain", *saved, "--json").json["stall_seconds"]


def test_in_what_a_plan_made_on_the_machine_may_differ_is_the_last_thing_said(planner, saved, tmp_path: Path) -> None:
    plan, graph = tmp_path / "gpu-plan.json", tmp_path / "gpu-graph.json"
    words = ("--machine", MACHINE, "--budget", "80%", "--seconds", 0, "--device", "cuda", "--out", plan)
    explained = planner("swap", MODEL, *words, "--explain").out
    assert explained.count("captured without a GPU") == 1
    planner("capture", MODEL, "--device", "cuda", "--out", graph)
    for files, why in ((saved, "captured for the CPU"), ((plan, graph), "captured without a GPU")):
        last = " ".join(planner("explain", *files).out.split("\n\n")[-1].split())
        assert last.startswith(f"Approximate: the step was {why}: ")


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
