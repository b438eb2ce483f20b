"""Proves that a plan is safe to run; shares no code with any planner.

Each check relies on the ones before: fields in range, an order that preserves every value, queues without deadlock,
then which storages are on the device when, which copy holds which value, and which storage has which address. Accesses
of two streams to the same bytes must be ordered by the waiting rules alone (`streams`), so the proof holds for any
timing.
"""

from collections.abc import Callable

from planner.graph import Graph
from planner.plan.swap_plan import SwapPlan
from planner.plan.validator.addresses import check_device, check_host
from planner.plan.validator.copies import check_copies
from planner.plan.validator.fields import check_fields
from planner.plan.validator.order import check_order
from planner.plan.validator.predicted import check_predicted
from planner.plan.validator.stays import find_stays
from planner.plan.validator.streams import Entry, HappensBefore, Lane, happens_before

__all__ = ["Entry", "HappensBefore", "Lane", "happens_before", "validate"]


def validate(plan: SwapPlan, graph: Graph, *, between: Callable[[], None] | None = None) -> list[str]:
    """List the reasons why a plan is not safe for its graph, one sentence each; empty when it is proven safe.

    Args:
        plan: any plan, even an untrusted or damaged one.
        graph: the graph it is to run; the plan must provide for its workspaces.
        between: called between the checks; may raise to abandon the validation.
    """
    between = between or _nothing
    problems = check_fields(plan, graph)
    if problems:
        return problems
    graph = graph.with_workspaces(dict(plan.workspaces))
    between()
    problems = check_order(plan, graph)
    if problems:
        return problems
    between()
    ordered = happens_before(plan)
    between()
    if ordered.stuck:
        return [_deadlock(plan, graph, ordered.stuck)]
    stays, problems = find_stays(plan, graph)
    between()
    places, more = check_copies(plan, graph, stays, ordered)
    between()
    problems += [*more, *check_device(plan, graph, stays, ordered)]
    between()
    return [*problems, *check_host(plan, graph, places, ordered), *check_predicted(plan)]


def _nothing() -> None:
    """The default `between`: never raises."""


def _deadlock(plan: SwapPlan, graph: Graph, stuck: tuple[Entry, ...]) -> str:
    names = []
    for stream, number in stuck:
        if stream is Lane.COMPUTE:
            names.append(f"op {graph.ops[plan.order[number]].name} in slot {number}")
        elif stream is Lane.SWAP_OUT:
            names.append(f"swap-out {number} of {graph.storages[plan.swap_outs[number].storage].name}")
        else:
            names.append(f"swap-in {number} of {graph.storages[plan.swap_ins[number].storage].name}")
    return f"the streams wait for each other for ever: {', '.join(names)}"
