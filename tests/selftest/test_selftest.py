"""A self test passes where a device is right, and says what is wrong where it is not."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

import planner
from planner.errors import StowageError
from planner.progress import Progress
from planner.run import DEVICES, CpuDevice
from planner.selftest import SelfTestReport, StageResult, environment, report_json
from planner.selftest.copy_rates import copy_rates
from planner.selftest.missing_kernels import missing_kernels
from planner.selftest.sample_steps import STEPS, PlannedStep, planned_step
from planner.selftest.self_test import results
from planner.selftest.stage_checks import Stages
from tests.effort import EFFORT
from tests.selftest import faulty_device as faults
from tests.selftest.faulty_device import with_fault

KINDS = ("calls", "memory", "copies", "steps", "races", "peak")


@cache
def planned(name: str) -> PlannedStep:
    return planned_step(name, "cpu", Progress())


class Few(Stages):
    """The stages with one step, which was captured and planned before, and less of everything."""

    def __init__(self, make_device: Any, name: str = "attention", **fewer: Any) -> None:
        super().__init__("cpu", make_device, [name], seeds=2, waits=4)
        self._tested = [replace(planned(name), **fewer)]

    def only(self, *names: str) -> list[StageResult]:
        """The results of some stages, and of those that they need."""
        return list(results([each for each in self.in_order() if each[0] in names], Progress()))


def failure(make_device: Any, *names: str, step: str = "attention", **fewer: Any) -> str:
    """What the last of some stages, all others of which pass, finds wrong."""
    *before, last = Few(make_device, step, **fewer).only(*names)
    assert [result.outcome for result in before] == ["passed"] * (len(names) - 1)
    assert last.outcome == "failed"
    return last.summary


def test_this_computer_passes() -> None:
    before = torch.get_rng_state()
    for _ in range(3):
        stages = Stages("cpu", CpuDevice, list(STEPS), seeds=2 * EFFORT, waits=EFFORT)
        found = SelfTestReport("cpu", environment(), tuple(results(stages.in_order(), Progress())))
        if "test again with fewer other programs running" not in str(found):
            break
    assert found.passed, str(found)
    assert [stage.name for stage in found.stages] == [
        "kernels", "calls", "memory", "copies", "steps", "races", "sanitizer", "graphs", "peak"
    ]  # fmt: skip
    assert [stage.name for stage in found.stages if stage.outcome == "skipped"] == ["sanitizer", "graphs"]
    assert torch.equal(torch.get_rng_state(), before)
    figures = {stage.name: stage.figures for stage in found.stages}
    assert figures["races"]["runs"] > 2 * EFFORT * len(STEPS)
    assert figures["calls"]["calls"] == figures["kernels"]["ops"]
    assert figures["peak"]["LSTM used_bytes"] == figures["peak"]["LSTM planned_bytes"]
    said = json.loads(report_json(found))
    assert said["passed"] is True
    assert said["environment"]["torch"] == torch.__version__
    assert len(str(found).splitlines()) == len(said["stages"]) == 9


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_it_does_not_depend_on_whether_gradients_are_enabled(mode: Any) -> None:
    stages = Few(CpuDevice)
    with mode():
        assert [result.outcome for result in stages.only("steps")] == ["passed"]


def test_an_operator_without_a_kernel_is_named() -> None:
    with torch.library._scoped_library("stowagetest", "DEF") as library:
        library.define("nowhere(Tensor x) -> Tensor")
        nowhere = torch.ops.stowagetest.nowhere.default
        assert missing_kernels([nowhere, torch.ops.aten.mm.default, torch.ops.aten.relu.default], "cpu") == [
            "stowagetest.nowhere.default"
        ]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (faults.left_out, "calls are wrong"),
        (faults.moves_a_number, "has other bits"),
        (faults.rounds, "has other bits"),
        (faults.writes_beyond, "writes 1 bytes outside of its results"),
        (faults.draws_more, "draws other random numbers"),
        (faults.draws_less, "draws other random numbers"),
    ],
)
def test_a_call_that_is_not_what_its_operator_is_is_named(fault: faults.Fault, says: str) -> None:
    assert says in failure(with_fault("compute", "launch", fault), "calls")


def test_one_wrong_call_among_hundreds_is_found() -> None:
    wrong = failure(with_fault("compute", "launch", faults.moves_a_number, every=100), "calls")
    assert wrong[: wrong.index(" of")] in ("1", "2", "3", "4")


def test_a_call_that_holds_more_memory_than_its_plan_counts_is_named() -> None:
    plan = planned("attention").plan
    tight = replace(plan, budget_bytes=plan.peak_bytes)
    says = failure(with_fault("", "scratch_bytes", faults.holds_more), "calls", "memory", plan=tight)
    assert "took more memory than planned" in says


@pytest.mark.parametrize("stream", ["swap_in", "swap_out"])
@pytest.mark.parametrize(
    "fault", [faults.left_out, faults.loses_the_last_byte, faults.copies_backwards, faults.copies_a_byte_further]
)
def test_a_copy_that_does_not_arrive_is_found(stream: str, fault: faults.Fault) -> None:
    make = with_fault(stream, "copy", fault)
    with pytest.raises((StowageError, IndexError), match=r"have not arrived|out of range"):
        copy_rates(make, size=1000, repeats=1)


@pytest.mark.parametrize(
    ("stream", "method", "fault"),
    [
        ("swap_in", "copy", faults.left_out),
        ("swap_in", "copy", faults.loses_the_last_byte),
        ("swap_in", "copy", faults.copies_backwards),
        ("swap_out", "copy", faults.left_out),
        ("swap_out", "copy", faults.loses_the_last_byte),
        ("swap_out", "copy", faults.copies_backwards),
        ("compute", "launch", faults.left_out),
        ("compute", "launch", faults.draws_more),
    ],
)
def test_steps_that_are_not_eagers_are_found(stream: str, method: str, fault: faults.Fault) -> None:
    assert failure(with_fault(stream, method, fault, every=7 if stream == "compute" else 1), "steps")


@pytest.mark.parametrize("stream", ["compute", "swap_in"])
def test_a_stream_that_never_waits_is_found(stream: str) -> None:
    assert failure(with_fault(stream, "wait", faults.left_out), "races", step="LSTM")


def test_a_device_that_does_one_thing_at_a_time_is_not_said_to_be_free_of_races() -> None:
    says = failure(faults.one_thing_at_a_time, "races", step="LSTM")
    assert says.startswith("4 of 4 waits that were left out did not show")


def test_more_memory_than_planned_is_found() -> None:
    plan = planned("attention").plan
    stages = Few(CpuDevice)
    assert [result.outcome for result in stages.only("steps")] == ["passed"]
    stages._tested = [replace(planned("attention"), plan=replace(plan, peak_bytes=plan.peak_bytes - 64))]
    (last,) = stages.only("peak")
    assert (last.outcome, "that are planned" in last.summary) == ("failed", True)


def test_the_stage_that_fails_is_the_last() -> None:
    found = Few(with_fault("compute", "launch", faults.moves_a_number)).only(*KINDS)
    assert [result.name for result in found] == ["calls"]
    assert not SelfTestReport("cpu", {}, tuple(found)).passed


def test_a_wait_left_out_may_end_the_use_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    broken: list[bool] = []

    def device(*sizes: int) -> CpuDevice:
        if broken:
            raise RuntimeError("CUDA error: device-side assert triggered")
        return CpuDevice(*sizes)

    monkeypatch.setattr("planner.selftest.stage_checks.DelayedSteps.shows_without", lambda *_: not broken.append(True))
    (result,) = Few(device).only("races")
    assert (result.outcome, result.figures["waits"], result.figures["shown"]) == ("passed", 1, 1)
    assert result.summary.endswith("an error after which this process cannot use the device")


def test_a_gpu_s_kernels_are_chosen_as_if_each_run_must_be_repeated() -> None:
    before = torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic
    seen = lambda _: ("passed", f"{torch.backends.cudnn.benchmark} {torch.backends.cudnn.deterministic}", {})  # noqa: E731
    (result,) = results([("one", 1.0, seen)], Progress())
    assert result.summary == "False True"
    assert (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic) == before


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(StowageError, match='there is no device "gpu" to test; choose "cpu" or "cuda"'):
        planner.selftest("gpu")
    assert [*DEVICES] == ["cpu", "cuda"]
