"""`planner fit`: the answers of `planner.fit`, from text, for the zoo and functions; Ctrl-C tells what was found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import planner as stowage
from planner.cli.fit.fit_output import rows_of
from planner.fit import Fit, Largest, Needs
from planner.machine import PRESETS
from planner.units import format_bytes
from tests.effort import EFFORT

# fits a laptop GPU unswapped up to batch=16047
MODEL = "mlp:layers=2,hidden=16384"
WORDS = ["--machine", "laptop", "--over", "batch=16047..16054"]

FILE = """
import signal

import torch

import planner


def step(batch, width=8):
    model = torch.nn.Linear(width, width)
    return planner.TrainStep(model, lambda: torch.ones(batch, width), loss=lambda model, x: model(x).square().mean())


def stops(batch):
    if batch == 4:
        signal.raise_signal(signal.SIGINT)
    return step(batch)


calls = []


def stops_later(batch):
    calls.append(batch)
    if len(calls) == 6:
        signal.raise_signal(signal.SIGINT)
    return planner.zoo.mlp(layers=2, hidden=16384, batch=batch)


def without():
    return step(1)


def fails(batch):
    raise ValueError(f"{batch} is not a power of two")


def limited(batch):
    if batch > 37:
        raise ValueError(f"at most 37 rows, got {batch}")
    return step(batch)


def ignores(batch):
    return step(4)


def two(batch, width):
    return step(batch, width)


def inference(batch):
    return planner.InferenceStep(torch.nn.Linear(8, 8), torch.ones(batch, 8))
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def test_the_answers_are_those_of_the_function(planner) -> None:
    asked = range(16047, 16055)
    facts = planner("fit", f"{MODEL},batch=1", *WORDS, "--json").json
    found = stowage.fit(lambda batch: stowage.zoo.mlp(layers=2, hidden=16384, batch=batch), PRESETS["laptop"],
                        {"batch": asked}, progress=False)  # fmt: skip
    assert facts["over"] == "batch"
    assert facts["unswapped"]["value"] < facts["at_all"]["value"]
    assert facts["budget_bytes"] == found.budget_bytes
    assert [part["bytes"] for part in facts["reserve"]] == [part.bytes for part in found.reserve]
    answers = {"unswapped": found.unswapped, "full_speed": found.full_speed, "at_all": found.at_all}
    for name, answer in answers.items():
        assert facts[name] == {"value": answer.value, "proven": answer.proven, "monotone": answer.monotone}
    assert facts["slower"]["10%"]["value"] == found.slower[0.1].value
    assert [needs["value"] for needs in facts["tried"]] == [needs.value for needs in found.tried]
    assert [needs["step_seconds"] for needs in facts["tried"]] == [needs.step_seconds for needs in found.tried]


def test_a_person_reads_what_fits_and_help_explains_every_row(planner) -> None:
    answer = planner("fit", MODEL, *WORDS)
    help_text = planner("fit", "--help").out
    assert "python -m planner fit gpt --machine h100 --over batch=1..64" in help_text
    rows = {line.split("  ")[0].strip(): line for line in answer.out.splitlines() if line[:1] != " "}
    assert set(rows) == {
        "step", "machine", "budget", "reserved", "unswapped", "full speed", "10% slower", "50% slower", "at all",
        "tried", "approximate",
    }  # fmt: skip
    assert all(row in help_text for row in rows)
    assert "CUDA context and kernels 512 MiB" in rows["reserved"]
    assert "batch=16047: 6.92 GiB" in rows["unswapped"]
    assert "mlp:layers=2, hidden=16384, classes=10, optimizer=sgd, mode=train, seed=0" in words(answer.out)
    assert "14.9 GiB of host memory (assumed; set yours as in laptop:host_memory=64GB)" in words(answer.out)
    assert "in the host (the last asked for) 10% slower" in words(answer.out)
    assert "approximate the step was captured without a GPU: " in words(answer.out)
    of_the_cpu = planner("fit", MODEL, *WORDS, "--device", "cpu")
    assert "approximate the step was captured for the CPU: " in words(of_the_cpu.out)


def words(text: str) -> str:
    """A text in one line."""
    return " ".join(text.split())


def test_a_range_may_end_far_beyond_what_fits(planner) -> None:
    machine = "laptop:host_memory=256MB"
    near, far = (
        planner("fit", MODEL, "--machine", machine, "--over", over, "--json").json
        for over in ("batch=16046..16800", "batch=1..99999999999")
    )
    assert far["asked"]["last"] == 99999999999
    assert far["at_all"]["value"] == near["at_all"]["value"]


def test_where_the_hosts_memory_stops_the_largest_value_it_is_said(planner) -> None:
    machine, over = "laptop:host_memory=256MB", "batch=16046..16800"
    text = words(planner("fit", MODEL, "--machine", machine, "--over", over).out)
    facts = planner("fit", MODEL, "--machine", machine, "--over", over, "--json").json
    value = facts["at_all"]["value"]
    assert facts["unswapped"]["value"] < value < 16800
    assert facts["stopped_by_host"]
    assert facts["host_memory_bytes"] == 256 * 10**6
    assert f"(host memory stops batch={value + 1})" in text
    assert "244 MiB of host memory budget" in text  # and nothing of it is assumed
    more = planner("fit", MODEL, "--machine", "laptop", "--over", f"batch={value}..{value + 1}", "--json").json
    assert more["at_all"]["value"] == value + 1
    assert not more["stopped_by_host"]


def test_where_the_smallest_value_does_not_fit_the_row_says_why(planner) -> None:
    text = words(planner("fit", MODEL, "--machine", "laptop", "--over", "batch=48400..60000").out)
    swapped = planner("swap", f"{MODEL},batch=48400", "--machine", "laptop", "--budget", "100%", "--json").json
    peak = swapped["peak_bytes"]
    assert f"unswapped none: batch=48400 already takes {format_bytes(peak)}; try smaller ones" in text
    assert re.search(r"full speed none: batch=48400 is already \d\d % slower; try smaller ones", text)
    small = words(planner("fit", MODEL, "--machine", "laptop:host_memory=1MB", "--over", "batch=40000..40001").out)
    assert "at all none: batch=40000 already takes more host memory than there is; try smaller ones" in small


def test_a_range_without_a_last_value_goes_as_far_as_something_fits(planner) -> None:
    words = ("fit", MODEL, "--machine", "laptop", "--json", "--over")
    endless, ended = planner(*words, "batch=16000..").json, planner(*words, "batch=16000..64000").json
    assert endless["asked"] == {"first": 16000, "last": 64000}
    for name in ("unswapped", "full_speed", "at_all"):
        assert endless[name]["value"] == ended[name]["value"]


def test_values_may_be_as_large_as_one_likes(planner, file: Path) -> None:
    words = ("fit", f"{file}:step", "--machine", "h100", "--over")
    text = " ".join(planner(*words, "batch=99999999998..99999999999").out.split())
    assert "unswapped none: batch=99999999998 already takes " in text
    answer = planner(*words, f"batch=1..1{'0' * 30}")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith("error: batch must be 9,223,372,036,854,775,807 or less, got 1,000,")


def test_a_share_of_a_hundred_percent_and_more_is_written_out() -> None:
    needs = Needs(7, 2**31, ideal_seconds=1.0, step_seconds=2.1, peak_bytes=2**30, host_bytes=0)
    some, none = Largest(7, True, True), Largest(None, True, True)
    found = Fit("batch", "h100", 2**30, (), none, none, {}, some, (needs,), asked=range(7, 9))
    rows = rows_of(found, "mlp", PRESETS["h100"])
    assert rows["at all"] == ("batch=7: 2.10 s a step, 110 % slower",)
    assert rows["full speed"] == ("none: batch=7 is already 110 % slower; try smaller ones",)


def test_a_function_of_ones_own_is_called_with_each_value(planner, file: Path) -> None:
    words = ["--machine", "h100", "--over", "batch=1..8"]
    facts = planner("fit", f"{file}:step", *words, "--json").json
    assert facts["unswapped"] == facts["at_all"] == {"value": 8, "proven": True, "monotone": True}
    row = next(line for line in planner("fit", f"{file}:step", *words).out.splitlines() if line.startswith("at all"))
    assert "batch=8: " in row
    assert "the last asked for" in row


def test_a_function_may_return_an_inference_step(planner, file: Path) -> None:
    facts = planner("fit", f"{file}:inference", "--machine", "h100", "--over", "batch=1..4", "--json").json
    assert facts["unswapped"]["value"] == 4


def test_where_the_model_stops_an_open_range_the_rows_and_json_say_so(planner, file: Path) -> None:
    asked = ("fit", f"{file}:limited", "--machine", "h100", "--over", "batch=1..")
    text, facts = planner(*asked).out, planner(*asked, "--json").json
    rows = {line.split("  ")[0].strip(): line for line in text.splitlines() if line[:1] != " "}
    for row in ("unswapped", "full speed", "10% slower", "50% slower", "at all"):
        assert "batch=37: " in rows[row]
        assert rows[row].rstrip().endswith("(the model stops batch=38)")
    assert "batch=38: ValueError: at most 37 rows, got 38" in rows["fails"]
    assert facts["asked"] == {"first": 1, "last": 37}
    assert facts["stopped_by_model"]
    assert facts["failed"] == [{"value": 38, "error": "ValueError: at most 37 rows, got 38"}]
    ended = planner("fit", f"{file}:limited", "--machine", "h100", "--over", "batch=1..37", "--json").json
    assert (ended["stopped_by_model"], ended["failed"]) == (False, [])


@pytest.mark.parametrize("columns", [60, 80, 90, 200] if EFFORT > 1 else [60, 90])
def test_no_remark_in_brackets_is_broken_by_the_end_of_a_line(planner, file: Path, monkeypatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = planner("fit", f"{file}:limited", "--machine", "h100", "--over", "batch=1..").out.splitlines()
    remarks = [line for line in lines if "the model" in line]
    assert len(remarks) == 5
    assert all("(the model stops batch=38)" in line for line in remarks)


def test_control_c_before_anything_is_found_ends_without_an_answer(planner, file: Path) -> None:
    answer = planner("fit", f"{file}:stops", "--machine", "h100", "--over", "batch=1..4")
    assert (answer.status, answer.out) == (130, "")
    assert answer.err.strip() == "error: stopped before it was done; no file was changed"


def test_control_c_says_what_was_found_before_it(planner, file: Path) -> None:
    answer = planner("fit", f"{file}:stops_later", "--machine", "laptop", "--over", "batch=16000..90000")
    assert (answer.status, answer.out) == (130, "")
    said = "error: stopped before it was done; no file was changed; found so far: unswapped batch=16047"
    assert answer.err.strip().splitlines()[-1] == said


def test_answers_are_for_the_shares_of_time_that_are_asked_for(planner) -> None:
    asked = ("fit", MODEL, "--machine", "laptop", "--over", "batch=30000..30003", "--slower", "25%,5%")
    facts = planner(*asked, "--json").json
    found = stowage.fit(
        stowage.zoo.step_maker(MODEL), PRESETS["laptop"], {"batch": range(30000, 30004)}, slower=("25%", "5%"),
        progress=False,
    )  # fmt: skip
    assert {share: answer["value"] for share, answer in facts["slower"].items()} == {
        "25%": found.slower[0.25].value, "5%": found.slower[0.05].value,
    }  # fmt: skip
    rows = [line.split("  ")[0] for line in planner(*asked).out.splitlines()]
    assert [row for row in rows if row.endswith("slower")] == ["25% slower", "5% slower"]


@pytest.mark.parametrize("name", ["cpu", "CPU", "auto"])
def test_a_cpu_is_refused_before_it_is_measured(planner, name: str, monkeypatch) -> None:
    def measured() -> None:
        raise AssertionError("measured")

    monkeypatch.setattr("planner.profile.attached_machine.attached_cpu", measured)
    monkeypatch.setattr("planner.profile.attached_machine.attached", measured)
    answer = planner("fit", "mlp", "--machine", name, "--over", "batch=1..4")
    assert (answer.status, answer.out) == (2, "")
    assert f"a step on {name} takes the memory that it would be swapped to" in answer.err


def test_a_function_without_a_default_is_for_fit_alone_and_the_sentence_says_how_it_serves_all(
    planner, file: Path
) -> None:
    refused = planner("capture", f"{file}:step")
    assert (refused.status, refused.out) == (2, "")
    assert "is called without arguments, and needs batch: give a default, as in def step(batch=8):" in refused.err


@pytest.mark.parametrize(
    ("function", "over", "says"),
    [
        ("step", "batches=1..4", "step has no argument 'batches' (did you mean batch?); it takes batch, width"),
        (
            "without",
            "batch=1..4",
            "without has no argument 'batch'; it takes no arguments, and is called with each value: write "
            "def without(batch=8): and make a step of that batch",
        ),
        (
            "two",
            "batch=1..4",
            "two is called with batch alone, and needs width too: give a default, as in def two(batch, width=8):",
        ),
        ("fails", "batch=1..4", "raised ValueError: 1 is not a power of two; it is called with batch=1"),
        (
            "fails",
            "batch=2..",
            "raised ValueError: 2 is not a power of two; it is called with batch=2 and must return "
            "a TrainStep or an InferenceStep",
        ),
        (
            "limited",
            "batch=2..64",
            "batch=38 fails (ValueError: at most 37 rows, got 38), and batch=37 is the last that "
            "works; end the range there, or leave its end open",
        ),
        ("ignores", "batch=5..", "still fits; name a last value, as in --over batch=5..320"),
        ("step", "batch=4", "write an argument, its first and its last value: batch=1..64"),
        ("step", "batch=4..1", "ends below its beginning; write batch=1..4"),
        ("step", "batch=0..4", "batch must be 1 or more, got 0"),
        ("gone", "batch=1..4", "has no function 'gone'"),
    ],
)
def test_what_cannot_be_asked_is_answered_in_one_sentence(planner, file: Path, function, over, says) -> None:
    answer = planner("fit", f"{file}:{function}", "--machine", "h100", "--over", over)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.count("\n") == 1
    assert says in answer.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["mlp", "--machine", "h100", "--over", "height=1..4"], "mlp has no argument 'height'"),
        (["mlp", "--machine", "h100", "--over", "optimizer=1..4"], "optimizer=1 fails: unknown optimizer 1"),
        (["mlp", "--machine", "abacus", "--over", "batch=1..4"], "abacus"),
        (["mlp", "--over", "batch=1..4"], "--machine"),
        (["mlp", "--machine", "h100"], "--over"),
        (["mlp", "--machine", "h100", "--over", "batch=1..4", "--slower", "a lot"], 'a share such as "10%", got'),
        (["mlp", "--machine", "h100", "--over", "batch=1..4", "--slower", "5%,"], "--slower '5%,' has an empty word"),
    ],
)
def test_what_the_zoo_or_the_command_lacks_is_said(planner, words, says) -> None:
    answer = planner("fit", *words)
    assert (answer.status, answer.out) == (2, "")
    assert says in answer.err
