"""One at a time for what moves PyTorch's default generator, of which the process has one: capturing, measuring, eager.

Each of them puts the generator back, which is of use only if no other run does so in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock

_LOOK_SECONDS = 0.05
_lock = RLock()


@contextmanager
def sole(impatient: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Let no other run touch the default generator during the block.

    Args:
        impatient: asked now and then while another does; it may raise.
    """
    take(impatient)
    try:
        yield
    finally:
        give()


def take(impatient: Callable[[], object] = lambda: None) -> None:
    """Begin such a block, which ends with `give` in the same thread."""
    while not _lock.acquire(timeout=_LOOK_SECONDS):
        impatient()


def give() -> None:
    """End it."""
    _lock.release()
