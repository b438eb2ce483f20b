"""Host memory that a GPU copies to and from by itself, of exactly the requested size.

PyTorch's own allocator of pinned memory rounds up to a power of two: 20.4 GiB take 32.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor

from planner.errors import StowageError
from planner.units import format_bytes

_PAGE = 4096
_TOUCHED_BYTES = 2**28  # between two checks for cancellation
_PORTABLE = 1  # pinned for every context of the process


class RegisteredMemory:
    """Pages of this process, pinned by CUDA.

    Args:
        size: bytes; may be 0.
        check_cancelled: called periodically; may raise to abandon this.

    Attributes:
        bytes: `[size]` of uint8; zero at first.

    Raises:
        StowageError: so much is not free, or may not be pinned.
    """

    def __init__(self, size: int, check_cancelled: Callable[[], object]) -> None:
        try:
            pages = np.empty(size + _PAGE, np.uint8)
        except MemoryError as error:
            raise StowageError(f"there is no host memory for {format_bytes(size)}; give a larger budget") from error
        first = -pages.ctypes.data % _PAGE
        self.bytes: Tensor = torch.from_numpy(pages[first : first + size])
        for part in self.bytes.split(_TOUCHED_BYTES):  # type: ignore[no-untyped-call]
            check_cancelled()
            part.zero_()  # makes the pages, in several threads; pinning them in one takes longer
        self._registered = False
        if size:
            check_cancelled()
            runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]
            failed = int(runtime.cudaHostRegister(self.bytes.data_ptr(), size, _PORTABLE))
            if failed:
                _forget_error()
                raise StowageError(
                    f"{format_bytes(size)} of host memory may not be pinned (CUDA's error {failed}); raise the limit "
                    "of ulimit -l, end what else holds memory, or give a larger budget"
                )
            self._registered = True

    def release(self) -> None:
        """Unpin the memory, which no stream uses any more; it is freed with its last view."""
        if self._registered:
            self._registered = False
            runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]
            runtime.cudaHostUnregister(self.bytes.data_ptr())
        self.bytes = torch.empty(0, dtype=torch.uint8)


def _forget_error() -> None:
    """Let PyTorch take the error that CUDA keeps for this thread, which would otherwise fail the next kernel."""
    with suppress(RuntimeError):
        torch.empty(1, device="cuda").fill_(0)
