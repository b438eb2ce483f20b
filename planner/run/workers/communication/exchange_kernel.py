"""The hot loop of an exchange through shared memory: boxes are filled, others' are awaited and emptied.

A box has two halves for parts of what is sent, and a header. Its sender counts there how many parts it has filled in;
its receiver says there whether it sleeps until it is woken. Sender and receiver each write one of the two and then read
the other, in an order that all processors see alike, so that one of them notices the other (Dekker's algorithm).
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from planner.jit import kernel

#: Bytes of a header: each of its words has a cache line to itself.
HEADER_BYTES = 128
_SLEEPS = 64  # where the receiver's word is

#: What `exchange_parts` returns when all is exchanged, and when workers are to be woken.
DONE, WAKE = -1, -2

#: Its stubs say that callers of an intrinsic give what numba gives, the typing context.
_intrinsic: Any = intrinsic
#: Lets whoever else waits for this core have it; returns at once if there is nobody.
_give_way = types.ExternalFunction("sched_yield", types.int32())


@kernel
def exchange_parts(
    peers: Any, sends: Any, send_sizes: Any, receives: Any, receive_sizes: Any,
    own_boxes: Any, their_boxes: Any, rounds: Any, half_bytes: int, spins: int, progress: Any, asleep: Any,
) -> int:  # fmt: skip
    """Go on with an exchange until it is done, somebody has to be woken, or somebody keeps this worker waiting.

    Args:
        peers: the other workers.
        sends, send_sizes, receives, receive_sizes: for each of them, where in memory and how many bytes.
        own_boxes, their_boxes: by worker, the address of the box to it and of the box from it.
        rounds: by worker, how many parts were exchanged so far.
        half_bytes: of a box.
        spins: how often to look whether a part has come before giving up.
        progress: how far the exchange has come: bytes exchanged, whether the next ones are in the boxes, and how many
            of the workers' have been taken out; all zeros at its beginning.
        asleep: is set for each worker that is to be woken.

    Returns:
        `DONE`, `WAKE`, or the place in `peers` of a worker that this one has told that it sleeps.
    """
    largest = 0
    for place in range(len(peers)):
        largest = max(largest, send_sizes[place], receive_sizes[place])
    while progress[0] < largest:
        begin = progress[0]
        if progress[1] == 0:
            progress[1] = 1
            asleep[:] = 0
            for place in range(len(peers)):
                if begin < max(send_sizes[place], receive_sizes[place]):
                    box, number = own_boxes[peers[place]], rounds[peers[place]]
                    size = min(send_sizes[place] - begin, half_bytes)
                    if size > 0:
                        _copy(box + HEADER_BYTES + number % 2 * half_bytes, sends[place] + begin, size)
                    _store(box, number + 1)
                    asleep[place] = _load(box + _SLEEPS)
            if asleep.any():
                return WAKE
        while progress[2] < len(peers):
            place = progress[2]
            if begin < max(send_sizes[place], receive_sizes[place]):
                box, number = their_boxes[peers[place]], rounds[peers[place]]
                left = spins
                while _load(box) <= number:
                    if left < 0:
                        return int(place)
                    if left == 0:
                        _store(box + _SLEEPS, 1)
                    left -= 1
                    _give_way()
                if _load(box + _SLEEPS):
                    _store(box + _SLEEPS, 0)
                size = min(receive_sizes[place] - begin, half_bytes)
                if size > 0:
                    _copy(receives[place] + begin, box + HEADER_BYTES + number % 2 * half_bytes, size)
                rounds[peers[place]] += 1
            progress[2] += 1
        progress[0] += half_bytes
        progress[1] = progress[2] = 0
    return DONE


def _word(builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, cgutils.intp_t.as_pointer())


@_intrinsic
def _load(_typing: Any, _address: Any) -> Any:
    """The word at an address, which another process may change."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.load_atomic(_word(builder, args[0]), "seq_cst", 8)

    return types.int64(types.int64), generate


@_intrinsic
def _store(_typing: Any, _address: Any, _value: Any) -> Any:
    """Change the word at an address after everything before; whoever loads it sees all that."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        builder.store_atomic(args[1], _word(builder, args[0]), "seq_cst", 8)

    return types.void(types.int64, types.int64), generate


@_intrinsic
def _copy(_typing: Any, _target: Any, _source: Any, _size: Any) -> Any:
    """Copy bytes from one address to another."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        target, source = (builder.inttoptr(each, cgutils.voidptr_t) for each in args[:2])
        cgutils.raw_memcpy(builder, target, source, args[2], 1)  # type: ignore[no-untyped-call]

    return types.void(types.int64, types.int64, types.int64), generate
