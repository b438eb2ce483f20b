"""A graph is captured for a device, says for which, and runs on no other."""

from __future__ import annotations

import pickle
from contextlib import closing
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import planner
from planner.capture import capture
from planner.capture.fakes.fakes import check_devices
from planner.errors import StowageError
from planner.graph import fingerprint, from_json, to_json
from planner.run import CpuDevice, Executor, run
from tests.run.plans import resident_plan
from tests.run.steps import branches, mlp


def test_a_graph_says_for_which_device_it_was_captured_also_in_a_file() -> None:
    step = branches()
    graph = capture(step)
    assert graph.device == "cpu"
    assert capture(step, device="cpu") is graph
    assert graph.with_workspaces({}).device == "cpu"
    other = replace(graph, device="cuda", program=None)
    assert from_json(to_json(other)).device == "cuda"
    assert pickle.loads(pickle.dumps(other)).device == "cuda"
    assert fingerprint(other) == fingerprint(graph)


@pytest.mark.parametrize("device", ["tpu", "CPU", "", 7, None])
def test_a_device_without_a_backend_is_refused_and_the_step_can_still_be_captured(device: str) -> None:
    step = branches()
    with pytest.raises(StowageError, match=r'cannot be captured for device .*; choose "cpu" or "cuda"'):
        capture(step, device=device)
    assert capture(step).ops


def test_a_graph_captured_for_another_device_does_not_run() -> None:
    graph = replace(capture(mlp()), device="cuda")
    plan = resident_plan(graph)
    refused = pytest.raises(StowageError, match=r'captured for cuda and cannot run on cpu.*capture it .*device="cpu"')
    with closing(CpuDevice(plan.peak_bytes, plan.host_bytes)) as device, refused:
        Executor(graph, plan, device)


def test_running_on_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(StowageError, match=r'no device "tpu" to run on; choose "cpu" or "cuda"'):
        run(mlp(), device="tpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what is missing where no CUDA GPU is attached")
def test_a_gpu_that_is_not_attached_is_missed_in_a_sentence() -> None:
    missing = r"here, because (this PyTorch is built for the CPU alone|PyTorch finds no CUDA GPU)"
    with pytest.raises(StowageError, match=f"cannot be run on cuda {missing}"):
        run(mlp(), device="cuda")
    with pytest.raises(StowageError, match=f"nothing to test on cuda {missing}"):
        planner.selftest("cuda")


def test_a_model_on_another_gpu_than_the_current_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeTensorMode():
        model, batch = nn.Module(), torch.empty(2, device="cuda:0")
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    check_devices(model, batch, "cuda", given=True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    with pytest.raises(StowageError, match=r"on cuda:0 and the current GPU is cuda:1, .* torch.cuda.set_device first"):
        check_devices(model, batch, "cuda", given=True)
