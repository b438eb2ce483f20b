"""Lanes: the queues of work that run side by side, each in order on one stream of one device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Lane:
    """One stream of a device.

    Args:
        device: number of the device.
        kind: what its entries are; see `planner.plan.schema.swap_plan.ENTRIES`.
        index: number of the lane among those of its kind on the device.
    """

    device: int
    kind: str
    index: int

    def fields(self) -> dict[str, Any]:
        """The fields by name."""
        return {"device": self.device, "kind": self.kind, "index": self.index}

    @property
    def words(self) -> str:
        """The lane in words."""
        beside = f" {self.index}" if self.index else ""
        return f"{self.kind.replace('_', '-')}{beside} of device {self.device}"


#: The lanes that every plan has: ops, copies to the host and copies to the device.
COMPUTE, SWAP_OUT, SWAP_IN = Lane(0, "compute", 0), Lane(0, "swap_out", 0), Lane(0, "swap_in", 0)
#: Collectives that run beside the ops; a plan has this lane if it has any.
COMMUNICATION = Lane(0, "communication", 0)
