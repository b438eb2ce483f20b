"""Packing problems as CSV, in the format of MiniMalloc: `id,lower,upper,size`, and `gaps` and `offset` where known.

Gaps are times within a buffer's life in which it needs no memory, `3-5 8-9`; it has the same offset after each.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planner.errors import StowageError
from planner.files import PATH, read_text, require_arguments, write_text
from planner.graph import Graph
from planner.plan import SwapPlan

_COLUMNS = ("id", "lower", "upper", "size")
_OPTIONAL = ("gaps", "offset")
_GAP = re.compile(r"(-?[0-9]{1,19})-(-?[0-9]{1,19})")
_LARGEST = 2**62
#: The largest whole number of which spreadsheets and JavaScript show every digit.
_LARGEST_BYTES = 2**53


@dataclass(frozen=True, eq=False)
class Buffers:
    """A packing problem.

    Args:
        ids: a name for each buffer.
        lower, upper: `[buffers]`, alive at times `lower <= t < upper`.
        sizes: `[buffers]`, bytes.
        offsets: `[buffers]`, bytes, if the file has them.
        lines: the number of each one's line in the file, if they were read from one.
        gaps: for each buffer, pairs of times between which it is not alive, in order; None if none has any.
    """

    ids: tuple[str, ...]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    sizes: NDArray[np.int64]
    offsets: NDArray[np.int64] | None = None
    lines: tuple[int, ...] = ()
    gaps: tuple[tuple[tuple[int, int], ...], ...] | None = None


def read_buffers(path: str | Path) -> Buffers:
    """Read a CSV file of buffers; its columns may be in any order.

    Raises:
        StowageError: the file is missing, or a line of it is not a buffer.
    """
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if any(row)]
    except csv.Error as error:
        raise StowageError(f"line {reader.line_num} of {path} is not CSV: {error}; correct it") from error
    header = rows[0][1] if rows else []
    if sorted(set(header) - {*_OPTIONAL}) != sorted(_COLUMNS) or len(set(header)) < len(header):
        raise StowageError(f"{path} begins with {','.join(header)!r}; its first line must be id,lower,upper,size")
    seen: dict[str, int] = {}
    columns: dict[str, list[int]] = {name: [] for name in header if name not in ("id", "gaps")}
    gaps: list[tuple[tuple[int, int], ...]] = []
    for line, cells in rows[1:]:
        place = f"line {line} of {path}"
        if len(cells) != len(header):
            raise StowageError(f"{place} has {len(cells)} values and the first line names {len(header)}; correct it")
        row = dict(zip(header, cells, strict=True))
        if row["id"] in seen:
            raise StowageError(f"{place} names buffer {row['id']} again after line {seen[row['id']]}; rename one")
        seen[row["id"]] = line
        numbers = _numbers(row, place)
        for name, value in numbers.items():
            columns[name].append(value)
        gaps.append(_gaps(row.get("gaps", ""), numbers["lower"], numbers["upper"], place))
    arrays = {name: np.array(values, np.int64) for name, values in columns.items()}
    return Buffers(
        tuple(seen), arrays["lower"], arrays["upper"], arrays["size"], arrays.get("offset"), tuple(seen.values()),
        tuple(gaps) if any(gaps) else None,
    )  # fmt: skip


def _numbers(row: Mapping[str, str], place: str) -> dict[str, int]:
    numbers = {}
    for name, text in row.items():
        if name in ("id", "gaps"):
            continue
        if not (text.isascii() and text.removeprefix("-").isdigit() and len(text) < 20) or abs(int(text)) > _LARGEST:
            raise StowageError(f"{place} has {name} {text!r}, which is not a whole number of 64 bits; correct it")
        numbers[name] = int(text)
    if numbers["upper"] <= numbers["lower"]:
        raise StowageError(f"{place} has upper {numbers['upper']}, which must be above lower {numbers['lower']}")
    for name in ("size", "offset"):
        if numbers.get(name, 0) < 0:
            raise StowageError(f"{place} has {name} {numbers[name]}, which must not be negative")
        if numbers.get(name, 0) > _LARGEST_BYTES:
            raise StowageError(f"{place} has {name} {numbers[name]}, above 2**53; give bytes in a larger unit")
    if numbers["size"] == 0:
        raise StowageError(f"{place} has size 0, which needs no offset; leave the line out")
    return numbers


def _gaps(text: str, lower: int, upper: int, place: str) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for word in text.split():
        match = _GAP.fullmatch(word)
        if match is None:
            raise StowageError(f"{place} has the gap {word!r}; write gaps as 3-5 8-9, begin and end of each")
        begin, end = int(match[1]), int(match[2])
        after = found[-1][1] if found else lower
        if not after < begin < end < upper:
            raise StowageError(
                f"{place} has the gap {word}, which must begin after {after} and end later and before {upper}; "
                "correct it or leave it out"
            )
        found.append((begin, end))
    return tuple(found)


def plan_buffers(graph: Graph, plan: SwapPlan) -> Buffers:
    """A plan's residencies as a packing problem in slots, with the plan's own offsets.

    A storage that leaves and comes back is one buffer per residency, `name#1`, `name#2`; those of zero bytes are left
    out.

    Args:
        graph: the step.
        plan: its plan.
    """
    storages = graph.with_workspaces(dict(plan.workspaces)).storages
    residencies = [residency for residency in plan.residencies if storages[residency.storage].bytes]
    count: dict[str, int] = {}
    ids = []
    for residency in residencies:
        name = storages[residency.storage].name
        count[name] = count.get(name, 0) + 1
        ids.append(f"{name}#{count[name]}")
    table = np.array([(s.start, s.stop, storages[s.storage].bytes, s.offset) for s in residencies], np.int64)
    lower, upper, sizes, offsets = table.reshape(-1, 4).T
    return Buffers(tuple(ids), lower, upper, sizes, offsets)


def buffers_to_csv(buffers: Buffers, offsets: NDArray[np.int64] | None = None) -> str:
    """Buffers as CSV text.

    Args:
        buffers: the problem.
        offsets: `[buffers]`, bytes, for an `offset` column; without it, those of `buffers`, if any.
    """
    offsets = buffers.offsets if offsets is None else offsets
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns: dict[str, Sequence[object]] = {
        "id": buffers.ids, "lower": buffers.lower.tolist(), "upper": buffers.upper.tolist(),
        "size": buffers.sizes.tolist(),
    }  # fmt: skip
    if buffers.gaps is not None:
        columns["gaps"] = [" ".join(f"{begin}-{end}" for begin, end in gaps) for gaps in buffers.gaps]
    if offsets is not None:
        columns["offset"] = offsets.tolist()
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def write_buffers(path: str | Path, buffers: Buffers, offsets: NDArray[np.int64] | None = None) -> None:
    """Write buffers to a CSV file atomically.

    Args:
        path: the file to write.
        buffers, offsets: as in `buffers_to_csv`.

    Raises:
        StowageError: an argument is of another type, or the file cannot be written.
    """
    require_arguments("write_buffers", path=(path, PATH), buffers=(buffers, Buffers))
    if offsets is not None and not isinstance(offsets, np.ndarray):
        raise StowageError(f"offsets must be a NumPy array of bytes, got {type(offsets).__name__}")
    write_text(path, buffers_to_csv(buffers, offsets))
