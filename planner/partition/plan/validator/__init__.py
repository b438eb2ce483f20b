"""Proves that a partition plan is right for a graph; shares no code with the search.

Of the rest of the room it uses only what an op computes (its description), and the types of states and divisions. What
every worker needs of an input, what it leaves of an output, how views see the splits of their roots and how many bytes
move are worked out anew, on masks of indices and addresses of elements.
"""

from math import isclose

from planner.graph import Graph
from planner.partition.op_strategies import splittable_ops
from planner.partition.plan.partition_plan import PartitionPlan
from planner.partition.plan.validator.fields import check_plan_fields
from planner.partition.plan.validator.tensors import check_tensors
from planner.partition.plan.validator.traffic import Traffic

__all__ = ["validate_partition"]


def validate_partition(plan: PartitionPlan, graph: Graph) -> list[str]:
    """List the reasons why a partition plan is not right for its graph, one sentence each; empty when it is proven.

    Args:
        plan: any plan, even an untrusted or damaged one.
        graph: the graph whose step it is to split.
    """
    problems = check_plan_fields(plan, graph) or check_tensors(plan, graph)
    if problems:
        return problems
    traffic = Traffic(plan, graph, splittable_ops(graph))
    counted = traffic.count()
    if traffic.problems:
        return traffic.problems
    return [
        f"at level {level} the plan says that {claimed:,} bytes are received, and {found:,} are"
        for level, (claimed, found) in enumerate(zip(plan.bytes_per_level, counted, strict=True))
        if not isclose(claimed, found, rel_tol=1e-9)
    ]
