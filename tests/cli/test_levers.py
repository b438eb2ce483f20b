"""`planner levers`: the rows of `planner.levers`, as a table and as JSON."""

from __future__ import annotations

import planner as stowage
from planner.machine import PRESETS

MODEL = "mlp:layers=1,hidden=16,batch=4"


def test_the_rows_are_those_of_the_function(planner) -> None:
    facts = planner("levers", MODEL, "--machine", "h100", "--json").json
    found = stowage.levers(stowage.zoo.load(MODEL), PRESETS["h100"], progress=False)
    names = ("name", "change", "peak_bytes", "step_seconds", "samples_per_second", "fits", "changes_numbers")
    assert [[row[name] for name in names] for row in facts["rows"]] == [
        [getattr(row, name) for name in names] for row in found
    ]
    assert {one["name"]: one["reason"] for one in facts["unchangeable"]} == {
        one.name: one.reason for one in found.unchangeable
    }
    assert facts["budget_bytes"] == found.budget_bytes
    table = planner("levers", MODEL, "--machine", "h100").out
    assert table.strip() == repr(found)


def test_a_budget_leaves_less_memory_for_the_step(planner) -> None:
    words = ("levers", MODEL, "--machine", "h100", "--json")
    peak = planner(*words).json["rows"][0]["peak_bytes"]
    facts = planner(*words, "--budget", "50%").json
    assert facts["budget_bytes"] == peak // 2
    assert not facts["rows"][0]["fits"]


def test_what_cannot_be_asked_is_answered_in_one_sentence(planner) -> None:
    for words, says in (
        (["--machine", "abacus"], "abacus"),
        ([], "--machine"),
        (["--machine", "h100", "--budget", "half"], "half"),
    ):
        answer = planner("levers", MODEL, *words)
        assert (answer.status, answer.out) == (2, "")
        assert says in answer.err
