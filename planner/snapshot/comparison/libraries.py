"""Memory that CUDA's libraries work in, which no op of a graph asks for."""

from __future__ import annotations

import re

from planner.snapshot.tables import StackFrame

#: What cuBLAS gets from PyTorch for each handle and stream, and keeps: `:4096:2:16:8`, and 32 MiB from Hopper on
#: (`aten/src/ATen/cuda/CublasHandlePool.cpp`).
CUBLAS_WORKSPACES = frozenset({(2 * 4096 + 8 * 16) * 2**10, 32 * 2**20})
_LIBRARY = re.compile(r"cu(blas|dnn|fft|solver|sparse|rand)|nccl|workspace", re.IGNORECASE)


def is_library(stack: tuple[StackFrame, ...], requested: int) -> bool:
    """Whether a block without a user's line is a library's: its innermost calls say so, or else its size.

    Args:
        stack: where it was allocated, innermost first; C++ is in it only if it was recorded.
        requested: its bytes.
    """
    return requested in CUBLAS_WORKSPACES or any(_LIBRARY.search(frame.function) for frame in stack[:12])
