"""Who cannot yet work with a plan in which an op runs more than once says so, in one sentence."""

from __future__ import annotations

from planner.errors import StowageError
from planner.graph import Graph
from planner.plan.schema.swap_plan import SwapPlan


def require_each_op_once(graph: Graph, plan: SwapPlan, who: str) -> None:
    """Refuse a plan in which an op runs again.

    Args:
        graph, plan: a plan and its graph.
        who: who needs each op once, such as `"the executor"`.

    Raises:
        StowageError: an op runs again.
    """
    ran: set[int] = set()
    for slot, op in enumerate(plan.order):
        if op in ran:
            raise StowageError(
                f"this plan runs op {graph.ops[op].name} again in slot {slot}, and {who} takes only plans in which "
                "each op runs once; plan again"
            )
        ran.add(op)
