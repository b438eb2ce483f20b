"""The explanation of a plan, as data and as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from planner.plan import WaitShare
from planner.swap.explain.bottleneck import StepBottleneck
from planner.swap.explain.decisions import SwapDecision
from planner.units import format_bytes, format_seconds, several

_MOST = 8


@dataclass(frozen=True, slots=True)
class Holding:
    """A storage that is on the device, in bytes."""

    storage: int
    name: str
    kind: str
    bytes: int


@dataclass(frozen=True, slots=True)
class StorageStall:
    """How long compute waits for the copies of a storage: `seconds = in_seconds + out_seconds`."""

    storage: int
    name: str
    kind: str
    bytes: int
    seconds: float
    in_seconds: float
    out_seconds: float


@dataclass(frozen=True, slots=True)
class OpStall:
    """How long an op waits; `op` is -1 and `name` empty for the end of the step, which waits for all copies."""

    op: int
    name: str
    slot: int
    seconds: float


@dataclass(frozen=True)
class Explanation:
    """The explanation of a plan; `print` shows it as text, `to_json()` returns plain data.

    Args:
        name, machine, method: what was planned, for which machine, and which planner made it.
        budget_bytes: the limit.
        arena_bytes: size of the device arena, gaps between storages included.
        peak_bytes: the most bytes of storages on the device at once.
        peak_slot, peak_op: the slot of that peak, and the name of the op that runs then.
        holders: the storages on the device then, the largest first.
        bytes_by_kind: their bytes by kind, the largest first.
        step_seconds, compute_seconds, stall_seconds: length of the step, time of its ops, and time between them; the
            last is the sum of `waits` and, up to rounding, the difference of the other two.
        waits: every wait by slot, split among the copies that cause it.
        stalls_by_storage, stalls_by_op: the waits summed up, the longest first; each adds up to `stall_seconds`.
        limit: what limits the step, and how busy the link is.
        decisions: the decision on every storage and why, the largest first.
        approximate: in what a plan made on the machine itself may differ, in a sentence; empty where in nothing.
        outside_bytes: what ops and libraries take outside of the arena, which is part of the limit.
    """

    name: str
    machine: str
    method: str
    budget_bytes: int
    arena_bytes: int
    peak_bytes: int
    peak_slot: int
    peak_op: str
    holders: tuple[Holding, ...]
    bytes_by_kind: tuple[tuple[str, int], ...]
    step_seconds: float
    compute_seconds: float
    stall_seconds: float
    waits: tuple[WaitShare, ...]
    stalls_by_storage: tuple[StorageStall, ...]
    stalls_by_op: tuple[OpStall, ...]
    limit: StepBottleneck
    decisions: tuple[SwapDecision, ...]
    approximate: str = ""
    outside_bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        """All of it as dictionaries, lists, numbers and text; the JSON calls decisions `fates`."""
        data = asdict(self)
        data["bytes_by_kind"] = dict(self.bytes_by_kind)
        data["fates"] = [
            {"verdict" if name == "decision" else name: value for name, value in decision.items()}
            for decision in data.pop("decisions")
        ]
        return data

    def __repr__(self) -> str:
        return _text_of(self)


def _text_of(explanation: Explanation) -> str:
    """The explanation in paragraphs, each list cut after its largest entries."""
    caution = [f"Approximate: {explanation.approximate}"] if explanation.approximate else []
    parts = [_step(explanation), _peak(explanation), _stalls(explanation), _decisions_text(explanation)]
    return "\n\n".join([*parts, *caution])


def _step(explanation: Explanation) -> str:
    limit, stall = explanation.limit, format_seconds(explanation.stall_seconds)
    waits = (
        f"{stall} of it waiting ({explanation.stall_seconds / explanation.step_seconds:.1%})"
        if explanation.waits
        else "never waiting"
    )
    return (
        f"{explanation.name} on {explanation.machine}: {format_seconds(explanation.step_seconds)} per step, {waits}.\n"
        f"  {limit.words[:1].upper()}{limit.words[1:]}.\n"
        f"  The link is busy for {limit.in_busy:.0%} of the step inwards and {limit.out_busy:.0%} outwards."
    )


def _peak(explanation: Explanation) -> str:
    kinds = ", ".join(f"{kind.replace('_', ' ')} {format_bytes(size)}" for kind, size in explanation.bytes_by_kind)
    lines = [f"{format_bytes(one.bytes):>9}  {one.name} ({one.kind.replace('_', ' ')})" for one in explanation.holders]
    outside = explanation.outside_bytes
    beside = f", and ops and libraries take {format_bytes(outside)} outside of its arena" if outside else ""
    head = (
        f"Peak: {format_bytes(explanation.peak_bytes)} of {format_bytes(explanation.budget_bytes)} "
        f"at op {explanation.peak_slot} ({explanation.peak_op or 'none'}): {kinds or 'nothing'}; "
        f"with fragmentation the plan takes {format_bytes(explanation.arena_bytes)}{beside}."
    )
    return _listed(head, lines, "storage")


def _stalls(explanation: Explanation) -> str:
    if not explanation.waits:
        return "Exposed copies: none."
    storages = [
        f"{format_seconds(one.seconds):>8}  {one.name}, {format_bytes(one.bytes)} "
        f"({format_seconds(one.in_seconds)} to come in, {format_seconds(one.out_seconds)} to go out)"
        for one in explanation.stalls_by_storage
    ]
    ops = [f"{format_seconds(one.seconds):>8}  {one.name or 'the end of the step'}" for one in explanation.stalls_by_op]
    return "\n".join(
        [_listed("Exposed copies, by storage:", storages, "storage"), _listed("and by the op that waits:", ops, "op")]
    )


def _decisions_text(explanation: Explanation) -> str:
    parts = []
    for decision in ("swapped", "recomputed", "dropped", "kept", "unused"):
        chosen = [one for one in explanation.decisions if one.decision == decision]
        if chosen:
            size = format_bytes(sum(one.bytes for one in chosen))
            spread = " summed over the whole step" if decision == "kept" else ""
            head = f"{decision.capitalize()}: {several(len(chosen), 'storage')}, {size}{spread}."
            parts.append(_listed(head, _why(chosen), ""))
    return "\n\n".join(parts)


def _why(decisions: Iterable[SwapDecision]) -> list[str]:
    return [f"{format_bytes(one.bytes):>9}  {one.name}: {one.reason.partition(': ')[2]}" for one in decisions]


def _listed(head: str, lines: list[str], noun: str) -> str:
    more = len(lines) - _MOST
    rest = [f"    and {several(more, f'more {noun}'.strip()) if noun else f'{more:,} more'}"] if more > 0 else []
    return "\n".join([head, *(f"  {line}" for line in lines[:_MOST]), *rest])
