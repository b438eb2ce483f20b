"""Temporary memory of a call: what it allocates at once besides the memory it was given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._C._profiler import _ExperimentalConfig

#: The profiler's public face adds up what each op keeps, not what it holds at its worst moment.
_PROFILER: Any = torch.autograd


def temporary_bytes(call: Callable[[], object]) -> int:
    """The most bytes that a call holds at once in memory it allocates itself.

    What it returns is counted too. PyTorch's allocator reports every allocation and release to its profiler; what a
    kernel's library keeps from call to call for itself does not go through it.

    Args:
        call: run once.
    """
    config = _PROFILER.ProfilerConfig(
        _PROFILER.ProfilerState.CPU, False, True, False, False, False, _ExperimentalConfig()
    )
    _PROFILER._enable_profiler_legacy(config)
    try:
        call()
    finally:
        records = _PROFILER._disable_profiler_legacy()
    held = most = 0
    for thread in records:
        for event in thread:
            if event.kind() == "memory_alloc":
                held += event.cpu_memory_usage()
                most = max(most, held)
    return most
