"""Damaged and hostile traces: each is refused in one sentence."""

import gzip
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from planner import StowageError
from planner.graph import Graph, GraphBuilder, Kind
from planner.machine import PRESETS
from planner.profile import trace_seconds

H100 = PRESETS["h100"]
HERE = replace(H100, devices=(replace(H100.device, kind="cpu"),))


@cache
def step() -> Graph:
    build = GraphBuilder("step")
    image = build.add_tensor("x", build.add_storage("x", 64, Kind.INPUT), (4, 4))
    result = build.add_tensor("y", build.add_storage("y", 64, Kind.OUTPUT), (4, 4))
    build.add_op("mm", "aten.mm.default", [image, image], [result])
    return build.build([result])


def call(**changes: Any) -> dict[str, Any]:
    arguments = {"External id": 1, "Input Dims": [[4, 4], [4, 4]], "Input type": ["float", "float"]}
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1.5, "dur": 2.5,
             "args": arguments}  # fmt: skip
    return {**event, **changes}


def inputs(**changes: Any) -> str:
    return json.dumps([call(args={**call()["args"], **changes})])


def text(value: Any) -> str:
    return json.dumps(value)


TRACES: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "it is not valid JSON at line 1"),
    "cut": (text({"traceEvents": [call()]})[:-30], "it is not valid JSON at line 1"),
    "a pickle": (b"\x80\x04}.", "it is not valid JSON"),
    "no text": (b"\xff\xfe\xff", "it is not valid JSON"),
    "a number": ("7", "it has no list of traceEvents"),
    "nothing": ("null", "it has no list of traceEvents"),
    "another object": ('{"events": []}', "it has no list of traceEvents"),
    "events in an object": ('{"traceEvents": {}}', "it has no list of traceEvents"),
    "no events": ('{"traceEvents": []}', "it has no op calls; trace with ProfilerActivity.CPU"),
    "events of nothing": ("[null, 1, []]", "it has no op calls"),
    "kernels alone": (text([call(cat="kernel")]), "it has no op calls"),
    "deep": ("[" * 100_000 + "]" * 100_000, "it is nested too deeply"),
    "a number of many digits": ("[" + "9" * 10_000 + "]", "it is not valid JSON"),
    "no number": ('[{"dur": NaN}]', "it is not valid JSON"),
    "no finite number": ('[{"dur": -Infinity}]', "it is not valid JSON"),
    "a negative duration": (text([call(dur=-1)]), "dur of an event is '-1', not a time of 0 or more"),
    "an endless duration": ('[{"ph":"X","cat":"cpu_op","ts":1,"dur":1e999}]', "dur of an event is 'inf'"),
    "a long duration": (text([call(dur=10**400)]), "dur of an event is '1000"),
    "a duration in words": (text([call(dur="long")]), "dur of an event is 'long'"),
    "a duration in a list": (text([call(dur=[1])]), "dur of an event is"),
    "a start in words": (text([call(ts="now")]), "ts of an event is 'now'"),
    "no start": (text([{**call(), "ts": None}]), "ts of an event is 'None'"),
    "a kernel's duration in words": (text([call(), call(cat="kernel", dur="x")]), "dur of an event is 'x'"),
    "no name": (text([call(name=None)]), "the name of an op call is NoneType"),
    "a name of numbers": (text([call(name=5)]), "the name of an op call is int"),
    "arguments in a list": (text([call(args=[])]), "the args of an event are list"),
    "shapes in a text": (inputs(**{"Input Dims": "4x4"}), "the inputs of 'aten::mm' have no shapes"),
    "a shape in a text": (inputs(**{"Input Dims": ["4x4", []]}), "a shape of 'aten::mm' is str"),
    "a negative size": (inputs(**{"Input Dims": [[-4, 4], [4, 4]]}), "a shape of 'aten::mm' has other than whole"),
    "a size that is a fraction": (inputs(**{"Input Dims": [[4.5], [4]]}), "a shape of 'aten::mm' has other than"),
    "a huge size": (inputs(**{"Input Dims": [[2**70], [4]]}), "a shape of 'aten::mm' has other than whole"),
    "a deep shape": (inputs(**{"Input Dims": [[[[4]]], [4]]}), "a shape of 'aten::mm' has other than whole"),
    "types in a text": (inputs(**{"Input type": "float"}), "the inputs of 'aten::mm' have no shapes and types"),
    "a type too few": (inputs(**{"Input type": ["float"]}), "the inputs of 'aten::mm' have no shapes and types"),
    "other shapes": (inputs(**{"Input Dims": [[4, 5], [5, 4]]}), "has 0 % of the ops of step by name, shapes and"),
    "other types": (inputs(**{"Input type": ["double", "double"]}), "has 0 % of the ops of step by name, shapes and"),
    "another op": (text([call(name="aten::bmm")]), "has 0 % of the ops of step by name, shapes and types"),
    "ops that took no time": (text([call(dur=0)]), "has 0 % of the ops of step"),
    "gzip that is cut": (gzip.compress(text([call()]).encode())[:-12], "it is damaged"),
    "gzip of nothing": (b"\x1f\x8b", "it is damaged"),
    "gzip with another byte": (gzip.compress(b"[]" * 99)[:12] + b"\0\0\0\0" * 9, "it is damaged"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "why"), TRACES.values(), ids=TRACES)
def test_a_bad_trace_is_refused_in_one_sentence(tmp_path: Path, content: str | bytes, why: str) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(StowageError, match=re.escape(why)) as error:
        trace_seconds(path, step(), HERE)
    told = str(error.value)
    assert told.startswith(str(path))
    assert "\n" not in told
    assert len(told) < 300 + len(str(path))


@pytest.mark.parametrize("make", [lambda folder: folder, lambda folder: folder / "none.json"])
def test_what_is_no_file_is_refused(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    with pytest.raises(StowageError, match="check the path"):
        trace_seconds(make(tmp_path), step(), HERE)


def test_the_good_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text([call()]))
    assert trace_seconds(path, step(), HERE).seconds.tolist() == [2.5e-6]
