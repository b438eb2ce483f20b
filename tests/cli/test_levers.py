"""`planner levers`: the rows of `planner.levers`, as a table and as JSON."""

from __future__ import annotations

import pytest

import planner as stowage
from planner.machine import PRESETS
from planner.units import format_bytes

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


@pytest.mark.parametrize("columns", [80, 250])
def test_a_person_reads_the_rows_then_what_changes_then_what_is_not_possible(planner, monkeypatch, columns) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = planner("levers", MODEL, "--machine", "h100", "--budget", "60%").out
    found = stowage.levers(stowage.zoo.load(MODEL), PRESETS["h100"], budget="60%", progress=False)
    assert max(map(len, text.splitlines())) <= columns
    title, _, rest = text.partition("\n\n")
    rows, best, changes, others, caution = rest.split("\n\n")
    assert title == found.title
    header, cells = found.table()
    assert rows.splitlines()[0].split() == list(header[:-1])
    assert header[4] == "rows/s"
    for row in cells:
        name = row[0].split()[0]
        assert any(line.startswith(name) and all(cell in line for cell in row[1:5]) for line in rows.splitlines())
    assert best.startswith("Fastest that fits, by its numbers:\n")
    assert changes.startswith("What changes:\n")
    assert others.startswith("Not possible:\n")
    for part, said in ((changes, [(row.name, row.change) for row in found.rows[1:] if not row.parts]),
                       (others, [(one.name, one.reason) for one in found.unchangeable])):  # fmt: skip
        words = " ".join(part.split())
        assert all(" ".join(f"{name} {text}".split()) in words for name, text in said if columns == 250)
        assert all(name in words for name, _ in said)
    assert " ".join(caution.split()) == f"Approximate: {found.approximate}"


def test_of_what_fits_the_fastest_is_named_and_what_is_faster_if_the_numbers_may_change(planner, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    words = ("levers", "mlp:layers=2,hidden=512,batch=512", "--machine", "h100", "--budget", "60%")
    rows = planner(*words, "--json").json["rows"]
    _, _, text = planner(*words).out.partition("Fastest that fits, by its numbers:\n")
    named = dict(line.split("  ", 1) for line in text.partition("\n\n")[0].splitlines())
    speeds = {row["name"]: row["samples_per_second"] for row in rows if row["fits"]}
    fastest = [said.strip().rsplit(", ", 1)[0] for said in named.values()]
    assert next(iter(named)) == "bit for bit"
    assert [speeds[name] for name in fastest] == sorted({speeds[name] for name in fastest})
    assert speeds[fastest[-1]] == max(speeds.values())
    same = [row["samples_per_second"] for row in rows if row["fits"] and row["changes_numbers"] == "bit for bit"]
    assert speeds[fastest[0]] == max(same)


def test_where_nothing_fits_the_lowest_peak_is_named(planner) -> None:
    words = ("levers", MODEL, "--machine", "h100", "--budget", "1KiB")
    lowest = min(planner(*words, "--json").json["rows"], key=lambda row: row["peak_bytes"])
    text = " ".join(planner(*words).out.split())
    assert f"Nothing fits; the lowest peak is {format_bytes(lowest['peak_bytes'])} ({lowest['name']})." in text


def test_what_is_not_possible_advises_nothing_that_the_command_lacks(planner) -> None:
    words = ("levers", "mlp:layers=2,hidden=512,batch=512", "--machine", "h100", "--json", "--budget")
    for budget, why in (
        ("50%", "no plan that copies nothing was found within 3.52 MiB"),
        ("200%", "unswapped, the step takes 7.05 MiB and fits in 14.1 MiB without a plan"),
    ):
        reasons = {one["name"]: one["reason"] for one in planner(*words, budget).json["unchangeable"]}
        assert reasons["recomputed by a plan"] == why
        assert not any("method=" in reason or '"auto"' in reason for reason in reasons.values())


def test_a_budget_beyond_what_the_machine_has_is_remarked_upon(planner) -> None:
    beyond, within = (planner("levers", MODEL, "--machine", "t4", "--budget", size) for size in ("200GiB", "10GiB"))
    assert "note: the budget of 200 GiB is more than the 14.9 GiB that t4 has\n" in beyond.err
    assert "note" not in within.err
    assert beyond.status == within.status == 0


def test_a_budget_leaves_less_memory_for_the_step(planner) -> None:
    words = ("levers", MODEL, "--machine", "h100", "--json")
    peak = planner(*words).json["rows"][0]["peak_bytes"]
    facts = planner(*words, "--budget", "50%").json
    assert facts["budget_bytes"] < peak
    assert not facts["rows"][0]["fits"]


def test_a_share_is_that_of_a_plan_with_the_same_ops(planner) -> None:
    words = ("--machine", "h100", "--budget", "50%", "--json")
    swapped = planner("swap", MODEL, *words, "--seconds", 0, "--device", "cuda").json
    facts = planner("levers", MODEL, *words).json
    assert facts["budget_bytes"] == swapped["budget_bytes"]
    assert facts["rows"][0]["peak_bytes"] == swapped["step_peak_bytes"]


def test_what_cannot_be_asked_is_answered_in_one_sentence(planner) -> None:
    for words, says in (
        (["--machine", "abacus"], "abacus"),
        ([], "--machine"),
        (["--machine", "h100", "--budget", "half"], "half"),
    ):
        answer = planner("levers", MODEL, *words)
        assert (answer.status, answer.out) == (2, "")
        assert says in answer.err
