"""Settings of a GPU's kernels belong to what a captured step and a measured time depend on."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from planner.guards import environment
from planner.guards.torch_settings import named


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("enabled", "cuDNN"),
        ("benchmark", "cuDNN's trials of kernels"),
        ("deterministic", "cuDNN's determinism"),
        ("allow_tf32", "the precision of float32 matrix products"),
    ],
)
def test_a_setting_of_cudnn_is_seen(setting: str, name: str) -> None:
    cudnn: Any = torch.backends.cudnn
    before, present = getattr(cudnn, setting), named(environment())
    try:
        setattr(cudnn, setting, not before)
        other = named(environment())
    finally:
        setattr(cudnn, setting, before)
    assert [one for one in present if present[one] != other[one]] == [name]
