"""PyTorch's caching allocator, simulated block by block, with the snapshot that it would write.

Blocks are rounded to 512 bytes; the best fit of a pool is split if enough remains; free neighbours are merged; segments
are 2 MiB for blocks up to 1 MiB, 20 MiB for those below 10 MiB, and otherwise rounded up to 2 MiB. It counts what it
holds by itself, so that what is read from its snapshot can be compared with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

KIB, MIB = 2**10, 2**20


@dataclass
class Piece:
    """A block."""

    address: int
    size: int
    state: str = "inactive"
    requested: int = 0
    frames: list[dict[str, Any]] | None = None


@dataclass
class Chunk:
    """A segment."""

    address: int
    size: int
    large: bool
    pieces: list[Piece] = field(default_factory=list)


def frame(filename: str, line: int, name: str = "forward") -> dict[str, Any]:
    return {"filename": filename, "line": line, "name": name}


class Allocator:
    """The allocator of one device."""

    def __init__(self, device: int = 0) -> None:
        self.device = device
        self.chunks: list[Chunk] = []
        self.events: list[dict[str, Any]] = []
        self.allocated, self.requested, self.reserved = 0, 0, 0
        self.levels: list[tuple[int, int, int]] = []  # allocated, requested, reserved after each event
        self._next = 0x7F00_0000_0000

    def alloc(self, requested: int, frames: list[dict[str, Any]] | None = None) -> int:
        """Allocate a block and return its address."""
        size = max(512, -(-requested // 512) * 512)
        large = size > MIB
        fits = [
            (piece.size, piece.address, chunk, piece)
            for chunk in self.chunks
            if chunk.large == large
            for piece in chunk.pieces
            if piece.state == "inactive" and piece.size >= size
        ]
        chunk, piece = min(fits, key=lambda one: one[:2])[2:] if fits else self._segment(size, large)
        left = piece.size - size
        if left >= 512 if not large else left > MIB:
            chunk.pieces.insert(chunk.pieces.index(piece) + 1, Piece(piece.address + size, left))
            piece.size = size
        piece.state, piece.requested, piece.frames = "active_allocated", requested, frames
        self.allocated, self.requested = self.allocated + piece.size, self.requested + requested
        self._event("alloc", piece.address, requested, frames)
        return piece.address

    def free(self, address: int) -> None:
        """Free a block."""
        chunk = next(one for one in self.chunks if one.address <= address < one.address + one.size)
        piece = next(one for one in chunk.pieces if one.address == address)
        self._event("free_requested", address, piece.requested, None)
        self.allocated, self.requested = self.allocated - piece.size, self.requested - piece.requested
        piece.state, piece.frames = "inactive", None
        merged = list[Piece]()
        for one in chunk.pieces:
            if merged and merged[-1].state == one.state == "inactive":
                merged[-1].size += one.size
            else:
                merged.append(one)
        self._event("free_completed", address, piece.requested, None)
        chunk.pieces = merged

    def empty_cache(self) -> None:
        """Give segments back in which nothing is in use."""
        for chunk in [one for one in self.chunks if all(piece.state == "inactive" for piece in one.pieces)]:
            self.chunks.remove(chunk)
            self.reserved -= chunk.size
            self._event("segment_free", chunk.address, chunk.size, None)

    def snapshot(self, last: int | None = None) -> dict[str, Any]:
        """The dict of `torch.cuda.memory._snapshot()`; with `last`, only so many events are left."""
        traces: list[list[dict[str, Any]]] = [[] for _ in range(self.device + 1)]
        traces[self.device] = self.events[-last:] if last else list(self.events)
        settings = {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
                    "expandable_segments": False, "roundup_power2_divisions": {"1": 0}}  # fmt: skip
        return {"segments": [self._described(one) for one in self.chunks], "device_traces": traces,
                "allocator_settings": settings, "external_annotations": []}  # fmt: skip

    def _segment(self, size: int, large: bool) -> tuple[Chunk, Piece]:
        whole = 2 * MIB if not large else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        piece = Piece(self._next, whole)
        self.chunks.append(Chunk(self._next, whole, large, [piece]))
        self._next += whole + 32 * MIB
        self.reserved += whole
        self._event("segment_alloc", piece.address, whole, None)
        return self.chunks[-1], piece

    def _event(self, action: str, address: int, size: int, frames: list[dict[str, Any]] | None) -> None:
        entry: dict[str, Any] = {"action": action, "addr": address, "size": size, "stream": 0,
                                 "time_us": 1_700_000_000_000_000 + len(self.events), "compile_context": "N/A",
                                 "user_metadata": ""}  # fmt: skip
        if frames is not None:
            entry["frames"] = frames
        self.events.append(entry)
        self.levels.append((self.allocated, self.requested, self.reserved))

    def _described(self, chunk: Chunk) -> dict[str, Any]:
        blocks = [
            {"address": piece.address, "size": piece.size, "requested_size": piece.requested, "state": piece.state,
             "frames": piece.frames or []}
            for piece in chunk.pieces
        ]  # fmt: skip
        active = sum(piece.size for piece in chunk.pieces if piece.state != "inactive")
        return {"device": self.device, "address": chunk.address, "total_size": chunk.size, "allocated_size": active,
                "active_size": active, "requested_size": sum(piece.requested for piece in chunk.pieces),
                "stream": 0, "segment_type": "large" if chunk.large else "small", "segment_pool_id": (0, 0),
                "is_expandable": False, "frames": [], "blocks": blocks}  # fmt: skip
