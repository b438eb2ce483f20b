"""The op calls in a trace of `torch.profiler`, with the time that each took on its device.

A trace is JSON in the Trace Event Format. Calls are its complete events of category `cpu_op`; kernels and copies of a
GPU name by their `External id` the call that launched them.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, NoReturn

from planner.errors import StowageError
from planner.units import format_bytes

#: The most bytes of JSON that are read.
_MOST_BYTES = 2**30
_DTYPES = {
    "float": "float32", "double": "float64", "c10::Half": "float16", "c10::BFloat16": "bfloat16",
    "long int": "int64", "long": "int64", "int": "int32", "short int": "int16", "short": "int16",
    "signed char": "int8", "unsigned char": "uint8", "bool": "bool", "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
}  # fmt: skip
_ON_DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})


@dataclass(frozen=True, slots=True)
class TracedCall:
    """One call of an op.

    Args:
        name: PyTorch's, such as `aten::mm`.
        shapes: of the tensors among its arguments, lists of them flattened; None if the trace does not have them.
        dtypes: of these tensors, `""` for those in a list; None if the trace does not have them.
        seconds: on the GPU if the trace is of one, otherwise on the CPU.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...] | None
    dtypes: tuple[str, ...] | None
    seconds: float


@dataclass(frozen=True, eq=False)
class TracedCalls:
    """The calls in a trace.

    Args:
        calls: in order of their start; calls within others are calls too.
        device: PyTorch's name of the type of device that they were timed on.
    """

    calls: tuple[TracedCall, ...]
    device: str


def traced_calls(path: str | Path) -> TracedCalls:
    """Read the calls in a trace.

    Args:
        path: what `torch.profiler.profile.export_chrome_trace` wrote, `.json` or `.json.gz`.

    Raises:
        StowageError: the file cannot be read, is no trace, or has no op calls.
    """
    try:
        return _calls(_events(_text(Path(path))))
    except StowageError as error:
        raise StowageError(f"{path} cannot be read as a trace of torch.profiler: {error}") from error


def _text(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():  # a pipe may never end
            raise StowageError("it is no file; check the path")
        with path.open("rb") as stream:
            packed = stream.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as stream:
            data = stream.read(min(_MOST_BYTES + 1, 1040 * path.stat().st_size + 1))  # no gzip packs more tightly
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise StowageError(f"it is damaged: {error}; copy it again") from error
    except OSError as error:
        raise StowageError(f"it cannot be opened: {error.strerror or error}; check the path") from error
    except ValueError as error:
        raise StowageError(f"no file can be called so: {error}; check the path") from error
    if len(data) > _MOST_BYTES:
        raise StowageError(f"it has more than {format_bytes(_MOST_BYTES)} of text; trace fewer steps")
    return data


def _events(text: bytes) -> list[Any]:
    try:
        data = json.loads(text, parse_constant=_no_number)
    except RecursionError as error:
        raise StowageError("it is nested too deeply; give what export_chrome_trace wrote") from error
    except ValueError as error:
        where = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise StowageError(f"it is not valid JSON{where}; copy it again") from error
    events = data.get("traceEvents") if isinstance(data, dict) else data
    if not isinstance(events, list):
        raise StowageError("it has no list of traceEvents; give what export_chrome_trace wrote")
    return events


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _calls(events: Sequence[Any]) -> TracedCalls:
    ops, on_device = list[dict[str, Any]](), dict[int, float]()
    is_gpu = False
    for event in events:
        if not isinstance(event, dict) or event.get("ph") != "X":
            continue
        category = event.get("cat")
        if category == "cpu_op":
            ops.append(event)
        elif isinstance(category, str) and category in _ON_DEVICE:
            is_gpu = True
            launched_by = _arguments(event).get("External id")
            if type(launched_by) is int:
                on_device[launched_by] = on_device.get(launched_by, 0.0) + _microseconds(event, "dur")
    if not ops:
        raise StowageError("it has no op calls; trace with ProfilerActivity.CPU among the activities")
    spans = [(_microseconds(op, "ts"), _microseconds(op, "dur")) for op in ops]
    launched = [
        on_device.get(number, 0.0) if type(number := _arguments(op).get("External id")) is int else 0.0 for op in ops
    ]
    seconds = _with_inner(ops, spans, launched) if is_gpu else [duration for _, duration in spans]
    order = sorted(range(len(ops)), key=lambda at: (spans[at][0], -spans[at][1]))
    return TracedCalls(tuple(_call(ops[at], seconds[at] / 1e6) for at in order), "cuda" if is_gpu else "cpu")


def _with_inner(
    ops: Sequence[dict[str, Any]], spans: Sequence[tuple[float, float]], launched: Sequence[float]
) -> list[float]:
    """By call, the time of its kernels and of those of the calls within it."""
    total = list(launched)
    threads: dict[str, list[int]] = {}
    for at, op in enumerate(ops):
        threads.setdefault(f"{op.get('pid')!r:.40} {op.get('tid')!r:.40}", []).append(at)
    for calls in threads.values():
        calls.sort(key=lambda at: (spans[at][0], -spans[at][1]))
        open_calls: list[int] = []

        def close(until: float, open_calls: list[int] = open_calls) -> None:
            while open_calls and sum(spans[open_calls[-1]]) <= until:
                inner = open_calls.pop()
                if open_calls:
                    total[open_calls[-1]] += total[inner]

        for at in calls:
            close(spans[at][0])
            open_calls.append(at)
        close(float("inf"))
    return total


def _call(event: dict[str, Any], seconds: float) -> TracedCall:
    name, arguments = event.get("name"), _arguments(event)
    if not isinstance(name, str):
        raise StowageError(f"the name of an op call is {type(name).__name__}, not a text; copy it again")
    dims, types = arguments.get("Input Dims"), arguments.get("Input type")
    if dims is None:
        return TracedCall(name, None, None, seconds)
    if not isinstance(dims, list) or not (types is None or (isinstance(types, list) and len(types) == len(dims))):
        raise StowageError(f"the inputs of {name[:60]!a} have no shapes and types in lists; copy it again")
    tensors = list(_tensors(name, dims, types or [""] * len(dims)))
    dtypes = tuple(dtype for _, dtype in tensors)
    return TracedCall(name, tuple(shape for shape, _ in tensors), dtypes if types else None, seconds)


def _tensors(name: str, dims: list[Any], types: list[Any]) -> Iterator[tuple[tuple[int, ...], str]]:
    for shape, dtype in zip(dims, types, strict=True):
        known = _DTYPES.get(dtype, "") if isinstance(dtype, str) else ""
        if not isinstance(shape, list):
            raise StowageError(f"a shape of {name[:60]!a} is {type(shape).__name__}, not a list; copy it again")
        listed = any(isinstance(one, list) for one in shape)
        if known or listed or (shape and not dtype):
            for one in shape if listed else [shape]:
                if not (isinstance(one, list) and all(type(size) is int and 0 <= size < 2**62 for size in one)):
                    raise StowageError(f"a shape of {name[:60]!a} has other than whole numbers of 0 or more")
                yield tuple(one), known


def _arguments(event: dict[str, Any]) -> dict[str, Any]:
    arguments = event.get("args", {})
    if not isinstance(arguments, dict):
        raise StowageError(f"the args of an event are {type(arguments).__name__}, not an object; copy it again")
    return arguments


def _microseconds(event: dict[str, Any], name: str) -> float:
    value = event.get(name, 0.0 if name == "dur" else None)
    try:
        number = float(value) if type(value) in (int, float, str) else float("nan")  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        number = float("nan")
    if not isfinite(number) or number < 0:
        raise StowageError(f"{name} of an event is {str(value)[:40]!a}, not a time of 0 or more; copy it again")
    return number
