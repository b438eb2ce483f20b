"""A run on a GPU, where the CPU stands in for one: everything but a GPU's kernels and streams."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What `tests.gpu.running` prints."""
    command = [sys.executable, "-m", "tests.gpu.running"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr[-3000:]
    printed: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return printed


@pytest.mark.parametrize("name", ["mlp", "convolutions", "lstm", "gpt", "dropping"])
def test_a_run_has_eagers_bits_and_unpins_its_memory(found: dict[str, Any], name: str) -> None:
    made = found["runs"][name]
    assert (made["device"], made["checked"], made["mismatches"]) == ("cuda", "every step", [])
    assert made["compared"] > 20
    assert made["swaps"] > 0
    assert made["peak"]
    assert made["pinned"] == 0


@pytest.mark.parametrize("name", ["convolutions", "dropping"])
def test_a_loop_leaves_eagers_bits_in_the_model_on_the_host(found: dict[str, Any], name: str) -> None:
    assert found["loops"][name] == {"losses": True, "drawn": True, "different": [], "devices": ["cpu"]}


def test_steps_are_written_back_together_once_the_run_ends(found: dict[str, Any]) -> None:
    assert found["late"]["different"] == []


def test_a_step_that_fails_says_which_step_the_model_is_left_after(found: dict[str, Any]) -> None:
    assert "out of memory" in found["late"]["told"]
    assert found["late"]["told"].endswith(
        "; the model is as it was after step 0, as steps on a GPU are written back together"
    )
    assert found["late"]["changed"] == []


def test_the_calling_thread_is_left_in_its_own_stream_also_by_a_run_that_fails(found: dict[str, Any]) -> None:
    assert found["left in the caller's stream"]


def test_memory_that_may_not_be_pinned_is_refused(found: dict[str, Any]) -> None:
    assert "of host memory may not be pinned (CUDA's error 2); raise the limit of ulimit -l" in found["not pinned"]


def test_a_link_cannot_be_imitated_beside_a_real_one(found: dict[str, Any]) -> None:
    assert found["link"] == "a GPU copies at the pace of its own link: leave link_bandwidth out"


def test_the_self_test_s_stages_pass(found: dict[str, Any]) -> None:
    kinds = ["kernels", "calls", "memory", "copies", "steps", "peak"]
    assert [(name, outcome) for name, outcome, _ in found["stages"]] == [(kind, "passed") for kind in kinds]
