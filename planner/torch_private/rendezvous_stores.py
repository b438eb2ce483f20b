"""The stores through which the processes of a group find each other."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Protocol

from torch import distributed as dist

_DIST: Any = dist  # without types


class Store(Protocol):
    """Values by key, which all processes of a group know."""

    def set(self, key: str, value: str, /) -> None:
        """Tell a value."""

    def get(self, key: str, /) -> bytes:
        """Return a value, once there is one."""

    def check(self, keys: list[str], /) -> bool:
        """Whether these have values."""


def default_store() -> Store:
    """Through which the ranks of the default process group have found each other."""
    store: Store = _DIST.distributed_c10d._get_default_store()
    return store


def tcp_store(host: str, port: int, ranks: int, *, serves: bool, seconds: float) -> Store:
    """The store at an address, which this process may serve to the others."""
    patience = timedelta(seconds=seconds)
    store: Store = _DIST.TCPStore(host, port, ranks, serves, patience, wait_for_workers=False, multi_tenant=True)
    return store


def prefix_store(prefix: str, store: Store) -> Store:
    """A store in a store."""
    inner: Store = _DIST.PrefixStore(prefix, store)
    return inner
