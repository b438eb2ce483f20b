"""A check of a pickle, byte by byte, before anything is built from it: plain data alone, in sizes that the file has.

A snapshot is made of dicts with texts as keys, lists, tuples, texts, numbers, true, false and None. A pickle may also
name any function of Python and call it, claim a text of exabytes, or make a table of billions of entries to remember
one; such opcodes are found here, so that the unpickler never sees them. What an opcode does is in Python's own
`pickletools`.
"""

from __future__ import annotations

import pickletools

import numpy as np
from numpy.typing import NDArray

from planner.errors import StowageError
from planner.jit import inlined_kernel, kernel

#: Signed, since the sum of a signed and an unsigned number is a float in a kernel.
Bytes = NDArray[np.int8]

#: The most containers within each other; a snapshot has six: itself, segments, one, its blocks, one, its frames.
_DEEPEST = 64
_FINE, _UNKNOWN, _CUT, _TWISTED, _DEEP, _LONG, _UNPICKLABLE = range(7)
_REASONS = {
    _CUT: "it ends in the middle, at byte {at:,}; copy it again",
    _TWISTED: "its opcodes do not belong together at byte {at:,}; write it again with _dump_snapshot",
    _DEEP: f"more than {_DEEPEST} containers are within each other at byte {{at:,}}; give one of PyTorch's snapshots",
    _LONG: "a number at byte {at:,} is too long; give one of PyTorch's snapshots",
    _UNPICKLABLE: "a key at byte {at:,} is no text; give one of PyTorch's snapshots",
}
_NAMES = {ord(opcode.code): opcode.name for opcode in pickletools.opcodes}

# how an item of the stack may be used
_SCALAR, _TEXT, _LIST, _DICT, _TUPLE, _MARK = range(6)
# what an opcode does
_NOT_PLAIN, _PUSH, _PUSH_COUNTED, _GET, _PUT, _NEW, _OPEN, _CLOSE, _HEAD, _END = range(10)
_EFFECTS = {
    _PUSH: "BININT1 BININT2 BININT BINFLOAT NONE NEWTRUE NEWFALSE",
    _PUSH_COUNTED: "LONG1 SHORT_BINUNICODE BINUNICODE",
    _GET: "BINGET LONG_BINGET",
    _PUT: "MEMOIZE BINPUT LONG_BINPUT",
    _NEW: "EMPTY_LIST EMPTY_DICT EMPTY_TUPLE",
    _OPEN: "MARK",
    _CLOSE: "APPEND APPENDS SETITEM SETITEMS TUPLE TUPLE1 TUPLE2 TUPLE3",
    _HEAD: "PROTO FRAME",
    _END: "STOP",
}
_DIGITS = {
    "BININT1": 1, "BININT2": 2, "BININT": 4, "BINFLOAT": 8, "LONG1": 1, "SHORT_BINUNICODE": 1, "BINUNICODE": 4,
    "BINGET": 1, "LONG_BINGET": 4, "BINPUT": 1, "LONG_BINPUT": 4, "PROTO": 1, "FRAME": 8,
}  # fmt: skip
_CODES = {opcode.name: ord(opcode.code) for opcode in pickletools.opcodes}
_LONG1, _EMPTY_LIST, _EMPTY_DICT, _PROTO, _FRAME = map(
    _CODES.__getitem__, ("LONG1", "EMPTY_LIST", "EMPTY_DICT", "PROTO", "FRAME")
)
_APPEND, _APPENDS, _SETITEM, _SETITEMS, _TUPLE_TO_MARK, _TUPLE1 = map(
    _CODES.__getitem__, ("APPEND", "APPENDS", "SETITEM", "SETITEMS", "TUPLE", "TUPLE1")
)


def check_plain(data: bytes) -> None:
    """Check that a pickle has plain data alone.

    Args:
        data: the whole file.

    Raises:
        StowageError: it has anything else, is cut off, or is no pickle.
    """
    if data[:1] != b"\x80":
        raise StowageError("it is no pickle; give a file that torch.cuda.memory._dump_snapshot wrote")
    effects, digits = np.full(256, _NOT_PLAIN, np.int8), np.zeros(256, np.int8)
    for effect, names in _EFFECTS.items():
        effects[[_CODES[name] for name in names.split()]] = effect
    for name, width in _DIGITS.items():
        digits[_CODES[name]] = width
    verdict, at = _scan(np.frombuffer(data, np.int8), effects, digits)
    if verdict == _UNKNOWN:
        name = _NAMES.get(data[at], f"{data[at]:#04x}")
        raise StowageError(
            f"it has the opcode {name} at byte {at:,}, and a snapshot has plain data alone; nothing of it was loaded"
        )
    if verdict != _FINE:
        raise StowageError(_REASONS[verdict].format(at=at))


@inlined_kernel
def _number(data: Bytes, at: int, digits: int) -> int:
    """The unsigned number in some bytes, least significant first; beyond 2**56 it is only large."""
    number = 0
    for place in range(digits):
        digit = int(data[at + place]) & 255
        number += digit << (8 * place) if place < 7 else min(digit, 1) << 62
    return number


@kernel
def _scan(data: Bytes, effects: Bytes, digits: Bytes) -> tuple[int, int]:
    """A verdict, and the byte that it is about.

    Every opcode is followed as the unpickler would, with the kind and the depth of each item in place of its value.

    Args:
        data: the pickle.
        effects: by opcode, what it does.
        digits: by opcode, bytes of the number that follows it.
    """
    size = len(data)
    kinds, depths = np.empty(size + 1, np.int8), np.empty(size + 1, np.int8)
    kept, kept_depths = np.empty(size + 1, np.int8), np.empty(size + 1, np.int8)
    marks = np.empty(_DEEPEST + 1, np.int64)
    top, memo, open_marks, at = 0, 0, 0, 0  # how many there are of each
    while at < size:
        here = at
        code = int(data[at]) & 255
        effect, width = int(effects[code]), int(digits[code])
        if effect == _NOT_PLAIN:
            return _UNKNOWN, here
        at += 1 + width
        if at > size:
            return _CUT, here
        number = _number(data, here + 1, width)
        floor = marks[open_marks - 1] + 1 if open_marks else 0  # items below belong to an outer container
        if effect in (_PUSH, _PUSH_COUNTED):
            if effect == _PUSH_COUNTED:
                if code == _LONG1 and number > 9:
                    return _LONG, here
                at += number
            kinds[top] = _TEXT if width and effect == _PUSH_COUNTED and code != _LONG1 else _SCALAR
            depths[top] = 0
            top += 1
        elif effect == _GET:
            if number >= memo:
                return _TWISTED, here
            kinds[top], depths[top] = kept[number], kept_depths[number]
            top += 1
        elif effect == _PUT:
            index = number if width else memo
            if index > memo or top == floor:
                return _TWISTED, here
            kept[index], kept_depths[index] = kinds[top - 1], depths[top - 1]
            memo = max(memo, index + 1)
        elif effect == _NEW:
            kinds[top] = _LIST if code == _EMPTY_LIST else _DICT if code == _EMPTY_DICT else _TUPLE
            depths[top] = 1
            top += 1
        elif effect == _OPEN:
            if open_marks == _DEEPEST:
                return _DEEP, here
            marks[open_marks] = top
            open_marks += 1
            kinds[top], depths[top] = _MARK, 0
            top += 1
        elif effect == _CLOSE:
            count, marked = code - _TUPLE1 + 1, 0
            if code in (_TUPLE_TO_MARK, _APPENDS, _SETITEMS):
                if not open_marks:
                    return _TWISTED, here
                count, marked = top - floor, 1
                open_marks -= 1
                floor = marks[open_marks - 1] + 1 if open_marks else 0
            elif code in (_APPEND, _SETITEM):
                count = 1 if code == _APPEND else 2
            makes_tuple = code == _TUPLE_TO_MARK or code >= _TUPLE1
            first = top - count
            into = first - marked if makes_tuple else first - marked - 1
            if first < floor or into < floor:
                return _TWISTED, here
            deepest = 0
            for item in range(first, top):
                deepest = max(deepest, int(depths[item]))
            if deepest >= _DEEPEST:
                return _DEEP, here
            if makes_tuple:
                kinds[into], depths[into] = _TUPLE, 0
            elif kinds[into] != (_LIST if code in (_APPEND, _APPENDS) else _DICT):
                return _TWISTED, here
            elif kinds[into] == _DICT:
                if count % 2:
                    return _TWISTED, here
                for item in range(first, top, 2):
                    if kinds[item] != _TEXT:  # what else is there could be deep, and its hash with it
                        return _UNPICKLABLE, here
            depths[into] = max(int(depths[into]), deepest + 1)
            top = into + 1
        elif effect == _HEAD:
            if code == _PROTO and number > 5:
                return _UNKNOWN, here
            if code == _FRAME and number > size - at:
                return _CUT, here
        else:
            return (_FINE, here) if top == 1 and not open_marks else (_TWISTED, here)
    return _CUT, size
