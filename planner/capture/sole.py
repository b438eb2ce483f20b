"""One at a time for what changes things that a process has once, and puts them back: capturing, measuring, eager.

They are PyTorch's default generator, which eager steps move, and the model, whose tensors a capture replaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock

_LOOK_SECONDS = 0.05
_lock = RLock()


@contextmanager
def sole(impatient: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Let no other capture or run do such a thing during the block.

    Args:
        impatient: asked now and then while another does; it may raise.
    """
    while not _lock.acquire(timeout=_LOOK_SECONDS):
        impatient()
    try:
        yield
    finally:
        _lock.release()
