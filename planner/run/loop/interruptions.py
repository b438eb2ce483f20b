"""When a step that has begun may be abandoned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from planner.cancel import CancelToken


class Interruptions:
    """Whether to abandon what is being done: not while interruptions are held off.

    Args:
        stop: whether that is asked for.
    """

    def __init__(self, stop: CancelToken) -> None:
        self._stop, self._held = stop, False

    def check(self) -> None:
        """Raise if this is to be abandoned.

        Raises:
            Cancelled: it is.
        """
        if not self._held:
            self._stop.check()

    @contextmanager
    def held_off(self) -> Iterator[None]:
        """Abandon nothing during the block."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
