"""The global state lock: serialises capturing, measuring and eager steps, which change process-wide state for a while.

That state is PyTorch's default generator, which eager steps advance, and the model, whose tensors a capture replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock

_LOOK_SECONDS = 0.05
_lock = RLock()


@contextmanager
def global_state_lock(while_waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Hold the global state lock during the block.

    Args:
        while_waiting: called periodically, such as the `check` of a cancel token; may raise to stop waiting.
    """
    while not _lock.acquire(timeout=_LOOK_SECONDS):
        while_waiting()
    try:
        yield
    finally:
        _lock.release()
