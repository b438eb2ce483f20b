"""`planner swap`: its methods, its explanation, a host budget that holds, inference, and Ctrl-C that keeps the best."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from planner.cli import swap
from planner.machine import reserve_of, usable_bytes
from planner.plan import load_plan
from planner.profile import machine
from planner.swap import METHODS

MODEL = "mlp:layers=3,hidden=64,batch=16"
WORDS = ["--machine", "laptop", "--budget", "60%", "--seconds", 1]


def test_help_names_every_method_and_the_words_of_every_row(planner) -> None:
    help_text = planner("swap", "--help").out
    for method in METHODS:
        assert method in help_text
    rows = [line.split("  ")[0].strip() for line in planner("swap", MODEL, *WORDS).out.splitlines()]
    assert {"step peak", "lower bound", "order bound", "copied in", "gap"} <= set(rows)
    for row in rows:
        assert row in help_text or not row or row.startswith("lru")


@pytest.mark.parametrize("method", METHODS)
def test_every_method_plans(planner, method: str) -> None:
    answer = planner("swap", MODEL, *WORDS, "--method", method, "--json")
    if method == "recompute":  # here, nothing fits without copies
        assert 'take the method "auto"' in answer.err
        return
    facts = answer.json
    assert facts["step_seconds"] <= min(seconds for seconds in facts["baselines"].values() if seconds is not None)


def test_without_a_budget_a_plan_for_a_gpu_leaves_room_for_what_a_process_takes_beside_it(planner) -> None:
    facts = planner("swap", MODEL, "--machine", "laptop", "--seconds", 1, "--json").json
    reserved = sum(part.bytes for part in reserve_of(machine("laptop").device))
    assert facts["budget_bytes"] == machine("laptop").device.memory_bytes - reserved == usable_bytes(machine("laptop"))
    fit = planner("fit", "mlp:layers=1", "--machine", "laptop", "--over", "batch=1..2", "--json").json
    assert facts["budget_bytes"] == fit["budget_bytes"]


def test_without_a_budget_a_plan_for_a_cpu_may_take_all_of_its_memory(planner) -> None:
    facts = planner("swap", MODEL, "--seconds", 0, "--json").json
    assert facts["budget_bytes"] == machine("cpu").device.memory_bytes


def test_a_gpu_that_is_too_small_for_any_process_is_refused_unless_a_budget_is_given(planner) -> None:
    words = ["swap", MODEL, "--machine", "laptop:memory=256MiB", "--seconds", 0]
    refused = planner(*words)
    assert (refused.status, refused.out) == (2, "")
    assert "has 256 MiB of memory, of which 544 MiB are reserved" in refused.err
    given = planner(*words, "--budget", "100%")
    assert given.status == 0
    assert "has 256 MiB, of which the CUDA context and libraries take 544 MiB\n" in given.err


def test_the_explanation_is_about_the_plan(planner, tmp_path: Path) -> None:
    answer = planner("swap", MODEL, *WORDS, "--out", tmp_path / "plan.json", "--explain", "--json").json
    told, plan = answer["explanation"], load_plan(tmp_path / "plan.json")
    assert told["step_seconds"] == answer["step_seconds"] == plan.predicted.seconds
    assert told["stall_seconds"] == pytest.approx(answer["step_seconds"] - answer["ideal_seconds"])
    text = planner("swap", MODEL, *WORDS, "--explain").out
    for word in ("Peak:", "Exposed copies", "Swapped:", "Kept:", "limit"):
        assert word in text


def test_one_is_told_why_the_search_ended(planner) -> None:
    ended = {"paused": "its time was up", "done": "nothing is left to try"}
    words = ["--machine", "v100-16gb", "--budget", "50%", "--seconds"]
    hasty = planner("swap", "gpt:layers=2", *words, 0)
    assert ended["paused"] in hasty.out
    assert "no plan is faster" in planner("swap", MODEL, "--machine", "laptop", "--budget", "100%").out
    facts = planner("swap", "gpt:layers=1", *words, 1, "--json").json
    assert facts["search_state"] in ended
    assert facts["percent_of_ideal"] <= 100


def test_the_first_row_says_whose_ops_are_planned_and_how_to_have_those_of_the_machine(planner, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    words = ["swap", "mlp:layers=1", "--budget", "100%", "--seconds", 0, "--machine"]
    first = [
        planner(*words, *more).out.splitlines()[0].split("  ")[-1].strip()
        for more in (["cpu"], ["l4"], ["l4", "--device", "cuda"])
    ]
    assert first == [
        "the CPU's",
        "the CPU's, with which it can be run here, and not those of l4: for these add --device cuda",
        "a GPU's",
    ]


def test_a_plan_for_a_device_that_the_step_was_not_captured_for_is_called_approximate(planner) -> None:
    words = ["swap", "mlp:layers=1", "--budget", "100%", "--seconds", 0, "--json"]
    assert planner(*words, "--machine", "cpu").json["approximate"] == ""
    assert planner(*words, "--machine", "h100").json["approximate"].startswith("the step was captured for the CPU: ")


def test_a_plan_that_the_machine_has_no_memory_for_is_remarked_upon(planner) -> None:
    fits = planner("swap", MODEL, *WORDS)
    assert "note:" not in fits.err
    large = planner(
        "swap", "mlp:layers=3,hidden=30000,batch=8", "--machine", "v100-16gb", "--budget", "100%", "--seconds", 0
    )
    assert large.status == 0
    most = usable_bytes(machine("v100-16gb"))
    assert f"14.9 GiB, of which the CUDA context and libraries take 544 MiB; give --budget {most} to stay" in large.err


def test_a_host_budget_holds_or_is_refused_with_what_would_do(planner) -> None:
    free = planner("swap", MODEL, *WORDS, "--json").json["host_bytes"]
    held = planner("swap", MODEL, *WORDS, "--host-budget", free * 9 // 10, "--json")
    assert held.status == 2 or held.json["host_bytes"] <= free * 9 // 10
    refused = planner("swap", MODEL, *WORDS, "--host-budget", "1KiB")
    assert refused.status == 2
    assert "of host memory" in refused.err


def test_inference_moves_its_parameters_in_and_never_out(planner) -> None:
    words = ["--machine", "v100-16gb", "--budget", "24MB", "--seconds", 0, "--explain", "--json"]
    facts = planner("swap", "wresnet:depth=50,batch=2,image=32,mode=inference", *words).json
    assert facts["valid"] is True
    assert facts["peak_bytes"] <= facts["budget_bytes"] == 24_000_000
    assert facts["bytes_in"] > 0
    moved = [fate for fate in facts["explanation"]["fates"] if fate["verdict"] in ("swapped", "dropped")]
    assert {fate["verdict"] for fate in moved if fate["kind"] == "parameter"} == {"dropped"}


def interrupting(when: Callable[[str], bool]) -> Callable[[bool], Any]:
    """A progress bar at which somebody presses Ctrl-C, once."""

    @contextmanager
    def reporting(_: bool) -> Iterator[Callable[[float, str], None]]:
        pressed = False

        def report(_: float, doing: str) -> None:
            nonlocal pressed
            if not pressed and when(doing):
                pressed = True
                raise KeyboardInterrupt

        yield report

    return reporting


def test_control_c_keeps_the_best_plan_so_far(planner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swap, "reporting", interrupting(lambda doing: "so far" in doing))
    words = ["--machine", "v100-16gb", "--budget", "50%", "--seconds", 60, "--out", tmp_path / "plan.json", "--json"]
    answer = planner("swap", "gpt:layers=2", *words)
    assert answer.status == 0
    assert answer.err.startswith("stopped after")
    facts = json.loads(answer.out)
    assert facts["stopped"] is True
    assert load_plan(tmp_path / "plan.json").predicted.seconds == facts["step_seconds"]


def test_control_c_before_any_plan_writes_nothing(planner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swap, "reporting", interrupting(lambda doing: doing == "laying out the graph"))
    answer = planner("swap", MODEL, *WORDS, "--out", tmp_path / "plan.json")
    assert (answer.status, answer.out) == (130, "")
    assert not list(tmp_path.iterdir())


def test_op_times_that_were_never_measured_are_not_measured_anew(planner) -> None:
    answer = planner("swap", MODEL, "--machine", "v100-16gb", "--budget", "60%", "--remeasure")
    assert answer.status != 0
    assert (
        "--remeasure is for op times that are measured here, and those of v100-16gb come from a roofline" in answer.err
    )
