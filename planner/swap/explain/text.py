"""An explanation as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from planner.swap.wording import format_seconds, several
from planner.units import format_bytes

if TYPE_CHECKING:
    from planner.swap.explain.decisions import Fate
    from planner.swap.explain.report import Explanation

_MOST = 8


def text_of(explanation: Explanation) -> str:
    """The explanation in paragraphs, each list cut after its largest entries."""
    return "\n\n".join([_step(explanation), _peak(explanation), _stalls(explanation), _fates(explanation)])


def _step(it: Explanation) -> str:
    limit, stall = it.limit, format_seconds(it.stall_seconds)
    waits = f"{stall} of it waiting ({it.stall_seconds / it.step_seconds:.1%})" if it.waits else "never waiting"
    return (
        f"{it.name} on {it.machine}: {format_seconds(it.step_seconds)} per step, {waits}.\n"
        f"  {limit.words[:1].upper()}{limit.words[1:]}.\n"
        f"  The link is busy for {limit.in_busy:.0%} of the step inwards and {limit.out_busy:.0%} outwards."
    )


def _peak(it: Explanation) -> str:
    kinds = ", ".join(f"{kind.replace('_', ' ')} {format_bytes(size)}" for kind, size in it.bytes_by_kind)
    lines = [f"{format_bytes(one.bytes):>9}  {one.name} ({one.kind.replace('_', ' ')})" for one in it.holders]
    head = (
        f"Peak: {format_bytes(it.peak_bytes)} of {format_bytes(it.budget_bytes)} "
        f"at op {it.peak_slot} ({it.peak_op or 'none'}): {kinds or 'nothing'}; "
        f"with fragmentation the plan takes {format_bytes(it.arena_bytes)}."
    )
    return _listed(head, lines, "storage")


def _stalls(it: Explanation) -> str:
    if not it.waits:
        return "Exposed copies: none."
    storages = [
        f"{format_seconds(one.seconds):>8}  {one.name}, {format_bytes(one.bytes)} "
        f"({format_seconds(one.in_seconds)} to come in, {format_seconds(one.out_seconds)} to go out)"
        for one in it.stalls_by_storage
    ]
    ops = [f"{format_seconds(one.seconds):>8}  {one.name or 'the end of the step'}" for one in it.stalls_by_op]
    return "\n".join(
        [_listed("Exposed copies, by storage:", storages, "storage"), _listed("and by the op that waits:", ops, "op")]
    )


def _fates(it: Explanation) -> str:
    parts = []
    for verdict in ("swapped", "dropped", "kept", "unused"):
        some = [fate for fate in it.fates if fate.verdict == verdict]
        if some:
            size = format_bytes(sum(fate.bytes for fate in some))
            spread = " summed over the whole step" if verdict == "kept" else ""
            head = f"{verdict.capitalize()}: {several(len(some), 'storage')}, {size}{spread}."
            parts.append(_listed(head, _why(some), ""))
    return "\n\n".join(parts)


def _why(fates: Iterable[Fate]) -> list[str]:
    return [f"{format_bytes(fate.bytes):>9}  {fate.name}: {fate.reason.partition(': ')[2]}" for fate in fates]


def _listed(head: str, lines: list[str], noun: str) -> str:
    more = len(lines) - _MOST
    rest = [f"    and {several(more, f'more {noun}'.strip()) if noun else f'{more:,} more'}"] if more > 0 else []
    return "\n".join([head, *(f"  {line}" for line in lines[:_MOST]), *rest])
