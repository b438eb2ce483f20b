"""What can be known of plans for a GPU without one: that every call is made there, into the place that the plan has."""

from __future__ import annotations

import re

import pytest
import torch

from planner.program import Call, backend_of, bind
from tests.gpu.binding import RESERVE
from tests.gpu.kernel_table import table
from tests.gpu.program import printed_by
from tests.gpu.steps import REFUSED, STEPS

WHY = {
    "made on the host": "aten.arange.default.* makes a tensor on the host in a step for the GPU: make it where",
    "a number on the host": "aten.mul.Tensor.* computes with a tensor on the host in a step for the GPU",
    "drawn on the host": "aten.randn.default.* makes a tensor on the host in a step for the GPU",
    "attention with dropout": "efficient_attention.* with dropout hands what it drew to its backward pass",
    "a recurrent layer": "aten._cudnn_rnn.default is how nn.LSTM.* under torch.backends.cudnn.flags",
    "a recurrent layer's weights": "aten.set_.source_Storage is how nn.LSTM",
}


# one test, since another process would print the same for each
def test_every_call_is_made_on_the_gpu_with_a_kernel_and_what_cannot_be_is_refused() -> None:
    found = printed_by("tests.gpu.binding")
    assert [*found["steps"]] == [*STEPS]
    for name, step in found["steps"].items():
        assert step["faults"] == [], name
        assert [*step["devices"]] == ["cuda:0"], name
        assert sum(step["forms"].values()) == step["calls"], name
    # dropout of a GPU draws from the run's generator in the place of the default one
    assert found["steps"]["gpt:layers=2,dropout=0.1"]["forms"]["_run_drawing"] == 6
    assert found["steps"]["dropout in a checkpoint"]["forms"]["_run_drawing"] == 2
    # what a forward pass keeps for its backward pass has its place, and is no index
    assert found["kept"] == {
        "fused attention": {"bytes": [16, 8, 8, 8, 8, 8], "unmeasured": []},
        "cuDNN's batch norm": {"bytes": [RESERVE], "unmeasured": []},
    }
    assert [*found["refusals"]] == [*REFUSED] == [*WHY]
    for name, why in WHY.items():
        assert re.search(why, found["refusals"][name]), name
    listed = table(".".join(torch.__version__.split(".")[:2]))
    if not listed.exists():
        pytest.skip(
            f"no table of CUDA kernels was made for torch {torch.__version__}; run tests.gpu.kernel_table by it"
        )
    missing = set(listed.read_text(encoding="utf-8").split())
    assert "aten._scaled_dot_product_flash_attention_for_cpu.default" in missing
    for name, step in found["steps"].items():
        assert missing.isdisjoint(step["operators"]), name


def test_what_attention_leaves_on_the_host_is_not_copied() -> None:
    attention = torch.ops.aten._scaled_dot_product_efficient_attention.default
    places = [torch.empty((), device="meta") for _ in range(4)]
    bound = bind(backend_of("cuda"), Call(attention, (), {}, (0, 1, 2, 3), False), (), {}, places)
    assert [place is None for place in bound.args[3]] == [False, False, True, True]
