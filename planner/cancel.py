"""Cancellation: a flag that kernels poll while they run, and an exception raised between pieces of work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Flag = NDArray[np.int64]


class Cancelled(Exception):  # noqa: N818 - nothing went wrong
    """The work was cancelled; its caller's state is unchanged and it may be started again."""


def _never() -> bool:
    return False


@dataclass(frozen=True, eq=False)
class CancelToken:
    """Tells running work whether to stop.

    Args:
        asked: called between pieces of work; the work stops once it returns True.

    Attributes:
        flag: `[1]`, 0 until the work is to stop. Long-running kernels poll it and return early; their outputs are then
            incomplete, so `check` follows every call of such a kernel.
    """

    asked: Callable[[], bool] = _never
    flag: Flag = field(default_factory=lambda: np.zeros(1, np.int64))

    def set(self) -> None:
        """Request cancellation."""
        self.flag[0] = 1

    def clear(self) -> None:
        """Withdraw the request."""
        self.flag[0] = 0

    def check(self) -> None:
        """Raise if cancellation was requested.

        Raises:
            Cancelled: it was requested.
        """
        if self.flag[0] or self.asked():
            self.set()  # kernels in other threads stop too
            raise Cancelled
