"""How large blocks were that are gone: the allocator does not split off what is too small to be of use."""

from __future__ import annotations

from bisect import bisect_right, insort

import numpy as np

from planner.snapshot.tables import ACTIONS, Action, Ints, MemoryEvents, MemorySegments

#: Blocks up to this size have segments of their own and are always split; of larger ones no more than this is left on.
_SMALL = 2**20
_MADE, _FREED = ACTIONS.index(Action.SEGMENT_ALLOC), ACTIONS.index(Action.SEGMENT_FREE)


def unsplit_sizes(
    events: MemoryEvents, segments: MemorySegments, address: Ints, size: Ints, start: Ints, end: Ints
) -> Ints:
    """Bytes of each block with what was not split off, `[allocations]`.

    A block begins where free memory does, which reaches to the next block in use or the end of the segment. Of a block
    above 1 MiB, PyTorch splits off the rest if that is more than 1 MiB (`should_split` of CUDACachingAllocator.cpp).
    Those that were allocated before the trace, or whose segment is expandable, are only rounded up.

    Args:
        events, segments: of the snapshot.
        address, size, start, end: `[allocations]` as `Allocations` has them, the size rounded up to 512 bytes.
    """
    exact = size.copy()
    large = np.flatnonzero(size > _SMALL)
    moments = [(int(start[one]), 1, one) for one in large.tolist()]
    moments += [(int(end[one]), 0, one) for one in large.tolist() if end[one] < len(events)]
    of_segments = events.where(Action.SEGMENT_ALLOC, Action.SEGMENT_FREE).tolist()
    moments += [(event, 2, event) for event in of_segments]
    fixed = np.flatnonzero(~segments.expandable)
    ends = dict(zip(segments.address[fixed].tolist(), (segments.address + segments.bytes)[fixed].tolist(), strict=True))
    for event in reversed(of_segments):  # back to what there was before the trace
        where = int(events.address[event])
        if events.action[event] == _FREED:
            ends[where] = where + int(events.bytes[event])
        else:
            ends.pop(where, None)
    starts, in_use = sorted(ends), list[int]()
    for at, what, one in sorted(moments):
        where = int((events.address if what == 2 else address)[one])
        if what == 2 and events.action[one] == _MADE:
            if where not in ends:
                insort(starts, where)
            ends[where] = where + int(events.bytes[one])
        elif what == 2:
            if ends.pop(where, None) is not None:
                starts.remove(where)
        elif what == 0:
            place = bisect_right(in_use, where) - 1
            if place >= 0 and in_use[place] == where:
                in_use.pop(place)
        else:
            following, number = bisect_right(in_use, where), bisect_right(starts, where) - 1
            if at >= 0 and number >= 0 and where < ends[starts[number]]:
                limit = ends[starts[number]]
                limit = min(limit, in_use[following]) if following < len(in_use) else limit
                left = limit - where - int(size[one])
                if 0 < left <= _SMALL:
                    exact[one] += left
            in_use.insert(following, where)
    return exact
