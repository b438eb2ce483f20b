"""Damaged and hostile snapshots: each is refused in one sentence, and nothing in it is executed."""

import os
import pickle
import re
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from caching_allocator import MIB, Allocator, frame

from planner import StowageError, snapshot
from tests.effort import EFFORT

_BASE = 0x7F00_0000_0000


def good() -> dict[str, Any]:
    allocator = Allocator()
    allocator.alloc(512, [frame("/home/me/model.py", 12)])
    allocator.free(allocator.alloc(3 * MIB))
    return allocator.snapshot()


class Runs:
    """Leaves a file behind when it is unpickled by anyone careless."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (self.path,)


def changed(*path: Any, to: Any) -> Callable[[], bytes]:
    """A snapshot with one value replaced; `...` as the value removes it."""

    def make() -> bytes:
        data: Any = good()
        inner = data
        for step in path[:-1]:
            inner = inner[step]
        if to is ...:
            del inner[path[-1]]
        else:
            inner[path[-1]] = to
        return pickle.dumps(data, 4)

    return make


def plain(value: Any, protocol: int = 4) -> Callable[[], bytes]:
    return lambda: pickle.dumps(value, protocol)


def raw(*parts: bytes) -> Callable[[], bytes]:
    return lambda: b"\x80\x04" + b"".join(parts)


def cut(share: float) -> Callable[[], bytes]:
    def make() -> bytes:
        data = pickle.dumps(good(), 4)
        return data[: int(share * len(data))]

    return make


def oneself() -> bytes:
    events: list[Any] = []
    events.append(events)
    return pickle.dumps({"segments": [], "device_traces": [events]}, 4)


def laughs() -> bytes:
    """Lists of ten times the list before, thirty deep: 10**30 items in a thousand bytes."""
    inner: list[Any] = []
    for _ in range(30):
        inner = [inner] * 10
    return pickle.dumps(inner, 4)


def same_event() -> bytes:
    """Thousands of events that are one dict."""
    return pickle.dumps({"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": 2**40}] * 9_999]}, 4)


_EVENT = {"action": "alloc", "addr": _BASE, "size": 512, "stream": 0}
_TRACE, _SEGMENT, _BLOCK = ("device_traces", 0), ("segments", 0), ("segments", 0, "blocks", 0)

PICKLES: dict[str, tuple[Callable[[], bytes], str]] = {
    # what is no pickle of plain data
    "empty": (lambda: b"", "it is no pickle"),
    "text": (lambda: b'{"segments": []}', "it is no pickle"),
    "protocol 0": (plain(good(), 0), "it is no pickle"),
    "a later protocol": (lambda: b"\x80\x06}.", "the opcode PROTO at byte 0"),
    "only a protocol": (lambda: b"\x80\x04", "it ends in the middle, at byte 2"),
    "half": (cut(0.5), "it ends in the middle"),
    "a tenth": (cut(0.1), "it ends in the middle"),
    "all but the end": (cut(0.999), "it ends in the middle"),
    "a global": (raw(b"cos\nsystem\n."), "the opcode GLOBAL at byte 2"),
    "a global of the stack": (raw(b"\x8c\x02os\x8c\x06system\x93."), "the opcode STACK_GLOBAL"),
    "a call": (raw(b")R."), "the opcode REDUCE"),
    "a new object": (raw(b"))\x81."), "the opcode NEWOBJ"),
    "a new object by name": (raw(b"))}\x92."), "the opcode NEWOBJ_EX"),
    "an instance": (raw(b"(ios\nsystem\n."), "the opcode INST"),
    "an old object": (raw(b"(o."), "the opcode OBJ"),
    "a state": (raw(b"}}b."), "the opcode BUILD"),
    "an object outside": (raw(b"Pname\n."), "the opcode PERSID"),
    "another one outside": (raw(b"NQ."), "the opcode BINPERSID"),
    "an extension": (raw(b"\x82\x01."), "the opcode EXT1"),
    "a buffer outside": (raw(b"\x97."), "the opcode NEXT_BUFFER"),
    "a set": (plain({1, 2}), "the opcode EMPTY_SET"),
    "bytes": (plain({"segments": b"none"}), "the opcode SHORT_BINBYTES"),
    "bytes that can be changed": (plain(bytearray(3), 5), "the opcode BYTEARRAY8"),
    "a complex number": (plain({"segments": 1j}), "the opcode STACK_GLOBAL"),
    "an unknown opcode": (raw(b"\xff."), "the opcode 0xff"),
    # what is more than the file has
    "a text of gigabytes": (raw(b"X\xff\xff\xff\xff."), "it ends in the middle"),
    "a text of exabytes": (raw(b"\x8d" + b"\xff" * 8 + b"."), "the opcode BINUNICODE8"),
    "a frame of exabytes": (raw(b"\x95" + b"\xff" * 8 + b"}."), "it ends in the middle"),
    "a number of gigabytes": (raw(b"\x8b\xff\xff\xff\x7f."), "the opcode LONG4"),
    "a number of 200 bytes": (raw(b"\x8a\xc8" + b"\x01" * 200 + b"."), "a number at byte 2 is too long"),
    "a memo of billions": (raw(b"}r\xff\xff\xff\x7f."), "its opcodes do not belong together"),
    "a memo that is not there": (raw(b"h\x05."), "its opcodes do not belong together"),
    "a billion laughs": (laughs, "one of its segments is list, not a dict"),
    "deep lists": (raw(b"]" * 100_000 + b"a" * 99_999 + b"."), "more than 64 containers are within each other"),
    "deep tuples": (raw(b")" + b"\x85" * 100_000 + b"."), "more than 64 containers are within each other"),
    "deep marks": (raw(b"(" * 100_000 + b"."), "more than 64 containers are within each other"),
    "a deep key": (raw(b"})" + b"\x85" * 40 + b"Ns."), "a key at byte 45 is no text"),
    "itself": (oneself, "one of its events is list, not a dict"),
    # opcodes in an order that makes no sense
    "an item too few": (raw(b"}\x8c\x01as."), "its opcodes do not belong together"),
    "an item of a number": (raw(b"K\x01K\x02a."), "its opcodes do not belong together"),
    "an item of a text": (raw(b"\x8c\x01aK\x02K\x03s."), "its opcodes do not belong together"),
    "a key without a value": (raw(b"}(\x8c\x01au."), "its opcodes do not belong together"),
    "nothing to remember": (raw(b"\x94."), "its opcodes do not belong together"),
    "an end without a mark": (raw(b"]e."), "its opcodes do not belong together"),
    "two results": (raw(b"}}."), "its opcodes do not belong together"),
    "a mark as a result": (raw(b"(."), "its opcodes do not belong together"),
    "half a letter": (raw(b"X\x01\x00\x00\x00\xff."), "it cannot be unpickled"),
    # plain data that is no snapshot
    "a number": (plain(7), "it is int, not a dict"),
    "nothing": (plain(None), "it is NoneType, not a dict"),
    "another dict": (plain({"state": {}}), "it has no segments"),
    "segments in a dict": (plain({"segments": {}}), "its segments are dict, not a list"),
    "a segment in a list": (plain({"segments": [[]]}), "one of its segments is list, not a dict"),
    "traces in a dict": (plain({"segments": [], "device_traces": {}}), "its device_traces are dict, not a list"),
    "a trace in a dict": (changed("device_traces", 0, to={"a": 1}), "its events are dict, not a list"),
    "no events and segments": (plain({"segments": [], "device_traces": [[]]}), "it has no segments and no events"),
    "an event in a text": (changed(*_TRACE, 0, to="alloc"), "one of its events is str, not a dict"),
    # fields of the wrong type or size
    "another action": (changed(*_TRACE, 0, "action", to="alloc_"), "action of event 0 is 'alloc_' \\(did you mean"),
    "an action that is a list": (changed(*_TRACE, 0, "action", to=[]), "action of event 0 is list"),
    "no action": (changed(*_TRACE, 0, "action", to=...), "event 0 has no action"),
    "no size": (changed(*_TRACE, 1, "size", to=...), "event 1 has no size"),
    "no address": (changed(*_TRACE, 1, "addr", to=...), "addr of event 1 is NoneType, not a whole number"),
    "a negative size": (changed(*_TRACE, 1, "size", to=-512), "size of event 1 is -512"),
    "a size in a text": (changed(*_TRACE, 1, "size", to="512"), "size of event 1 is str"),
    "a size that is a fraction": (changed(*_TRACE, 1, "size", to=512.0), "size of event 1 is float"),
    "no size in numbers": (changed(*_TRACE, 1, "size", to=float("nan")), "size of event 1 is float"),
    "true for a size": (changed(*_TRACE, 1, "size", to=True), "size of event 1 is bool"),
    "a huge size": (changed(*_TRACE, 1, "size", to=2**50), "size of event 1 is 1,125,899,906,842,624 bytes"),
    "a huge address": (changed(*_TRACE, 1, "addr", to=2**63), "addr of event 1 is beyond all addresses"),
    "a negative address": (changed(*_SEGMENT, "address", to=-1), "address of segment 0 is -1"),
    "a time in a text": (changed(*_TRACE, 1, "time_us", to="now"), "time_us of event 1 is str"),
    "a stream in a text": (changed(*_TRACE, 1, "stream", to="default"), "stream of event 1 is str"),
    "frames in a text": (changed(*_TRACE, 1, "frames", to="model.py:12"), "frames are str, not a list"),
    "a frame in a text": (changed(*_TRACE, 1, "frames", to=["model.py:12"]), "a frame is str, not a dict"),
    "a frame without a line": (changed(*_TRACE, 1, "frames", to=[{"filename": "m.py", "name": "f"}]), "a frame has no"),
    "a frame at a fraction": (changed(*_TRACE, 1, "frames", to=[frame("m.py", 1.5)]), "a frame has no"),  # type: ignore[arg-type]
    "another state": (changed(*_BLOCK, "state", to="free"), "state of block 0 is 'free'"),
    "no state": (changed(*_BLOCK, "state", to=...), "block 0 has no state"),
    "a negative block": (changed(*_BLOCK, "size", to=-512), "size of block 0 is -512"),
    "a larger block": (changed(*_BLOCK, "size", to=1024), "block 1 is not where the one before it ends"),
    "a moved block": (changed(*_BLOCK, "address", to=_BASE + 1), "block 0 is not where the one before it ends"),
    "blocks in a text": (changed(*_SEGMENT, "blocks", to="none"), "its blocks are str, not a list"),
    "a larger segment": (changed(*_SEGMENT, "total_size", to=3 * MIB), "segment 0 has 3,145,728 bytes and its blocks"),
    "a device in a text": (changed(*_SEGMENT, "device", to="cuda:0"), "device of segment 0 is str"),
    "the same segment twice": (lambda: pickle.dumps({"segments": good()["segments"] * 2}, 4), "segments overlap at"),
    # what does not add up
    "more allocated than reserved": (plain({"segments": [], "device_traces": [[_EVENT]]}), "its trace frees nothing"),
    "more freed than reserved": (
        plain({"segments": [], "device_traces": [[{**_EVENT, "action": "free_completed"}]]}),
        "after event -1, 512 bytes are allocated in 0 reserved",
    ),
    "one event thousands of times": (same_event, "its trace frees nothing"),
}  # fmt: skip


def refused(path: Path) -> str:
    with pytest.raises(StowageError) as error:
        snapshot.read(path)
    told = str(error.value)
    assert "\n" not in told
    assert len(told) < 300 + len(str(path))
    return told


@pytest.mark.parametrize(("make", "why"), PICKLES.values(), ids=PICKLES)
def test_a_bad_snapshot_is_refused_in_one_sentence(tmp_path: Path, make: Callable[[], bytes], why: str) -> None:
    path = tmp_path / "bad.pickle"
    path.write_bytes(make())
    told = refused(path)
    assert told.startswith(f"{path} cannot be read as a memory snapshot: ")
    assert re.search(why, told), told


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_in_a_snapshot_is_executed(tmp_path: Path, protocol: int) -> None:
    sentinel = tmp_path / "sentinel"
    data = good() | {"allocator_settings": {"max_split_size": Runs(str(sentinel))}}
    path = tmp_path / "hostile.pickle"
    path.write_bytes(pickle.dumps(data, protocol))
    refused(path)
    assert not sentinel.exists()
    pickle.loads(path.read_bytes())
    assert sentinel.exists(), "it would have run"


@pytest.mark.parametrize("name", ["missing.pickle", "", "with\0zero.pickle"])
def test_what_is_no_file_is_refused(tmp_path: Path, name: str) -> None:
    assert "cannot be read as a memory snapshot: " in refused(tmp_path / name)


def test_a_snapshot_that_is_cut_anywhere_is_refused(tmp_path: Path) -> None:
    data, path = pickle.dumps(good(), 4), tmp_path / "cut.pickle"
    for end in range(0, len(data), 37):
        path.write_bytes(data[:end])
        assert refused(path)


def test_a_snapshot_with_any_byte_changed_is_read_or_refused(tmp_path: Path) -> None:
    """Never another exception, and never a crash of the interpreter."""
    data, path, read = pickle.dumps(good(), 2), tmp_path / "changed.pickle", 0
    for at in range(2, len(data), 29 // EFFORT):
        for byte in (0, data[at] ^ 1, ord("R"), ord("r"), 0xFF):
            path.write_bytes(data[:at] + struct.pack("B", byte) + data[at + 1 :])
            with suppress(StowageError):
                snapshot.read(path)
                read += 1
    assert read, "some bytes are in a file's name"
