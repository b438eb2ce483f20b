"""The calls of a worker that sends boxes of a storage to others and puts together what it receives."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch

from planner.partition.workers.events.worker_events import WorkerEvents, dense, group, permuted
from planner.partition.workers.tensors.boxes import Box, Exchange, box_elements
from planner.program import ALL_TO_ALL, Layout, members

_ATEN = torch.ops.aten


def exchange(calls: WorkerEvents, storage: int, dtype: torch.dtype, found: Exchange) -> int:
    """Add the calls of one worker's part in an exchange; the storage of what it wants.

    Args:
        calls: of the worker.
        storage: what it has.
        dtype: of the elements.
        found: who sends what to whom.
    """
    me = calls.worker
    peers = members(calls.mesh, calls.place, found.levels)
    have, want = found.have[me], found.want[me]
    sent = [(peer, box) for peer in peers for sender, box in found.received[peer] if sender == me]
    front = _front_digit(found, peers)
    order = (front, *(digit for digit in range(len(have)) if digit != front)) if front >= 0 else tuple(range(len(have)))
    pieces = [permuted(box_view(storage, dtype, have, box), order) for _, box in sent]
    x = _flat(calls, dtype, pieces, front)
    received = found.received[me]
    counts = tuple(_elements(sent, peer) for peer in peers), tuple(_elements(received, peer) for peer in peers)
    y = calls.new((sum(counts[1]),), dtype)
    calls.add(ALL_TO_ALL, (x, calls.token, *counts, group(found.levels)), y)
    back = tuple(order.index(digit) for digit in range(len(order)))
    parts: list[tuple[Box, Layout]] = []
    offset = 0
    for _, box in received:
        shape = tuple(last - first for first, last in box)
        piece = dense(y.storage, tuple(shape[digit] for digit in order), dtype, offset)
        parts.append((box, permuted(piece, back)))
        offset += piece.elements
    kept = tuple((max(a[0], b[0]), min(a[1], b[1])) for a, b in zip(have, want, strict=True))
    if all(first < last for first, last in kept):
        parts.append((kept, box_view(storage, dtype, have, kept)))
    return _assembled(calls, dtype, parts, want)


def box_view(storage: int, dtype: torch.dtype, around: Box, box: Box) -> Layout:
    """A box in a storage that holds all of a larger one."""
    whole = dense(storage, tuple(last - first for first, last in around), dtype)
    offset = sum((a[0] - b[0]) * stride for a, b, stride in zip(box, around, whole.strides, strict=True))
    return whole._replace(shape=tuple(last - first for first, last in box), offset=offset)


def _elements(boxes: Sequence[tuple[int, Box]], peer: int) -> int:
    return sum(box_elements(box) for other, box in boxes if other == peer)


def _front_digit(found: Exchange, peers: Sequence[int]) -> int:
    """The only digit in which boxes differ that one worker sends, which then goes first on the wire; -1 for none."""
    differ: set[int] = set()
    for sender in peers:
        boxes = [box for peer in peers for other, box in found.received[peer] if other == sender]
        differ |= {digit for digit in range(len(found.digits)) if len({box[digit] for box in boxes}) > 1}
    return differ.pop() if len(differ) == 1 else -1


def _flat(calls: WorkerEvents, dtype: torch.dtype, pieces: Sequence[Layout], front: int) -> Layout:
    """Pieces one after another in a flat tensor."""
    elements = sum(piece.elements for piece in pieces)
    if len(pieces) == 1:
        (piece,) = pieces
        if not _is_dense(piece):
            piece = calls.clone(piece)
        return dense(piece.storage, (elements,), dtype, piece.offset)
    if pieces and front >= 0:
        sizes = [sum(piece.shape[0] for piece in pieces), *pieces[0].shape[1:]]
        joined = calls.new(tuple(sizes), dtype)
        calls.add(_ATEN.cat.default, (tuple(pieces), 0), joined)
        return dense(joined.storage, (elements,), dtype)
    flat = calls.empty((elements,), dtype)
    offset = 0
    for piece in pieces:
        calls.copy(piece, dense(flat.storage, piece.shape, dtype, offset))
        offset += piece.elements
    return flat


def _assembled(calls: WorkerEvents, dtype: torch.dtype, parts: list[tuple[Box, Layout]], want: Box) -> int:
    """Boxes that make up another, together in a storage of their own."""
    shape = tuple(last - first for first, last in want)
    parts.sort(key=lambda part: part[0])
    if len(parts) == 1:
        (_, only) = parts[0]
        if _is_dense(only) and calls.storage_bytes[only.storage] == only.bytes:
            return only.storage
        return calls.clone(only).storage
    differ = {digit for digit in range(len(want)) if len({box[digit] for box, _ in parts}) > 1}
    if len(differ) == 1:
        joined = calls.new(shape, dtype)
        calls.add(_ATEN.cat.default, (tuple(layout for _, layout in parts), differ.pop()), joined)
        return joined.storage
    whole = calls.empty(shape, dtype)
    for box, layout in parts:
        calls.copy(layout, box_view(whole.storage, dtype, want, box))
    return whole.storage


def _is_dense(layout: Layout) -> bool:
    step = 1
    for size, stride in zip(reversed(layout.shape), reversed(layout.strides), strict=True):
        if size != 1:
            if stride != step:
                return False
            step *= size
    return step == prod(layout.shape)
