"""Exchanges over TCP, in the process group of `torch.distributed`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist
from torch import Tensor

from planner.run.workers.communication.transport import PeerLostError

_LONGEST = timedelta(hours=12)  # of an exchange: whoever asked for the step decides how long to wait


class Gloo:
    """The default process group, of all workers.

    Args:
        folder: through which they find each other.
        worker: this worker.
        workers: how many there are.
    """

    def __init__(self, folder: Path, worker: int, workers: int) -> None:
        self._store, self._worker, self._workers = folder / "store", worker, workers
        self._group: dist.ProcessGroup

    def connect(self) -> None:
        """Make the process group; as `Transport.connect`."""
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        dist.init_process_group(
            "gloo", init_method=f"file://{self._store}", rank=self._worker, world_size=self._workers, timeout=_LONGEST
        )
        group = dist.group.WORLD
        assert group is not None
        self._group = group

    def exchange(self, sends: Mapping[int, Tensor], receives: Mapping[int, Tensor]) -> None:
        """Send to workers and receive from them; as `Transport.exchange`."""
        try:
            # sends first: gloo tells a sender of each receive that waits, and those messages take twice the time
            under_way = [self._group.send([part], peer, 0) for peer, part in sends.items() if len(part)]
            under_way += [self._group.recv([into], peer, 0) for peer, into in receives.items() if len(into)]
            for each in reversed(under_way):
                each.wait()
        except RuntimeError as error:
            raise PeerLostError(str(error)) from error
