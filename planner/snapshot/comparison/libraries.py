"""Memory that CUDA's libraries work in, which no op of a graph asks for."""

from __future__ import annotations

import re

from planner.snapshot.tables import StackFrame

#: What cuBLAS gets from PyTorch for each handle and stream, and keeps: `:4096:2:16:8`, and 32 MiB from Hopper on
#: (`aten/src/ATen/cuda/CublasHandlePool.cpp`).
CUBLAS_WORKSPACES = frozenset({(2 * 4096 + 8 * 16) * 2**10, 32 * 2**20})
_LIBRARY = re.compile(r"cu(blas|dnn|fft|solver|sparse|rand)|nccl|workspace", re.IGNORECASE)


class LibraryBlocks:
    """Recognises the blocks of libraries among those that no storage was predicted for.

    The calls of C++ on a stack say so where they were recorded. Otherwise the first block of the size of a workspace of
    cuBLAS is taken for one if it is never freed: the first matrix product allocates it, in whatever line that is.
    """

    def __init__(self) -> None:
        self._left = set(CUBLAS_WORKSPACES)

    def take(self, stack: tuple[StackFrame, ...], requested: int, kept: bool) -> bool:
        """Whether a block is a library's.

        Args:
            stack: where it was allocated, innermost first.
            requested: its bytes.
            kept: whether it is never freed.
        """
        if any(_LIBRARY.search(frame.function) for frame in stack if not frame.filename.endswith(".py")):
            return True
        if kept and requested in self._left:
            self._left.discard(requested)
            return True
        return False
