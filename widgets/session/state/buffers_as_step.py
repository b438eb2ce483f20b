"""Buffers of a CSV file as a step and a plan that moves nothing, so that they are drawn as those of a step are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.errors import StowageError
from planner.graph import Graph, GraphBuilder, Kind
from planner.machine import PRESETS, Machine
from planner.memory import Buffers, pack
from planner.plan import SwapPlan, validate
from widgets.info import assess_feasibility

#: Seconds that a unit of a file's time is drawn as.
_UNIT = 1e-6


def buffers_as_step(buffers: Buffers, name: str) -> tuple[Graph, SwapPlan, Machine]:
    """A step with an op for each span of time in which no buffer comes or goes, its plan, and a machine for both.

    Args:
        buffers: with their offsets; those without are packed first.
        name: of the step.

    Raises:
        StowageError: there are no buffers, or two that are alive at once share a byte.
    """
    if not buffers.ids:
        raise StowageError(f"{name} lists no buffers: add a line for each")
    parts = _parts(buffers)
    names, lower, upper, buffer = zip(*parts, strict=True)
    times, at = np.unique(np.array([lower, upper]), return_inverse=True)
    first, last = at.reshape(2, -1) - [[0], [1]]
    sizes = buffers.sizes[list(buffer)]
    build = GraphBuilder(name)
    tensors = [
        build.add_tensor(part, build.add_storage(part, size, Kind.ACTIVATION), [size], dtype="uint8")
        for part, size in zip(names, sizes.tolist(), strict=True)
    ]
    for span, (begin, end) in enumerate(zip(times[:-1].tolist(), times[1:].tolist(), strict=True)):
        read = np.flatnonzero((last == span) & (first < span))
        written = np.flatnonzero(first == span)
        build.add_op(f"{begin} to {end}", "time", [tensors[k] for k in read], [tensors[k] for k in written])
    graph = build.build()
    host = PRESETS["v100-16gb"]
    exact = replace(host, devices=tuple(replace(device, alignment=1) for device in host.devices))
    seconds = np.diff(times).astype(np.float64) * _UNIT
    plan = assess_feasibility(graph, exact, seconds).captured
    offsets = buffers.offsets
    if offsets is None and buffers.gaps is not None:
        offsets = pack(buffers.lower, buffers.upper, buffers.sizes, gaps=buffers.gaps).offsets
    if offsets is not None:
        at = offsets[list(buffer)]
        residencies = tuple(replace(one, offset=int(at[one.storage])) for one in plan.residencies)
        peak = int((at + sizes).max())
        plan = replace(plan, residencies=residencies, peak_bytes=peak, budget_bytes=peak)
    plan = replace(plan, method="packed")
    if problems := validate(plan, graph):
        raise StowageError(f"the offsets of {name} are not valid: {problems[0].rstrip('.')}; correct or leave them out")
    return graph, plan, exact


def _parts(buffers: Buffers) -> list[tuple[str, int, int, int]]:
    """Name, begin, end and buffer of each time that a buffer is alive without a gap."""
    parts = []
    for k, name in enumerate(buffers.ids):
        gaps = buffers.gaps[k] if buffers.gaps is not None else ()
        ends = [int(buffers.lower[k]), *(time for gap in gaps for time in gap), int(buffers.upper[k])]
        alive = list(zip(ends[::2], ends[1::2], strict=True))
        parts += [(f"{name}#{n}" if gaps else name, *times, k) for n, times in enumerate(alive, 1)]
    return parts
