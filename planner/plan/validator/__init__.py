"""Proves that a plan is safe to run; shares no code with any planner.

Each check relies on the ones before: fields in range, an order in which every instance of an op sees and leaves the
captured values, queues without deadlock, then which storages are on the device when, which copy holds which value, and
which storage has which address. Accesses of two lanes to the same bytes must be ordered by the waiting rules alone
(`streams`), so the proof holds for any timing.
"""

from planner.cancel import CancelToken
from planner.graph import Graph
from planner.plan.schema.lanes import COMMUNICATION, COMPUTE, SWAP_OUT
from planner.plan.schema.swap_plan import SwapPlan
from planner.plan.validator.addresses import check_device, check_host
from planner.plan.validator.communication_stream import check_communications
from planner.plan.validator.copies import check_copies
from planner.plan.validator.fields import check_fields
from planner.plan.validator.happens_before import LANES, Entry, HappensBefore, happens_before
from planner.plan.validator.op_accesses import slot_accesses
from planner.plan.validator.order import check_ops, check_order
from planner.plan.validator.predicted_timeline import check_predicted
from planner.plan.validator.residencies import find_residencies

__all__ = ["LANES", "Entry", "HappensBefore", "happens_before", "validate"]


def validate(plan: SwapPlan, graph: Graph, *, stop: CancelToken | None = None) -> list[str]:
    """List the reasons why a plan is not safe for its graph, one sentence each; empty when it is proven safe.

    Args:
        plan: any plan, even an untrusted or damaged one.
        graph: the graph it is to run; the plan must provide for its workspaces.
        stop: checked between the checks; None to never cancel.

    Raises:
        Cancelled: cancellation was requested.
    """
    stop = stop or CancelToken()
    problems = check_fields(plan, graph)
    if problems:
        return problems
    graph = graph.with_workspaces(dict(plan.workspaces))
    stop.check()
    if problems := check_ops(plan, graph):
        return problems
    accesses = slot_accesses(plan, graph)
    values, problems = check_order(plan, graph, accesses)
    if problems:
        return problems
    stop.check()
    ordered = happens_before(plan)
    stop.check()
    if ordered.stuck:
        return [_deadlock(plan, graph, ordered.stuck)]
    residencies, problems = find_residencies(plan, graph, accesses)
    stop.check()
    places, more = check_copies(plan, graph, residencies, values, ordered)
    stop.check()
    problems += [*more, *check_device(plan, graph, residencies, ordered)]
    problems += check_communications(plan, graph, residencies, accesses, ordered)
    stop.check()
    return [*problems, *check_host(plan, graph, places, ordered), *check_predicted(plan)]


def _deadlock(plan: SwapPlan, graph: Graph, stuck: tuple[Entry, ...]) -> str:
    names = []
    for lane, number in stuck:
        if lane == COMPUTE:
            names.append(f"op {graph.ops[plan.order[number]].name} in slot {number}")
        elif lane == COMMUNICATION:
            names.append(f"collective {graph.ops[plan.order[plan.communications[number].start]].name}")
        elif lane == SWAP_OUT:
            names.append(f"swap-out {number} of {graph.storages[plan.swap_outs[number].storage].name}")
        else:
            names.append(f"swap-in {number} of {graph.storages[plan.swap_ins[number].storage].name}")
    return f"the streams wait for each other for ever: {', '.join(names)}"
