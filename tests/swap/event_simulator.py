"""A slow and plain account of the three streams, written from the words of `planner.plan.schema` alone.

Every copy has its work in seconds left; at every moment each stream that may begin does, and time advances to the next
end.
"""

from __future__ import annotations

from planner.graph import Graph
from planner.machine import Link
from planner.plan import SwapPlan


def step_seconds(plan: SwapPlan, graph: Graph, link: Link, seconds: list[float]) -> float:
    """The length of the step."""
    work = {
        ("op", slot): seconds[op] for slot, op in enumerate(plan.order)
    } | {
        (stream, place): link.latency + graph.storages[copy.storage].bytes / link.bandwidth
        for stream, queue in (("out", plan.swap_outs), ("in", plan.swap_ins))
        for place, copy in enumerate(queue)
    }  # fmt: skip
    done: set[tuple[str, int]] = set()
    left: dict[str, tuple[int, float]] = {}  # what each stream is at, and the work it has left
    at = {"op": 0, "out": 0, "in": 0}
    length = {"op": len(plan.order), "out": len(plan.swap_outs), "in": len(plan.swap_ins)}
    now = 0.0

    def ops_done(below: int) -> bool:
        return all(("op", slot) in done for slot in range(below))

    def outs_done(slot: int) -> bool:
        return all(("out", place) in done for place, copy in enumerate(plan.swap_outs) if copy.release <= slot)

    def may_begin(stream: str, place: int) -> bool:
        if stream == "op":
            ins = all(("in", k) in done for k, copy in enumerate(plan.swap_ins) if copy.use <= place)
            return ins and outs_done(place)
        if stream == "out":
            return plan.swap_outs[place].ready < 0 or ("op", plan.swap_outs[place].ready) in done
        start = plan.swap_ins[place].start
        return ops_done(start) and outs_done(start)

    while any(at[stream] < length[stream] for stream in at):
        for stream, place in at.items():
            if stream not in left and place < length[stream] and may_begin(stream, place):
                left[stream] = (place, work[stream, place])
        assert left, "the queues wait for each other"
        both = "out" in left and "in" in left
        slowed = min(1.0, link.duplex_bandwidth / link.bandwidth / 2) if both else 1.0
        speed = {"op": 1.0, "out": slowed, "in": slowed}
        passes = min(remaining / speed[stream] for stream, (_, remaining) in left.items())
        now += passes
        for stream, (place, before) in list(left.items()):
            left[stream] = (place, before - passes * speed[stream])
            if left[stream][1] <= 1e-15:
                done.add((stream, place))
                at[stream] += 1
                del left[stream]
    return now
