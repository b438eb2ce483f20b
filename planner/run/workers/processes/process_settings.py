"""PyTorch's settings of a whole process that kernels depend on, carried to the processes of workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from planner.guards import flushes_denormals

_MKLDNN: Any = torch.backends.mkldnn
_DETERMINISTIC: Any = torch.utils.deterministic


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """What kernels compute with, beside their arguments: a product of truth values is in the default dtype, for one.

    Args:
        dtype: the default dtype.
        deterministic: whether kernels without a deterministic way are refused, and whether that is a warning alone.
        fills: whether memory is filled before it is written.
        onednn: whether oneDNN is used, and only where it is deterministic.
        float32: oneDNN's precision of float32 in matrix products, convolutions and recurrent layers.
        denormals: whether denormal numbers are flushed to zero.
    """

    dtype: torch.dtype
    deterministic: tuple[bool, bool]
    fills: bool
    onednn: tuple[bool, bool]
    float32: tuple[str, str, str]
    denormals: bool

    @classmethod
    def current(cls) -> ProcessSettings:
        """Those of this process."""
        return cls(
            torch.get_default_dtype(),
            (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
            _DETERMINISTIC.fill_uninitialized_memory,
            (_MKLDNN.enabled, _MKLDNN.deterministic),
            tuple(each.fp32_precision for each in _float32_kernels()),
            flushes_denormals(),
        )

    def apply(self) -> None:
        """Compute by them in this process, and in the threads that it starts from now on."""
        torch.set_default_dtype(self.dtype)
        torch.use_deterministic_algorithms(self.deterministic[0], warn_only=self.deterministic[1])
        _DETERMINISTIC.fill_uninitialized_memory = self.fills
        _MKLDNN.enabled, _MKLDNN.deterministic = self.onednn
        for each, precision in zip(_float32_kernels(), self.float32, strict=True):
            each.fp32_precision = precision
        torch.set_flush_denormal(self.denormals)


def _float32_kernels() -> tuple[Any, Any, Any]:
    return _MKLDNN.matmul, _MKLDNN.conv, _MKLDNN.rnn
