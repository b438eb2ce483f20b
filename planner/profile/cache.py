"""Cache of measured op times on disk, so that a model is measured once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import platformdirs
import torch

from planner.errors import StowageError
from planner.files import write_text
from planner.guards import environment
from planner.profile.attached_machine import cpu_name
from planner.program import backend_of

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one signature: its duration and its scratch memory in addition to its results."""

    seconds: float
    workspace_bytes: int


@dataclass
class CostCache:
    """Costs by signature, of one processor, torch version and PyTorch's own settings, such as the thread count.

    They do not expire: after a change that none of these shows, such as another clock rate, measure again. A run that
    is much faster than planned drops them, because they were then measured while the computer was busy.

    Args:
        path: of the file, which need not exist.
        costs: by digest of the signature.
    """

    path: Path
    costs: dict[str, Cost] = field(default_factory=dict)

    def __contains__(self, signature: str) -> bool:
        return _digest(signature) in self.costs

    def __getitem__(self, signature: str) -> Cost:
        return self.costs[_digest(signature)]

    def __setitem__(self, signature: str, cost: Cost) -> None:
        self.costs[_digest(signature)] = cost

    def save(self) -> None:
        """Write all costs, together with what another process has written meanwhile.

        Raises:
            StowageError: the disk is full or read-only.
        """
        self.costs = {**_read(self.path), **self.costs}
        self._write()

    def forget(self, signatures: Iterable[str]) -> None:
        """Drop costs, here and on disk, so that they are measured again.

        Raises:
            StowageError: the disk is full or read-only.
        """
        dropped = {_digest(signature) for signature in signatures}
        self.costs = {digest: cost for digest, cost in _read(self.path).items() if digest not in dropped}
        self._write()

    def _write(self) -> None:
        rows = {digest: [cost.seconds, cost.workspace_bytes] for digest, cost in sorted(self.costs.items())}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_text(self.path, json.dumps({"version": _VERSION, "costs": rows}, separators=(",", ":")))
        except (OSError, StowageError) as error:
            cause = error if isinstance(error, OSError) else error.__cause__
            reason = getattr(cause, "strerror", None) or str(error)
            raise StowageError(
                f"cannot keep measured op times in {self.path.parent}: {reason}; "
                "free some space, or set XDG_CACHE_HOME to a folder that can be written"
            ) from error


def open_cache(device: str = "cpu") -> CostCache:
    """The cached costs for this processor, torch version, PyTorch's own settings and the present way of making calls.

    A damaged file counts as empty.

    Args:
        device: the type of device that ops are called on.
    """
    path = cache_path(device)
    return CostCache(path, _read(path))


def cache_path(device: str = "cpu") -> Path:
    """The file of the op times measured here; if it is removed, they are measured again.

    Args:
        device: the type of device that ops are called on.
    """
    backend = backend_of(device)
    environment_key = "|".join(
        (
            *(hashlib.sha256(path.read_bytes()).hexdigest() for path in backend.sources),
            torch.__version__,
            cpu_name(),
            backend.hardware(),
            torch.backends.cpu.get_cpu_capability(),
            str(environment()),
        )
    )
    folder = platformdirs.user_cache_path("stowage", appauthor=False)
    return folder / f"op-times-{hashlib.sha256(environment_key.encode()).hexdigest()[:16]}.json"


def _read(path: Path) -> dict[str, Cost]:
    """The costs in a file, which is parsed again only once it has been written again."""
    try:
        now = path.stat()
    except OSError:
        return {}
    return dict(_parsed(path, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns))


@lru_cache(maxsize=4)
def _parsed(path: Path, *_version: int) -> Mapping[str, Cost]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["version"] != _VERSION:
            return {}
        rows: Mapping[str, tuple[float, int]] = data["costs"]
        costs = {str(key): Cost(float(seconds), int(workspace)) for key, (seconds, workspace) in rows.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return {key: cost for key, cost in costs.items() if cost.seconds >= 0 and cost.workspace_bytes >= 0}


def _digest(signature: str) -> str:
    return hashlib.sha256(signature.encode()).hexdigest()[:24]
