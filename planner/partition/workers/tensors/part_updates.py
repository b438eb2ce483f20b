"""Writing what workers have of a part of a storage to where each of them stores it."""

from __future__ import annotations

from planner.partition.tdl import Range
from planner.partition.workers.events.worker_events import WorkerEvents, dense
from planner.partition.workers.tensors.boxes import Box, boxes_of, digits_of, exchange_of
from planner.partition.workers.tensors.exchange import box_view, exchange
from planner.partition.workers.tensors.redistribute import redistribute
from planner.partition.workers.tensors.spreads import Cut, Overlap, Spread, Whole, chunks, overlap_of
from planner.program import Layout, places


def write_part(calls: WorkerEvents, part: int, spread: Spread, layout: Layout, stored: int, held: Spread) -> None:
    """Bring a part of a storage from the rows of its own in which it was computed to where it is stored.

    Args:
        calls: of the worker.
        part: the storage of the rows that the worker has.
        spread: of the rows.
        layout: the part, in the storage as it is on a single device.
        stored: where the worker has the storage.
        held: how that is spread.
    """
    overlaps = [overlap_of(layout, chunks(held, calls.mesh, place)) for place in places(calls.mesh)]
    known = [overlap for overlap in overlaps if overlap is not None]
    if len(known) == len(overlaps):
        _write_overlap(calls, part, spread, layout, stored, known)
        return
    whole: Spread = (Whole.EVERYWHERE,) * len(spread)
    elements = calls.storage_bytes[stored] // layout.dtype.itemsize
    for cut, (first, last) in chunks(held, calls.mesh, calls.place).items():
        elements = elements // (last - first) * cut.size
    everything = redistribute(calls, stored, layout.dtype, elements, held, whole)
    rows = redistribute(calls, part, layout.dtype, layout.elements, spread, whole)
    calls.copy(dense(rows, layout.shape, layout.dtype), layout._replace(storage=everything))
    own = redistribute(calls, everything, layout.dtype, elements, whole, held)
    mine = (calls.storage_bytes[stored] // layout.dtype.itemsize,)
    calls.copy(dense(own, mine, layout.dtype), dense(stored, mine, layout.dtype))


def _write_overlap(
    calls: WorkerEvents, part: int, spread: Spread, layout: Layout, stored: int, overlaps: list[Overlap]
) -> None:
    """Every worker receives the rows that it stores, and writes them there."""
    rows, mesh = dense(0, layout.shape, layout.dtype), calls.mesh
    apart: Spread = tuple(Whole.EVERYWHERE if level is Whole.SUMMED else level for level in spread)
    part = redistribute(calls, part, layout.dtype, rows.elements, spread, apart)
    dimensions = {dimension for overlap in overlaps for dimension in overlap.ranges if layout.shape[dimension] > 1}
    cuts = {dimension: Cut(rows.strides[dimension], rows.shape[dimension]) for dimension in dimensions}
    digits = digits_of(rows.elements, apart, tuple(cuts.values()))
    have = None if digits is None or not set(cuts.values()) <= set(digits) else boxes_of(digits, apart, mesh)
    if have is None:
        whole: Spread = (Whole.EVERYWHERE,) * len(spread)
        part = redistribute(calls, part, layout.dtype, rows.elements, apart, whole)
        digits = digits_of(rows.elements, tuple(cuts.values()))
        have = None if digits is None else boxes_of(digits, whole, mesh)
    assert digits is not None
    assert have is not None
    by_digit = {digits.index(cut): dimension for dimension, cut in cuts.items()}
    want: list[Box] = []
    for overlap in overlaps:
        box: list[Range] = [(0, digit.size) for digit in digits]
        for place, dimension in by_digit.items():
            box[place] = overlap.ranges.get(dimension, box[place])
        want.append(tuple((0, 0) for _ in box) if overlap.empty else tuple(box))
    found = exchange_of(digits, have, tuple(want), mesh, tuple(range(len(mesh))))
    assert found is not None
    mine = overlaps[calls.worker]
    if found.elements:
        part = exchange(calls, part, layout.dtype, found)
    elif not mine.empty:
        part = calls.clone(box_view(part, layout.dtype, have[calls.worker], want[calls.worker])).storage
    if not mine.empty:
        calls.copy(dense(part, mine.layout.shape, layout.dtype), mine.layout._replace(storage=stored))
