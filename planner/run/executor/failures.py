"""Error messages for ops that raise while a plan runs: one sentence that names the op and its module."""

from __future__ import annotations

import torch

from planner.errors import StowageError, first_line
from planner.graph import Graph, Phase
from planner.plan import SwapPlan
from planner.units import format_bytes


def explain(error: Exception, graph: Graph, plan: SwapPlan, slot: int, number: int) -> StowageError:
    """The error to raise for a failed step.

    Args:
        error: raised by an op's kernel.
        graph, plan: what is run.
        slot: in which the op ran.
        number: the step's number, from 0.
    """
    facts = graph.ops[plan.order[slot]]
    where = f"module {facts.module}" if facts.module else "the model"
    if facts.phase is Phase.OPTIMIZER and not facts.module:
        where = "the optimizer"
    kind = graph.modules.get(facts.module, "")
    if isinstance(error, torch.OutOfMemoryError):
        return StowageError(
            f"{facts.name} ({facts.target}) in {where} found too little GPU memory beside the arena of "
            f"{format_bytes(plan.peak_bytes)} in the {facts.phase} pass of step {number + 1}, where the plan's budget "
            f"is {format_bytes(plan.budget_bytes)}: allow more, plan for the graph that "
            'planner.profile.prepare(step, "auto") returns, which counts what ops take here, or end what else takes '
            "memory of the GPU meanwhile"
        )
    return StowageError(
        f"{facts.target} in {where}{f' ({kind})' if kind else ''}{f' at {facts.source}' if facts.source else ''} "
        f"raised {type(error).__name__} in the {facts.phase} pass of step {number + 1} ({first_line(error)}): correct "
        "what the batch or the module gives it, or make the step run in eager PyTorch first"
    )
