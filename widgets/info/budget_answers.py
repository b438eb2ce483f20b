"""The header's three answers about a budget: does it fit, what does it cost, and why.

The page shows the answers of `Reasons` as they are. What depends on a budget it also has to say while the slider moves,
before Python has heard of that budget: a test compares its sentences with the ones here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.graph import Graph, Phase
from planner.memory import lifetimes
from planner.units import bytes_label, format_percent, format_seconds, unit_of_bytes
from widgets.info.colour_groups import GROUP_OF, STACK, Group
from widgets.info.op_touches import get_touches
from widgets.info.step_requirements import Feasibility

NONE = "\N{EN DASH}"
_PHASES = {Phase.FORWARD: "forward", Phase.BACKWARD: "backward", Phase.OPTIMIZER: "optimizer"}
_HOLDING = {
    Group.PARAMETER: "Parameters hold",
    Group.OPTIMIZER_STATE: "Optimizer holds",
    Group.INPUT: "Inputs hold",
    Group.ACTIVATION: "Activations hold",
    Group.GRADIENT: "Gradients hold",
    Group.WORKSPACE: "Workspaces hold",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in a few words, and a sentence with further detail.

    Args:
        head: the answer.
        parts: the sentence; the parts that are stressed are in tuples of one.
    """

    head: str
    parts: tuple[str | tuple[str], ...] = ()

    @property
    def rest(self) -> str:
        """The sentence as plain text."""
        return "".join(part if isinstance(part, str) else part[0] for part in self.parts)


@dataclass(frozen=True, slots=True)
class Reasons:
    """What is the same for all budgets with the same verdict.

    Args:
        least: the least budget for which there is a plan, as every sentence names it, rounded up.
        why: by verdict, what needs the memory.
    """

    least: str
    why: dict[str, Answer]


def get_reasons(feasibility: Feasibility) -> Reasons:
    """The answers that do not depend on the exact budget."""
    graph = feasibility.graph
    if not graph.ops:
        why = dict.fromkeys(("fits", "swap", "impossible"), Answer(NONE, ("the step has no ops",)))
    else:
        op, held = unswapped_peak(graph)
        why = {
            "fits": _holding(graph, op, held, "peak"),
            "swap": _holding(graph, op, held, "unswapped peak"),
            "impossible": _too_large_op(feasibility),
        }
    return Reasons(bytes_label(feasibility.least_bytes, round_up=True), why)


def unswapped_peak(graph: Graph) -> tuple[int, NDArray[np.float64]]:
    """The op at which the captured step holds the most memory, and `[6]`, the bytes by kind at that op."""
    life = lifetimes(graph)
    sizes = np.array([storage.bytes for storage in graph.storages], np.float64)
    kinds = np.array([STACK.index(GROUP_OF[storage.kind]) for storage in graph.storages], np.int64)
    change = np.zeros(len(graph.ops) + 1)
    np.add.at(change, life.birth, sizes)
    np.add.at(change, life.end, -sizes)
    op = int(change[:-1].cumsum().argmax())
    there = (life.birth <= op) & (op < life.end)
    return op, np.asarray(np.bincount(kinds[there], sizes[there], len(STACK)), np.float64)


def get_fit(
    verdict: str, budget: int, peak: int, device: int, least: str, swapped: int | None = None, on_cpu: bool = False
) -> Answer:
    """Does the step fit?

    Args:
        verdict: `"fits"`, `"swap"` or `"impossible"`.
        budget, peak, device: bytes of the budget, of the step with nothing swapped, and of the device.
        least: the least budget, as in `Reasons`.
        swapped: bytes that the plan swaps out; None without a plan.
        on_cpu: whether the device is this computer.
    """
    if verdict == "impossible":
        return Answer("Cannot fit", ("needs at least ", (least,)))
    if budget > device and peak > device:
        where = "this computer" if on_cpu else "this GPU"
        return Answer(f"Does not fit {where}", ("needs ", (_of_text(peak, device),)))
    if verdict == "fits":
        return _room(peak, budget, device)
    moved = f", {bytes_label(swapped)} swapped" if swapped else ""
    return Answer("Needs a plan", ((bytes_label(peak - budget),), f" over{moved}"))


def get_cost(seconds: float, ideal: float, samples: int, again: str = "") -> Answer:
    """What does a step within the budget cost?

    Args:
        seconds, ideal: length of the step as planned, and with infinite memory.
        samples: samples in the batch; 0 if unknown.
        again: which ops run again, as `recompute_text` says it.
    """
    over = f"+{format_percent(seconds / ideal - 1)} over ideal" if seconds > ideal * 1.00005 else "ideal, no op waits"
    over += f", {again}" if again else ""
    rate = f", {_rate_text(samples / seconds)} samples/s" if samples and seconds else ""
    return Answer(f"{format_seconds(seconds)} per step", (over + rate,))


def _room(peak: int, budget: int, device: int) -> Answer:
    """Nothing is swapped: what is left of the budget, or of the device where the budget leaves nothing."""
    limit = min(budget, device)
    if limit > peak:
        return Answer("Fits", ((bytes_label(limit - peak),), " to spare, nothing moves"))
    if device > peak:
        return Answer("Fits", ((bytes_label(device - peak),), " more on the device, nothing moves"))
    return Answer("Fits", ("to the last byte, nothing moves",))


def _of_text(size: int, whole: int) -> str:
    """Two amounts in the unit of the larger: `28.7 of 14.9 GiB`."""
    unit = unit_of_bytes(max(size, whole))
    amounts = (f"{each / unit.size:.{1 if each >= 0.0995 * unit.size else 3}f}" for each in (size, whole))
    return f"{' of '.join(amounts)} {unit.name}"


def _rate_text(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _holding(graph: Graph, op: int, held: NDArray[np.float64], where: str) -> Answer:
    total = float(held.sum())
    if not total:
        return Answer(NONE, ("the step holds no memory",))
    most = int(held.argmax())
    head = f"{_HOLDING[STACK[most]]} {100 * held[most] / total:.0f} %"
    return Answer(head, (f"of the {where}, in ", (_op_title(graph, op),)))


def _too_large_op(feasibility: Feasibility) -> Answer:
    graph, op = feasibility.graph, feasibility.least_op
    if op < 0:
        return Answer("The step is too large")
    least = min(float(get_touches(graph).bytes[op]), feasibility.least_bytes)  # less where it overwrites an input
    needs = f" {_PHASES[graph.ops[op].phase]} needs {bytes_label(least)} at once"
    return Answer("One op is too large", ((_op_title(graph, op),), needs))


def _op_title(graph: Graph, op: int) -> str:
    """The module of an op, with its class if the name is only a number; the op's target outside of all modules."""
    module = graph.ops[op].module
    if not module:
        return graph.ops[op].target.removeprefix("aten.").removeprefix("planner.").removesuffix(".default")
    kind = graph.modules.get(module, "")
    return f"{module} ({kind})" if kind and module.isdigit() else module
