"""Copies between the arena and the host slab: every byte arrives, and how fast, alone, both ways and beside compute."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import torch
from torch import Tensor

from planner.errors import StowageError
from planner.run import RuntimeDevice

_BYTES = 2**24
_REPEATS = 5
_SIDE = 512  # of the matrices multiplied meanwhile

MakeDevice = Callable[[int, int], RuntimeDevice]


def copy_rates(make_device: MakeDevice, size: int = _BYTES, repeats: int = _REPEATS) -> dict[str, float]:
    """Bytes per second of copies: in, out, both at once in each direction, and both beside matrix products.

    Args:
        make_device: makes a device of so many bytes in its arena and in its host slab.
        size: bytes of a copy.
        repeats: number of measurements, after one that does not count; the median is taken.

    Raises:
        StowageError: a byte has not arrived, or has changed what it was not copied to.
    """
    device = make_device(2 * size, 2 * size)
    try:
        with torch.inference_mode():
            return _SlabHalves(device, size).rates(repeats)
    finally:
        device.close()


class _SlabHalves:
    """Halves of the two slabs: copies in end in the first half of the arena, copies out begin in its second."""

    def __init__(self, device: RuntimeDevice, size: int) -> None:
        self._device, self._size = device, size
        self._here = device.arena[:size], device.arena[size:]
        self._there = device.host[:size], device.host[size:]
        matrices = torch.ones(3, _SIDE, _SIDE, device=device.arena.device)
        self._factor, self._other, self._product = matrices

    def rates(self, repeats: int) -> dict[str, float]:
        kinds = {
            "in": (True, False, False), "out": (False, True, False), "both": (True, True, False),
            "computing": (True, True, True),
        }  # fmt: skip
        found: dict[str, float] = {}
        for name, (comes, goes, computes) in kinds.items():
            seconds = [self._seconds(comes, goes, computes, number) for number in range(repeats + 1)][1:]
            if comes:
                key = "in" if name == "in" else f"in_{name}"
                found[f"{key}_bytes_per_second"] = self._size / median(each[0] for each in seconds)
            if goes:
                key = "out" if name == "out" else f"out_{name}"
                found[f"{key}_bytes_per_second"] = self._size / median(each[1] for each in seconds)
        return found

    def _seconds(self, comes: bool, goes: bool, computes: bool, number: int) -> tuple[float, float]:
        """Make a copy in, a copy out or both, and check every byte of all four halves; seconds of each."""
        device = self._device
        for place, half in enumerate((*self._here, *self._there)):
            _fill(half, 7 * number + place)
        before = [half.clone() for half in (*self._here, *self._there)]
        start = device.begin()
        if computes:
            for _ in range(4):
                device.compute.launch(torch.mm, (self._factor, self._other), {"out": self._product})
        if comes:
            device.swap_in.copy(self._here[0], self._there[0])
        if goes:
            device.swap_out.copy(self._there[1], self._here[1])
        device.synchronize()
        outs, ins = device.copy_seconds(start)
        wanted = [before[2] if comes else before[0], before[1], before[2], before[1] if goes else before[3]]
        for half, value in zip((*self._here, *self._there), wanted, strict=True):
            if not torch.equal(half.cpu(), value.cpu()):
                raise StowageError("bytes that were copied have not arrived, or others have changed")
        return (ins[0][1] - ins[0][0] if comes else 0.0), (outs[0][1] - outs[0][0] if goes else 0.0)


def _fill(half: Tensor, number: int) -> None:
    """Bytes that differ from place to place and from one number to the next."""
    pattern = torch.arange(number, number + 251, dtype=torch.int64).remainder(251).to(torch.uint8)
    repeated = pattern.repeat(-(-len(half) // len(pattern)))[: len(half)]
    half.copy_(repeated)
