"""PyTorch's settings that the numbers of a step depend on, as seen by the calling thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from planner.guards.comparison_keys import SameObject, Value
from planner.torch_private import autocast_settings, default_device, saved_tensors_hooks, user_modes

_MKLDNN: Any = torch.backends.mkldnn
_ATTENTION: Any = torch.backends.cuda
_CUDNN: Any = torch.backends.cudnn
_DETERMINISTIC: Any = torch.utils.deterministic


def environment() -> tuple[object, ...]:
    """The current settings; takes microseconds."""
    return (
        *(value for setting in autocast_settings() for value in setting),
        torch.is_autocast_cache_enabled(),
        torch.get_default_dtype(),
        default_device(),
        torch.get_num_threads(),
        _matmul_precision(),
        torch.are_deterministic_algorithms_enabled(),
        _DETERMINISTIC.fill_uninitialized_memory,
        _ATTENTION.flash_sdp_enabled(),
        _ATTENTION.mem_efficient_sdp_enabled(),
        _ATTENTION.math_sdp_enabled(),
        _ATTENTION.cudnn_sdp_enabled(),
        _CUDNN.enabled,
        _CUDNN.benchmark,
        _CUDNN.deterministic,
        _MKLDNN.enabled,
        _MKLDNN.deterministic,
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_anomaly_enabled(),
        flushes_denormals(),
        tuple(map(SameObject, (*user_modes(), *saved_tensors_hooks()))),
    )


_NAMES = (
    "autocast", "autocast's dtype", "autocast on CUDA", "its dtype on CUDA", "autocast's cache", "the default dtype",
    "the default device", "the number of threads", "the precision of float32 matrix products",
    "torch.use_deterministic_algorithms", "fill_uninitialized_memory", "flash attention", "memory-efficient attention",
    "math attention", "cuDNN's attention", "cuDNN", "cuDNN's trials of kernels", "cuDNN's determinism", "oneDNN",
    "oneDNN's determinism", "gradient mode", "inference mode", "the detection of anomalies",
    "the flushing of denormal numbers", "the modes entered",
)  # fmt: skip


def named(values: tuple[object, ...]) -> Mapping[str, Value]:
    """The settings by the names that a user would use."""
    return {name: Value("setting", value, str(value)) for name, value in zip(_NAMES, values, strict=True)}


def _matmul_precision() -> object:
    """The precision of float32 matrix products; once PyTorch's newer settings for it are used, the older one raises."""
    by_backend = tuple(
        part.fp32_precision
        for part in (_MKLDNN.matmul, _MKLDNN.conv, _MKLDNN.rnn, _ATTENTION.matmul, _CUDNN.conv, _CUDNN.rnn)
    )
    try:
        return torch.get_float32_matmul_precision(), by_backend
    except RuntimeError:
        return by_backend


def flushes_denormals() -> bool:
    """Whether this thread flushes denormal numbers to zero, a setting that PyTorch can set but not query."""
    return 5e-324 * 1.0 == 0.0
