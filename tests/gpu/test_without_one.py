"""Capturing for a GPU that is not there gives the ops that PyTorch would call on one."""

from __future__ import annotations

import torch

from planner.capture.composites.cuda_autocast import CUDA_AUTOCAST
from tests.gpu.program import printed_by

#: Converted to half precision by a GPU's autocast alone: they are made of what both convert.
SMALL = {
    "_convolution", "convolution", "cudnn_convolution", "cudnn_convolution_transpose", "_thnn_fused_lstm_cell",
    "_thnn_fused_gru_cell", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell",
    "_scaled_dot_product_flash_attention",
}  # fmt: skip
#: Whose arguments of several types are converted to the widest, as PyTorch itself does, or rare.
RARE = {
    "addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "index_put", "scatter_add", "tensordot", "norm",
    "frobenius_norm", "nuclear_norm",
}  # fmt: skip


# one test, since another process would print the same for each step
def test_the_calls_are_those_of_an_imitated_gpu_in_their_operators_arguments_and_layouts() -> None:
    found = printed_by("tests.gpu.without_one")
    assert len(found) > 10
    for name, step in found.items():
        assert step["calls"] > 10, name
        assert step["ours"] == step["theirs"] == [], name


def test_what_autocast_converts_on_a_gpu_alone_is_converted() -> None:
    """As PyTorch registers it, also in a build for the CPU."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    alone = {name for name in names if has(name, "AutocastCUDA") and not has(name, "AutocastCPU")}
    known = {target.name() for target in CUDA_AUTOCAST}
    left = {name.removeprefix("aten::").partition(".")[0] for name in alone - known}
    assert left - SMALL - RARE == {"rms_norm"}  # which is a kernel of its own
    ours = {name for name in known if not has(name, "AutocastCUDA")}
    assert all(has(name, "AutocastCPU") for name in ours)
