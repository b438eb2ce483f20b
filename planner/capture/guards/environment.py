"""PyTorch's own settings that the numbers of a step depend on, as they are in the calling thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from planner.capture.guards.values import Same, Value
from planner.capture.torch_private import function_modes, saved_tensors_hooks, user_modes

_MKLDNN: Any = torch.backends.mkldnn
_ATTENTION: Any = torch.backends.cuda
_FILLING: Any = torch.utils.deterministic


def environment() -> tuple[object, ...]:
    """What they are now; costs microseconds."""
    return (
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),  # what a model enters without saying more
        torch.is_autocast_cache_enabled(),
        torch.get_default_dtype(),
        _default_device(),
        torch.get_num_threads(),
        _matmul_precision(),
        torch.are_deterministic_algorithms_enabled(),
        _FILLING.fill_uninitialized_memory,
        _ATTENTION.flash_sdp_enabled(),
        _ATTENTION.mem_efficient_sdp_enabled(),
        _ATTENTION.math_sdp_enabled(),
        _MKLDNN.enabled,
        _MKLDNN.deterministic,
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_anomaly_enabled(),
        _flushes_denormals(),
        tuple(map(Same, (*user_modes(), *saved_tensors_hooks()))),
    )


_NAMES = (
    "autocast", "autocast's dtype", "autocast's cache", "the default dtype", "the default device",
    "the number of threads", "the precision of float32 matrix products", "torch.use_deterministic_algorithms",
    "fill_uninitialized_memory", "flash attention", "memory-efficient attention", "math attention",
    "oneDNN", "oneDNN's determinism", "gradient mode", "inference mode", "the detection of anomalies",
    "the flushing of denormal numbers", "the modes entered",
)  # fmt: skip


def named(now: tuple[object, ...]) -> Mapping[str, Value]:
    """The same by what a user would call them."""
    return {name: Value("setting", value, str(value)) for name, value in zip(_NAMES, now, strict=True)}


def _default_device() -> str:
    """Where new tensors are; PyTorch's own answer takes a hundred microseconds, and is cpu where no mode is entered."""
    return str(torch.get_default_device()) if function_modes() else "cpu"


def _matmul_precision() -> object:
    """Of float32 matrix products; where somebody has used PyTorch's newer names for it, the older one is refused."""
    newer = _MKLDNN.matmul.fp32_precision, _MKLDNN.conv.fp32_precision, _MKLDNN.rnn.fp32_precision
    try:
        return torch.get_float32_matmul_precision(), newer
    except RuntimeError:
        return newer


def _flushes_denormals() -> bool:
    """Whether this thread takes the smallest numbers for zero, which PyTorch can be told and not be asked."""
    return 5e-324 * 1.0 == 0.0
