"""How bytes get from one worker to another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from torch import Tensor


class PeerLostError(RuntimeError):
    """An exchange could not be completed because another worker is gone."""


class Transport(Protocol):
    """Exchanges bytes with other workers; any two call `exchange` for each other in the same order."""

    def connect(self) -> None:
        """Find the other workers, each of which has made its transport and connects now."""

    def exchange(self, sends: Mapping[int, Tensor], receives: Mapping[int, Tensor]) -> None:
        """Send to workers and receive from them, and wait until both are done.

        Args:
            sends: by worker, bytes in one piece, maybe none.
            receives: by the same workers, memory for what each sends.

        Raises:
            PeerLostError: a worker is gone.
        """
