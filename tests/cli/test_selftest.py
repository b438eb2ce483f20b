"""`planner selftest`: a line for each stage, a report, and an exit status that says whether all passed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.run import DEVICES, CpuDevice
from planner.selftest import self_test
from tests.selftest.faulty_device import moves_a_number, with_fault


def test_a_device_that_is_wrong_ends_it_with_the_stage_that_found_out(
    planner: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_test, "DEVICES", {"cpu": with_fault("compute", "launch", moves_a_number)})
    answer = planner("selftest", "--out", tmp_path / "report.json")
    assert answer.status == 1
    kernels, calls = answer.out.splitlines()
    assert kernels.startswith("1 kernels      passed   all ")
    assert calls.startswith("2 calls        failed   ")
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["passed"], [stage["outcome"] for stage in report["stages"]]) == (False, ["passed", "failed"])
    assert calls.endswith(report["stages"][-1]["summary"])


def test_a_device_that_is_not_there_is_refused(planner: Any) -> None:
    answer = planner("selftest", "--device", "gpu")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == 'error: there is no device "gpu" to test; choose "cpu" or "cuda"\n'
    assert DEVICES["cpu"] is CpuDevice
