"""The header of the workbench in words, from the same messages: does it fit, what does it cost, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from widgets.info import Answer, get_cost, get_fit
from widgets.messages import Message

_NONE = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class Answered:
    """A question, its answer in a few words, and further detail."""

    question: str
    head: str
    rest: str


def get_answers(messages: Mapping[str, Message]) -> tuple[Answered, ...]:
    """The three answers; empty until the memory the step needs is known.

    Args:
        messages: the latest message of each kind, by kind.
    """
    if not {"graph", "machine", "budget"} <= set(messages):
        return ()
    graph, machine, budget = (messages[kind].content for kind in ("graph", "machine", "budget"))
    plan = messages["plan"].content if "plan" in messages and not messages["plan"].content["placeholder"] else None
    verdict = str(budget["verdict"])
    fit = get_fit(
        verdict, budget["budget_bytes"], machine["step_peak_bytes"], machine["device_bytes"], machine["least"],
        None if plan is None else plan["bytes_out"], machine["name"] == "cpu",
    )  # fmt: skip
    why = machine["why"][verdict]
    return (
        _answered("Does it fit?", fit),
        _answered("What does it cost?", _cost(verdict, budget, plan, graph["samples"])),
        Answered("Why?", why["head"], "".join("".join(part) for part in why["parts"])),
    )


def _answered(question: str, answer: Answer) -> Answered:
    return Answered(question, answer.head, answer.rest)


def _cost(verdict: str, budget: Mapping[str, Any], plan: Mapping[str, Any] | None, samples: int) -> Answer:
    if verdict == "impossible":
        return Answer(_NONE, ("no plan at this budget",))
    if plan is None:
        return Answer(_NONE, (budget["sentence"] or budget["doing"] or "no valid plan found yet",))
    return get_cost(plan["step_seconds"], plan["ideal_seconds"], samples, plan["again"])
