"""Error messages for ops that raise while a plan runs: one sentence that names the op and its module."""

from __future__ import annotations

from planner.errors import StowageError, first_line
from planner.graph import Graph, Phase


def explain(error: Exception, graph: Graph, op: int, number: int) -> StowageError:
    """The error to raise for a failed step.

    Args:
        error: raised by the op's kernel.
        graph: the graph.
        op: the op that ran.
        number: the step's number, from 0.
    """
    facts = graph.ops[op]
    where = f"module {facts.module}" if facts.module else "the model"
    if facts.phase is Phase.OPTIMIZER and not facts.module:
        where = "the optimizer"
    kind = graph.modules.get(facts.module, "")
    return StowageError(
        f"{facts.target} in {where}{f' ({kind})' if kind else ''}{f' at {facts.source}' if facts.source else ''} "
        f"raised {type(error).__name__} in the {facts.phase} pass of step {number + 1} ({first_line(error)}): correct "
        "what the batch or the module gives it, or make the step run in eager PyTorch first"
    )
