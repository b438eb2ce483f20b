"""Cutting work short: a flag that kernels look at while they run, and an exception between pieces of work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Flag = NDArray[np.int64]


class Stopped(Exception):  # noqa: N818 - nothing went wrong
    """What was begun is not wanted any more; whoever began it is as before and may begin it again."""


def _never() -> bool:
    return False


@dataclass(frozen=True, eq=False)
class Stop:
    """Whether to stop.

    Args:
        asked: called between pieces of work; once it says yes, what is at work stops.

    Attributes:
        flag: `[1]`, 0 until the work is to stop. Kernels that run long look at it now and then and return early; what
            they have filled by then is of no use, so `check` follows every call of one.
    """

    asked: Callable[[], bool] = _never
    flag: Flag = field(default_factory=lambda: np.zeros(1, np.int64))

    def set(self) -> None:
        """Ask to stop."""
        self.flag[0] = 1

    def clear(self) -> None:
        """Let work go on."""
        self.flag[0] = 0

    def check(self) -> None:
        """Go on, unless it was asked to stop.

        Raises:
            Stopped: it was.
        """
        if self.flag[0] or self.asked():
            self.set()  # kernels in other threads stop too
            raise Stopped
