"""What a command says beside its result, and whether two numbers in one sentence can be followed."""

import json
from pathlib import Path

import pytest

MODEL = "mlp:layers=2,hidden=32,batch=4"


def test_a_bare_number_is_told_from_a_share(planner) -> None:
    answer = planner("swap", MODEL, "--machine", "laptop", "--budget", "40")
    assert answer.status == 2
    assert 'write "40%"' in answer.err


def test_a_budget_just_too_small_and_the_least_one_differ_in_writing(planner) -> None:
    words = ["swap", MODEL, "--machine", "laptop", "--json", "--budget"]
    least = int(planner(*words, "1KiB").err.split("at least ")[1].split()[0])
    assert planner(*words, least).json["budget_bytes"] == least
    refused = planner(*words, least - 1).err
    assert refused.split("a budget of ")[1].split(" is")[0] != refused.split("(")[-1].split(")")[0]


def test_percentages_are_of_a_step_peak_that_is_printed(planner, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    swapped = planner("swap", MODEL, "--machine", "cpu", "--budget", "80%", "--out", plan, "--json").json
    assert swapped["budget_bytes"] == swapped["step_peak_bytes"] * 80 // 100
    ran = planner("run", MODEL, "--plan", plan, "--json").json
    assert ran["step_peak_bytes"] == swapped["step_peak_bytes"]


def test_what_was_checked_is_counted_for_a_person_who_asked(planner) -> None:
    words = ["run", MODEL, "--budget", "100%", "--steps", "1"]
    told = planner(*words)
    assert "the first 2 steps" in told.out
    assert "compared" not in told.out
    first = planner(*words, "--json").json
    assert (first["mismatches"], first["mismatched"], first["checked"]) == (0, [], "the first 2 steps")
    assert first["compared"] > 0
    assert "compared" in planner(*words, "--check").out


def test_op_times_are_measured_anew_when_asked(planner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.profile import cache_path

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # others measure too, at the same time
    words = ["run", "mlp:layers=2,hidden=24,batch=4", "--budget", "100%", "--steps", "1"]
    assert str(cache_path()) in planner("machines").out.replace("\n", "")
    planner(*words)
    before = cache_path().read_text()
    planner(*words)
    assert cache_path().read_text() == before
    assert "measured before" not in planner(*words, "--remeasure").err
    assert cache_path().read_text() != before


def test_a_plan_has_its_own_op_times(planner, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    planner("swap", MODEL, "--machine", "laptop", "--budget", "100%", "--out", plan)
    answer = planner("run", MODEL, "--plan", plan, "--remeasure")
    assert answer.status == 2
    assert "op times" in answer.err


def test_predictions_that_are_far_off_are_remarked_upon(planner, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    model = "mlp:layers=4,hidden=256,batch=64"
    planner("swap", model, "--machine", "h200", "--budget", "100%", "--out", plan)
    answer = planner("run", model, "--plan", plan)
    assert answer.status == 0
    assert "--remeasure" in answer.err


def test_op_times_of_a_busy_computer_are_remarked_upon(
    planner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from planner.profile import cache_path

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words = ["run", "mlp:layers=2,hidden=24,batch=4", "--budget", "100%"]
    assert "busy" not in planner(*words, "--steps", "1").err
    data = json.loads(cache_path().read_text())
    data["costs"] = {key: [100_000 * seconds, scratch] for key, (seconds, scratch) in data["costs"].items()}
    cache_path().write_text(json.dumps(data))
    assert "op times measured while this computer was busy: they are measured again" in planner(*words).err


SLOW = """
import time, torch, planner

class Slow(torch.nn.Linear):
    def forward(self, x):
        time.sleep(2.5)
        return super().forward(x)

def step():
    return planner.TrainStep(lambda: Slow(2, 2), lambda: torch.ones(2, 2), loss=lambda model, x: model(x).sum())
"""


def test_a_log_has_a_line_when_a_command_takes_long(planner, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    answer = planner("capture", f"{tmp_path / 'slow.py'}:step", "--json")
    assert answer.progress == "planner: running the model on fake tensors\n"
    assert answer.json["ops"] > 0


INTERRUPTED = """
import signal, time, torch, planner

class Rate:
    def __call__(self, step):
        if step == 3:
            signal.raise_signal(signal.SIGINT)
            time.sleep(5)  # the command's own thread hears it while this step is being made
        return 0.1

def step():
    return planner.TrainStep(
        lambda: torch.nn.Linear(2, 2), lambda: torch.ones(2, 2), loss=lambda model, x: model(x).square().sum(),
        optimizer=planner.SGD(lr=Rate()),
    )
"""


def test_control_c_prints_the_steps_that_were_made(planner, tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(INTERRUPTED)
    answer = planner("run", f"{tmp_path / 'interrupted.py'}:step", "--budget", "100%", "--steps", "9", "--json")
    assert answer.status == 130
    assert len(answer.json["losses"]) == len(answer.json["step_seconds"]) == 3
    assert answer.err == "stopped after 3 of 9 steps\n"
