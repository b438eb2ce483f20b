"""The fastest of all plans of a very small step, by trying them all. It shares no code with the planner.

The space, in the words of `planner.plan.schema`: every order that keeps the dependencies; a storage that lives over
steps is on the device at both ends of the step, at one address, or at neither, and an input at the start or not; in
every span between two uses, before the first and after the last, each storage stays, or leaves at some slot `release`
and comes back from some slot `start`; a copy out is made where the host copy is not valid, and may begin once the
value is there; the result of an op reuses an input's memory or not; both copy queues in every order; every placement
in memory. Left out is only what takes more memory and gains no time: copies that nothing needs, waiting that nothing
asks for, memory held before or after it is of use.

It needs a link whose two directions do not slow each other: then fewer copies and fewer waits are never slower, so
that what is decided so far bounds what can become of it, and whole branches go unvisited.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fcntl import LOCK_EX, flock
from itertools import combinations, pairwise, product
from math import prod
from pathlib import Path

import numpy as np

from planner.graph import Graph, Kind, fingerprint
from planner.machine import Machine
from planner.plan import (
    HostResidency,
    Residency,
    SwapIn,
    SwapOut,
    SwapPlan,
    Timeline,
    device_queues,
)
from planner.swap import simulate
from tests.swap import exhaustive_kernel
from tests.swap.exhaustive_kernel import search

UNIT = 64
_NONE = -9


@dataclass(frozen=True)
class Gap:
    """A span in which a storage may be away; `least` and `most` are the slots it may be released in, and so on."""

    storage: int
    ready: int  # of the copy out; _NONE where there is none
    release: tuple[int, int]  # _NONE: never there before
    start: tuple[int, int]  # _NONE: does not come back
    use: int


@dataclass(frozen=True)
class Found:
    """A plan: per storage its stays (start, stop, offset in units), and the two queues."""

    order: tuple[int, ...]
    seconds: float
    stays: tuple[tuple[int, int, int, int], ...]
    outs: tuple[tuple[int, int, int], ...]
    ins: tuple[tuple[int, int, int], ...]


def orders(graph: Graph, most: int) -> list[tuple[int, ...]]:
    """All topological orders; one more than `most` at most. Random ops are not in these graphs."""
    found: list[tuple[int, ...]] = []
    after = [set(before) for before in graph.dependencies]

    def extend(done: list[int]) -> None:
        if len(found) > most:
            return
        if len(done) == len(after):
            found.append(tuple(done))
        for op, before in enumerate(after):
            if op not in done and before <= set(done):
                extend([*done, op])

    extend([])
    return found


def ways(graph: Graph, order: tuple[int, ...]) -> int:
    """In how many ways the storages may be away in this order, slots and queues aside."""
    touched, wrote = _uses(graph, order)
    return prod(sum(1 for _ in _patterns(graph, order, s, touched[s], wrote.get(s, []), False)) for s in touched)


def optimum(
    graph: Graph, seconds: list[float], bandwidth: float, budget: int, chosen: list[tuple[int, ...]], below: float
) -> Found | None:
    """The fastest plan in one of these orders that takes less than `below` seconds; None where there is none."""
    best: Found | None = None
    ideal = sum(seconds)
    for order in chosen:
        for reused_buffers in _reusable_buffers(graph, order):
            if below <= ideal * (1 + 1e-12):
                return best
            found = _in_order(graph, seconds, bandwidth, budget // UNIT, order, reused_buffers, below)
            if found is not None:
                best, below = found, found.seconds
    return best


def _reusable_buffers(graph: Graph, order: tuple[int, ...]) -> Iterator[dict[int, int]]:
    """Every way to reuse buffers: by new storage, the storage whose buffer it reuses."""
    last = {s: slot for slot, op in enumerate(order) for s in (*graph.reads[op], *graph.writes[op])}
    options: list[list[tuple[int, int]]] = []
    for slot, op in enumerate(order):
        node = graph.ops[op]
        if not node.overwrites:
            continue
        created = graph.tensors[node.outputs[0]].storage
        candidates = {graph.tensors[tensor].storage for tensor in node.overwrites}
        for s in candidates:
            storage = graph.storages[s]
            temporary = not storage.live_in and s not in graph.output_storages and last[s] == slot
            if temporary and storage.bytes == graph.storages[created].bytes:
                options.append([(-1, -1), (created, s)])
    for combination in product(*reversed(options)):
        reused = [pair for pair in reversed(combination) if pair[0] >= 0]
        if len({created for created, _ in reused}) == len(reused):
            yield dict(reused)


def _patterns(
    graph: Graph, order: tuple[int, ...], storage: int, touched: list[int], wrote: list[int], given: bool
) -> Iterator[tuple[int, int, list[Gap]]]:
    """Every choice of spans to be away in: start and stop of it all, and the gaps."""
    facts, n, last = graph.storages[storage], len(order), touched[-1]
    kept = storage in graph.output_storages
    ends: list[tuple[str, str]]
    if facts.persistent:
        ends = [("here", "here"), ("here", "back"), ("away", "away")] + [("leaves", "here")] * bool(wrote)
    elif facts.live_in:
        ends = [("here", "dies"), ("away", "dies")]
    else:
        ends = [("made", "here"), ("made", "away")] if kept else [("made", "dies")]
    between = list(pairwise(touched))
    for first, final in ends:
        for bridged in (some for count in range(len(between) + 1) for some in combinations(between, count)):
            valid = facts.live_in and not (first in {"here", "leaves"} and wrote)
            absences: list[Gap] = []
            if first == "away":
                absences.append(Gap(storage, _NONE, (_NONE, _NONE), (0, touched[0]), touched[0]))
            if first == "leaves":
                if touched[0] < 1:
                    break
                absences.append(Gap(storage, -1, (1, touched[0]), (1, touched[0]), touched[0]))
                valid = True
            for u, v in bridged:
                valid &= not any(u >= slot and _after(absences, slot) for slot in wrote)
                made = max((slot for slot in wrote if slot <= u), default=-1)
                late = v - 1 if given and v == last else v
                if late <= u:
                    break
                absences.append(
                    Gap(storage, _NONE if valid else made, (u + 1, u + 1 if valid else late), (u + 1, late), v)
                )
                valid = True
            else:
                valid &= not any(_after(absences, slot) for slot in wrote)
                made = max(wrote, default=-1)
                if final == "back":
                    if last + 1 > n - 1:
                        break
                    out = (last + 1, last + 1 if valid else n - 1)
                    absences.append(Gap(storage, _NONE if valid else made, out, (last + 1, n - 1), n))
                if final == "away":
                    out = (last + 1, last + 1 if valid else n)
                    absences.append(Gap(storage, _NONE if valid else made, out, (_NONE, _NONE), n))
                begin = touched[0] if first == "made" else 0
                stop = last + (not given) if final == "dies" else n
                yield begin, stop, absences


def _uses(graph: Graph, order: tuple[int, ...]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Per storage, the slots that read or write it, and those that write it."""
    touched: dict[int, list[int]] = {}
    wrote: dict[int, list[int]] = {}
    for slot, op in enumerate(order):
        node = graph.ops[op]
        for s in {*graph.reads[op], *graph.writes[op], *([node.workspace] if node.workspace >= 0 else [])}:
            touched.setdefault(s, []).append(slot)
        for s in graph.writes[op]:
            wrote.setdefault(s, []).append(slot)
    return touched, wrote


def _after(absences: list[Gap], slot: int) -> bool:
    """Whether a write came after the last copy out."""
    copied = [absence.ready for absence in absences if absence.ready != _NONE]
    return not copied or slot > copied[-1]


@contextmanager
def _compiled_once() -> Iterator[None]:
    """Let one of the test processes compile the search, which takes ten seconds; the others load what it has made."""
    if search.signatures:
        yield
        return
    with Path(exhaustive_kernel.__file__).open() as kernel:
        flock(kernel, LOCK_EX)
        yield


def _in_order(
    graph: Graph,
    seconds: list[float],
    bandwidth: float,
    memory: int,
    order: tuple[int, ...],
    reused_buffers: dict[int, int],
    below: float,
) -> Found | None:
    touched, wrote = _uses(graph, order)
    storages = sorted(touched, key=lambda s: -graph.storages[s].bytes)
    rows: list[tuple[int, int, int, int]] = []  # per pattern: begin, stop, first gap, after the last
    starts, absences = [0], []
    for s in storages:
        given = s in reused_buffers.values()
        for begin, stop, own in sorted(
            _patterns(graph, order, s, touched[s], wrote.get(s, []), given), key=lambda row: len(row[2])
        ):
            rows.append((begin, stop, len(absences), len(absences) + len(own)))
            absences += own
        starts.append(len(rows))
    index = {s: at for at, s in enumerate(storages)}
    table = np.array(
        [
            (index[absence.storage], absence.ready, *absence.release, *absence.start, absence.use)
            for absence in absences
        ],
        np.int64,
    ).reshape(-1, 7)
    reusers = np.full(len(storages), -1, np.int64)
    for made, reused_buffer in reused_buffers.items():
        reusers[index[reused_buffer]] = index[made]
    persistent = np.array([graph.storages[s].persistent for s in storages])
    sizes = np.array([graph.storages[s].bytes // UNIT for s in storages], np.int64)
    reused = set(reused_buffers.values())
    uses = np.array([sum(1 << slot for slot in touched[s] if not (s in reused and slot == touched[s][-1]))
                     for s in storages], np.int64)  # fmt: skip
    result = np.zeros((1 + 64, 4), np.int64)
    queues = np.zeros((2, 64, 3), np.int64)
    with _compiled_once():
        best = search(
            np.array([seconds[op] for op in order]), memory, sizes, UNIT / bandwidth, uses, np.array(starts, np.int64),
            np.array(rows, np.int64), table, reusers, persistent, below, result, queues,
        )  # fmt: skip
    if best >= below:
        return None
    stays = tuple(
        (storages[s], start, stop, offset) for s, start, stop, offset in result[1 : 1 + result[0, 0]].tolist()
    )
    outs, ins = (
        tuple((storages[s], first, then) for s, first, then in queues[way, : result[0, 1 + way]].tolist())
        for way in (0, 1)
    )
    assert all(graph.storages[s].kind is not Kind.WORKSPACE for s, _, _ in (*outs, *ins))
    return Found(order, best, stays, outs, ins)


def plan_of(found: Found, graph: Graph, machine: Machine, budget: int, seconds: list[float]) -> SwapPlan:
    """What was found, written down as a plan."""
    n = len(found.order)
    sizes = [storage.bytes for storage in graph.storages]
    slots: dict[int, list[int]] = {}
    for slot, op in enumerate(found.order):
        for s in (*graph.reads[op], *graph.writes[op]):
            slots.setdefault(s, []).append(slot)
    here = {s for s, start, _, _ in found.stays if start == 0} - {s for s, start, _ in found.ins if start == 0}
    away = {s for s, _, _ in (*found.outs, *found.ins)} | {
        s for s in slots if graph.storages[s].live_in and s not in here
    }
    updated = {s for written in graph.writes for s in written}
    away |= {s for s in here if graph.storages[s].kind is Kind.INPUT and s in graph.output_storages}
    host, top = [], 0
    for s in sorted(away):  # one place each, for as long as a copy is there
        first = -1 if graph.storages[s].live_in else min(ready for t, ready, _ in found.outs if t == s)
        host.append(HostResidency(s, first, n, top))
        top += sizes[s]
    assert all(s in updated or graph.storages[s].live_in for s in away)
    plan = SwapPlan(
        graph=fingerprint(graph),
        machine=machine.name,
        method="exhaustive",
        budget_bytes=budget,
        host_budget_bytes=None,
        alignment=UNIT,
        queues=device_queues(found.order, (SwapOut(*row) for row in found.outs), (SwapIn(*row) for row in found.ins)),
        workspaces=tuple((op.id, sizes[op.workspace]) for op in graph.ops if op.workspace >= 0),
        residencies=tuple(Residency(s, start, stop, offset * UNIT) for s, start, stop, offset in found.stays),
        host_residencies=tuple(host),
        peak_bytes=max(offset * UNIT + sizes[s] for s, _, _, offset in found.stays),
        host_bytes=top,
        predicted=Timeline.of_device(0.0, *(np.zeros((0, 2)),) * 3, np.zeros(0), np.zeros(0, np.int64)),
    )
    return replace(plan, predicted=simulate(plan, graph, machine, np.array(seconds)))
