"""The header of the workbench in words, from the same messages: does it fit, what does it cost, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.units import bytes_label, format_percent, format_seconds, unit_of_bytes
from widgets.info import STACK, Group
from widgets.messages import Message, unpack

_NONE = "\N{EN DASH}"
_PHASES = ("forward", "backward", "optimizer")


@dataclass(frozen=True, slots=True)
class Answer:
    """A question, its answer in a few words, and further detail."""

    question: str
    head: str
    rest: str


def get_answers(messages: Mapping[str, Message]) -> tuple[Answer, ...]:
    """The three answers; empty until the memory the step needs is known.

    Args:
        messages: the latest message of each kind, by kind.
    """
    if not {"graph", "machine", "budget"} <= set(messages):
        return ()
    graph, machine, budget = (messages[kind].content for kind in ("graph", "machine", "budget"))
    plan = messages["plan"].content if "plan" in messages and not messages["plan"].content["placeholder"] else None
    verdict = str(budget["verdict"])
    return (
        Answer("Does it fit?", *_fit(verdict, budget["budget_bytes"], machine, plan)),
        Answer("What does it cost?", *_cost(verdict, budget, plan, graph["samples"])),
        Answer("Why?", *_why(verdict, messages["graph"], machine)),
    )


def _fit(verdict: str, budget: int, machine: Mapping[str, Any], plan: Mapping[str, Any] | None) -> tuple[str, str]:
    peak = machine["step_peak_bytes"]
    if verdict == "impossible":
        return "Cannot fit", f"needs at least {bytes_label(machine['least_bytes'])}"
    if budget > machine["device_bytes"] and peak > machine["device_bytes"]:
        return _too_large(machine)
    if verdict == "fits":
        return _room(peak, budget, machine["device_bytes"])
    swapped = f", {bytes_label(plan['bytes_out'])} swapped" if plan else ""
    return "Needs swap", f"{bytes_label(peak - budget)} over{swapped}"


def _too_large(machine: Mapping[str, Any]) -> tuple[str, str]:
    """The answer where both the budget and the step's peak exceed the device's memory."""
    where = "this computer" if machine["name"] == "cpu" else "this GPU"
    return f"Does not fit {where}", f"needs {_of_text(machine['step_peak_bytes'], machine['device_bytes'])}"


def _of_text(size: int, whole: int) -> str:
    """Two amounts in the unit of the larger: `28.7 of 14.9 GiB`."""
    unit = unit_of_bytes(max(size, whole))
    amounts = (f"{each / unit.size:.{1 if each >= 0.0995 * unit.size else 3}f}" for each in (size, whole))
    return f"{' of '.join(amounts)} {unit.name}"


def _room(peak: int, budget: int, device: int) -> tuple[str, str]:
    """Nothing is swapped: what is left of the budget, or of the device where the budget leaves nothing."""
    limit = min(budget, device)
    if limit > peak:
        return "Fits", f"{bytes_label(limit - peak)} to spare, nothing moves"
    if device > peak:
        return "Fits", f"{bytes_label(device - peak)} more on the device, nothing moves"
    return "Fits", "to the last byte, nothing moves"


def _cost(
    verdict: str, budget: Mapping[str, Any], plan: Mapping[str, Any] | None, samples: int
) -> tuple[str, str]:  # fmt: skip
    if verdict == "impossible":
        return _NONE, "no plan at this budget"
    if plan is None:
        return _NONE, budget["sentence"] or budget["doing"] or "no valid plan found yet"
    seconds, ideal = plan["step_seconds"], plan["ideal_seconds"]
    over = f"+{format_percent(seconds / ideal - 1)} over ideal" if seconds > ideal * 1.00005 else "ideal, no op waits"
    rate = f", {_rate_text(samples / seconds)} samples/s" if samples and seconds else ""
    return f"{format_seconds(seconds)} per step", over + rate


def _rate_text(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _why(verdict: str, graph: Message, machine: Mapping[str, Any]) -> tuple[str, str]:
    columns, op = unpack(graph), machine["least_op"]
    if not len(columns["op_target"]):
        return _NONE, "the step has no ops"
    if verdict == "impossible":
        if op < 0:
            return "The step is too large", ""
        least = min(float(columns["op_working_set"][op]), machine["least_bytes"])  # less where it overwrites an input
        phase, needs = _PHASES[columns["op_phase"][op]], bytes_label(least)
        return "One op is too large", f"{_op_name(graph, columns, op)} {phase} needs {needs} at once"
    op, held = _unswapped_peak(columns)
    total = float(held.sum())
    if not total:
        return _NONE, "the step holds no memory"
    most = int(held.argmax())
    where = "unswapped peak" if verdict == "swap" else "peak"
    label = STACK[most].value
    verb = "holds" if STACK[most] in (Group.INPUT, Group.WORKSPACE) else "hold"
    return f"{label.capitalize()} {verb} {format_percent(held[most] / total)}", (
        f"of the {where}, in {_op_name(graph, columns, op)}"
    )


def _unswapped_peak(columns: Mapping[str, Any]) -> tuple[int, Any]:
    """The op at which the captured step holds the most memory, and the bytes by kind at that op."""
    sizes, birth, end = columns["storage_bytes"], columns["storage_birth"], columns["storage_end"]
    change = np.zeros(len(columns["op_target"]) + 1)
    np.add.at(change, birth, sizes)
    np.add.at(change, end, -sizes)
    op = int(change[:-1].cumsum().argmax())
    there = (birth <= op) & (op < end)
    return op, np.bincount(columns["storage_kind"][there], sizes[there], len(STACK))


def _op_name(graph: Message, columns: Mapping[str, Any], op: int) -> str:
    names: Sequence[str] = graph.content["module_paths"]
    target: str = graph.content["targets"][columns["op_target"][op]]
    module = columns["op_module"][op]
    kind = graph.content["module_kinds"][module]
    if kind and names[module].isdigit():
        return f"{names[module]} ({kind})"
    return names[module] or target.removeprefix("aten.").removesuffix(".default")
