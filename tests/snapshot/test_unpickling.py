"""What the restricted unpickler builds, against Python's own; and pickles as PyTorch's C++ writes them."""

import pickle
import pickletools
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from planner import StowageError, snapshot
from planner.snapshot import check_plain
from planner.snapshot.loading.unpickling import unpickle
from tests.effort import EFFORT
from tests.snapshot.test_reading import played

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.lists(inner, max_size=4).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)
CALLS = {"GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "PERSID", "BINPERSID",
         "EXT1", "EXT2", "EXT4"}  # fmt: skip
OPCODES = [*b"](})t\x85\x86ausehKNq\x94\x8c\x00\x01\x02.cR\x81b\x93"]


@settings(max_examples=30 * EFFORT, deadline=None)
@given(value=PLAIN, protocol=st.sampled_from([2, 3, 4, 5]))
@example(value=[{"a": k} for k in range(2500)], protocol=4)  # in batches of a thousand
@example(value=["x" * 300, {"x" * 70_000: (1, 2, 3, 4)}], protocol=4)  # which has frames
@example(value=[[shared := [1, "two"]] * 600, shared], protocol=2)  # a memo of more than a byte
def test_plain_data_is_what_it_was(tmp_path_factory: pytest.TempPathFactory, value: Any, protocol: int) -> None:
    path = tmp_path_factory.getbasetemp() / "plain.pickle"
    path.write_bytes(pickle.dumps(value, protocol))
    assert unpickle(path) == value


@settings(max_examples=150 * EFFORT, deadline=None)
@given(
    body=st.lists(st.sampled_from([*b"](})t\x85\x86ausehKNq\x94\x8c\x00\x01\x02.cR\x81b\x93"]), max_size=24).map(bytes)
)
def test_what_passes_the_check_calls_nothing_and_can_be_unpickled(body: bytes) -> None:
    data = b"\x80\x04" + body + b"."
    try:
        check_plain(data)
    except StowageError:
        return
    assert not {opcode.name for opcode, _, _ in pickletools.genops(data)} & CALLS
    pickle.loads(data)


class Written:
    """A pickle as `torch::jit::Pickler` writes it: all items of a list between two marks, texts remembered once."""

    def __init__(self, value: Any) -> None:
        self._parts, self._memo = [b"\x80\x02"], dict[str, int]()
        self._puts = 0
        self._push(value)
        self.data = b"".join([*self._parts, b"."])

    def _push(self, value: Any) -> None:
        match value:
            case None | bool():
                self._parts.append({None: b"N", True: b"\x88", False: b"\x89"}[value])
            case int():
                short = 0 <= value < 256
                self._parts.append(b"K%c" % value if short else b"\x8a\x08" + struct.pack("<q", value))
            case float():
                self._parts.append(b"G" + struct.pack(">d", value))
            case str() if value in self._memo:
                self._parts.append(b"j" + struct.pack("<I", self._memo[value]))
            case str():
                self._memo[value] = self._puts
                self._parts.append(b"X" + struct.pack("<I", len(value.encode())) + value.encode())
                self._put()
            case list() | tuple():
                self._parts.append(b"](" if isinstance(value, list) else b"(")
                for one in value:
                    self._push(one)
                self._parts.append(b"e" if isinstance(value, list) else b"t")
                self._put()
            case dict():
                self._parts.append(b"}(")
                for pair in value.items():
                    for one in pair:
                        self._push(one)
                self._parts.append(b"u")
                self._put()

    def _put(self) -> None:
        self._parts.append(b"r" + struct.pack("<I", self._puts))
        self._puts += 1


def test_a_snapshot_of_cpp_is_the_same_as_one_of_python(tmp_path: Path) -> None:
    data = played(8, events=1500).snapshot()
    found = []
    for name, pickled in (("cpp", Written(data).data), ("python", pickle.dumps(data, 4))):
        (tmp_path / name).write_bytes(pickled)
        found.append(snapshot.read(tmp_path / name))
    assert pickle.loads(Written(data).data) == data
    assert found[0].usage.allocated.tolist() == found[1].usage.allocated.tolist()
    assert found[0].holders() == found[1].holders()
