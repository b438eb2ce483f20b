"""`planner compare`: two plans of one step, as tables and as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner import graph as graphs
from planner.plan import compare_plans, save_plan
from tests.plan import again_by_hand, by_hand
from tests.plan.test_comparison import everything_stays


@pytest.fixture
def saved(tmp_path: Path) -> list[Path]:
    """Two plans of a step, and the step."""
    paths = [tmp_path / name for name in ("a.json", "b.json", "graph.json")]
    save_plan(everything_stays(), paths[0])
    save_plan(by_hand.plan(), paths[1])
    graphs.save(by_hand.step(), paths[2])
    return paths


def test_it_says_what_the_function_says(planner, saved: list[Path]) -> None:
    facts = planner("compare", *saved, "--json").json
    found = compare_plans(by_hand.step(), everything_stays(), by_hand.plan())
    assert (facts["first"]["peak_bytes"], facts["second"]["peak_bytes"]) == (576, 320)
    assert [(one["name"], one["bytes"], one["line"], one["first"], one["second"]) for one in facts["tensors"]] == [
        (one.name, one.bytes, one.line, one.first, one.second) for one in found.tensors
    ]
    assert facts["same_tensors"] == found.same_tensors
    assert [span["bytes"] for span in facts["times"]] == [span.bytes for span in found.times]


def test_its_tables_have_figures_tensors_and_times(planner, saved: list[Path]) -> None:
    shown = planner("compare", *saved).out
    assert ["peak", "576", "B", "320", "B", "(-44", "%)"] in [line.split() for line in shown.splitlines()]
    assert ["a", "64", "B", "kept", "swapped"] in [line.split() for line in shown.splitlines()]
    assert "more in the first" in shown
    same = planner("compare", saved[0], saved[0], saved[2]).out
    assert "Both plans treat every tensor alike." in same
    assert "when memory differs" not in same


def test_mistakes_are_sentences(planner, saved: list[Path], tmp_path: Path) -> None:
    first, second, graph = saved
    other, nothing = tmp_path / "other.json", tmp_path / "nothing.json"
    save_plan(again_by_hand.plan(), other)
    wrong = planner("validate", graph, second).err
    assert wrong.startswith(f"error: {second}: this is not a graph")
    assert wrong.count(str(second)) == 1
    for words, said in (
        ([first, other, graph], "error: the two plans are of different graphs"),
        ([first, graph, second], f"error: {graph}: this is not a plan"),
        ([first, second, first], f"error: {first}: this is not a graph"),
        ([first, second, first], "the order is: compare PLAN_A PLAN_B GRAPH"),
        ([first, second, nothing], "nothing.json"),
        ([first, second], "Missing argument 'GRAPH'; see python -m planner compare --help"),
    ):
        answer = planner("compare", *words)
        assert (answer.status, answer.out) == (2, "")
        assert said in answer.err
