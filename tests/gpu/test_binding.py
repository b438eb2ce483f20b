"""What can be known of plans for a GPU without one: that every call is made there, into the place that the plan has."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest
import torch

from planner.errors import StowageError
from planner.program.out_variants import _run_and_copy
from tests.gpu.binding import RESERVE
from tests.gpu.kernel_table import table
from tests.gpu.steps import REFUSED, STEPS


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """What `tests.gpu.binding` prints."""
    command = [sys.executable, "-m", "tests.gpu.binding"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, ended.stderr[-3000:]
    printed: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return printed


@pytest.mark.parametrize("name", STEPS)
def test_every_call_is_made_on_the_gpu_and_resizes_nothing(found: dict[str, Any], name: str) -> None:
    step = found["steps"][name]
    assert step["faults"] == []
    assert [*step["devices"]] == ["cuda:0"]
    assert sum(step["forms"].values()) == step["calls"]


@pytest.mark.parametrize("name", STEPS)
def test_pytorch_has_a_kernel_for_every_operator(found: dict[str, Any], name: str) -> None:
    listed = table(".".join(torch.__version__.split(".")[:2]))
    if not listed.exists():
        pytest.skip(
            f"no table of CUDA kernels was made for torch {torch.__version__}: run tests.gpu.kernel_table there"
        )
    missing = set(listed.read_text(encoding="utf-8").split())
    assert "aten._scaled_dot_product_flash_attention_for_cpu.default" in missing
    assert missing.isdisjoint(found["steps"][name]["operators"])


def test_what_a_forward_pass_keeps_has_its_place_and_is_no_index(found: dict[str, Any]) -> None:
    assert found["kept"] == {
        "fused attention": {"bytes": [16, 8, 8, 8, 8, 8], "unmeasured": []},
        "cuDNN's batch norm": {"bytes": [RESERVE], "unmeasured": []},
    }


def test_what_attention_leaves_on_the_host_is_not_copied() -> None:
    place = torch.empty((), dtype=torch.int64, device="meta")
    _run_and_copy(lambda: torch.empty((), dtype=torch.uint8), (), {}, (place,))
    with pytest.raises(StowageError, match=r"torch\.uint8 and was captured as torch\.int64"):
        _run_and_copy(lambda: torch.empty((), dtype=torch.uint8, device="meta"), (), {}, (place,))


def test_dropout_of_a_gpu_draws_from_the_run_s_generator_in_the_place_of_the_default_one(found: dict[str, Any]) -> None:
    assert found["steps"]["gpt:dropout=0.1"]["forms"]["_run_drawing"] == 12


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("made on the host", "aten.arange.default.* makes a tensor on the host in a step for the GPU: make it where"),
        ("a number on the host", "aten.mul.Tensor.* computes with a tensor on the host in a step for the GPU"),
        ("drawn on the host", "aten.randn.default.* makes a tensor on the host in a step for the GPU"),
        ("a recurrent layer", "aten._cudnn_rnn.default is how nn.LSTM.* under torch.backends.cudnn.flags"),
        ("a recurrent layer's weights", "aten.set_.source_Storage is how nn.LSTM"),
        ("dropout in a checkpoint", "aten.native_dropout.default .* after the generator was seeded or set back"),
        ("attention with dropout", "efficient_attention.* with dropout hands what it drew to its backward pass"),
    ],
)
def test_what_a_plan_for_a_gpu_cannot_hold_is_refused(found: dict[str, Any], name: str, why: str) -> None:
    assert [*found["refusals"]] == [*REFUSED]
    assert re.search(why, found["refusals"][name]), found["refusals"][name]
