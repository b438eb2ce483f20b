"""Parts of storages that are stored in chunks across which they lie: brought to workers, and written back."""

from __future__ import annotations

from planner.partition.tdl import Range
from planner.partition.workers.events.worker_events import WorkerEvents, dense
from planner.partition.workers.tensors.boxes import Box, Digits, boxes_of, digits_of, exchange_of
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


def fetch_overlaps(calls: WorkerEvents, layout: Layout, stored: int, held: Spread, want: Spread) -> int | None:
    """Bring what workers' chunks have of a part of a storage to a spread of the part's rows; the storage of these.

    Args:
        calls: of the worker.
        layout: the part, in the storage as it is on a single device.
        stored: where the worker has the storage.
        held: how that is spread.
        want: how the part's rows are to be.

    Returns:
        None if what a chunk has is no range of each dimension, or such ranges and the spread divide it in two ways.
    """
    overlaps = [overlap_of(layout, chunks(held, calls.mesh, place)) for place in places(calls.mesh)]
    known = [overlap for overlap in overlaps if overlap is not None]
    cuts = _cuts(layout, known)
    digits = digits_of(layout.elements, want, tuple(cuts.values()))
    if len(known) < len(overlaps) or digits is None or not set(cuts.values()) <= set(digits):
        return None
    wanted = boxes_of(digits, want, calls.mesh)
    have = _boxes(digits, known, cuts)
    found = None if wanted is None else exchange_of(digits, have, wanted, calls.mesh, tuple(range(len(calls.mesh))))
    if found is None or wanted is None:
        return None
    mine = known[calls.worker]
    if mine.empty:
        part = calls.empty((0,), layout.dtype).storage
    else:
        part = calls.clone(mine.layout._replace(storage=stored)).storage
    if found.elements:
        return exchange(calls, part, layout.dtype, found)
    return calls.clone(box_view(part, layout.dtype, have[calls.worker], wanted[calls.worker])).storage


def _cuts(layout: Layout, overlaps: list[Overlap]) -> dict[int, Cut]:
    """By dimension of a part of which workers' chunks have ranges, these as a digit of its rows."""
    rows = dense(0, layout.shape, layout.dtype)
    dimensions = {dimension for overlap in overlaps for dimension in overlap.ranges if layout.shape[dimension] > 1}
    return {dimension: Cut(rows.strides[dimension], rows.shape[dimension]) for dimension in dimensions}


def _boxes(digits: Digits, overlaps: list[Overlap], cuts: dict[int, Cut]) -> tuple[Box, ...]:
    """Per worker, what its chunk has of a part's rows."""
    by_digit = {digits.index(cut): dimension for dimension, cut in cuts.items()}
    found: list[Box] = []
    for overlap in overlaps:
        box: list[Range] = [(0, digit.size) for digit in digits]
        for place, dimension in by_digit.items():
            box[place] = overlap.ranges.get(dimension, box[place])
        found.append(tuple((0, 0) for _ in box) if overlap.empty else tuple(box))
    return tuple(found)


def _write_overlap(
    calls: WorkerEvents, part: int, spread: Spread, layout: Layout, stored: int, overlaps: list[Overlap]
) -> None:
    """Every worker receives the rows that it stores, and writes them there."""
    rows, mesh = dense(0, layout.shape, layout.dtype), calls.mesh
    apart: Spread = tuple(Whole.EVERYWHERE if level is Whole.SUMMED else level for level in spread)
    part = redistribute(calls, part, layout.dtype, rows.elements, spread, apart)
    cuts = _cuts(layout, overlaps)
    digits = digits_of(rows.elements, apart, tuple(cuts.values()))
    have = None if digits is None or not set(cuts.values()) <= set(digits) else boxes_of(digits, apart, mesh)
    if have is None:
        whole: Spread = (Whole.EVERYWHERE,) * len(spread)
        part = redistribute(calls, part, layout.dtype, rows.elements, apart, whole)
        digits = digits_of(rows.elements, tuple(cuts.values()))
        have = None if digits is None else boxes_of(digits, whole, mesh)
    assert digits is not None
    assert have is not None
    want = _boxes(digits, overlaps, cuts)
    found = exchange_of(digits, have, want, mesh, tuple(range(len(mesh))))
    assert found is not None
    mine = overlaps[calls.worker]
    if found.elements:
        part = exchange(calls, part, layout.dtype, found)
    elif not mine.empty:
        part = calls.clone(box_view(part, layout.dtype, have[calls.worker], want[calls.worker])).storage
    if not mine.empty:
        calls.copy(dense(part, mine.layout.shape, layout.dtype), mine.layout._replace(storage=stored))
