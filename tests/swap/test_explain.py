"""Why a step takes as long as it does, and why each storage went or stayed."""

from __future__ import annotations

import json
from dataclasses import replace
from math import fsum

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.errors import StowageError
from planner.graph import Graph, GraphBuilder, Kind, Phase, fingerprint
from planner.machine import Link, Machine
from planner.memory import step_peak
from planner.plan import (
    HostResidency,
    Residency,
    SwapIn,
    SwapOut,
    SwapPlan,
    Timeline,
    device_queues,
    validate,
)
from planner.swap import plan_swaps, simulate
from planner.swap.explain.explain_plan import Explanation, explain
from tests.plan import again_by_hand
from tests.swap.random_graphs import ALIGNMENT, least_budget, machine, steps

KIB = 1024
#: 1 KiB takes 1 s one way; both ways at once are as fast as one alone.
SLOW = machine(bandwidth=KIB, duplex=2 * KIB, latency=0.0)


def tensor(build: GraphBuilder, name: str, kib: int, kind: Kind) -> int:
    return build.add_tensor(name, build.add_storage(name, kib * KIB, kind), (kib * KIB // 4,))


def two_activations() -> Graph:
    """`a` and `b` are made, then something large, then both are read; a weight is read at both ends."""
    build = GraphBuilder("two activations")
    weight = tensor(build, "weight", 2, Kind.PARAMETER)
    a, b = tensor(build, "a", 4, Kind.ACTIVATION), tensor(build, "b", 2, Kind.ACTIVATION)
    large, loss = tensor(build, "large", 8, Kind.ACTIVATION), tensor(build, "loss", 1, Kind.OUTPUT)
    for name, reads, writes in (
        ("make a", [weight], a), ("make b", [weight], b), ("make large", [], large), ("read large", [large], loss),
    ):  # fmt: skip
        build.add_op(name, "aten.op.default", reads, [writes])
    out = tensor(build, "out", 1, Kind.OUTPUT)
    build.add_op("read both", "aten.op.default", [a, b, weight], [out], phase=Phase.BACKWARD)
    return build.build([loss, out])


def plan_by_hand(graph: Graph) -> SwapPlan:
    """`a`, `b` and the weight leave before the large one is made, and return for the last op; 12 KiB are enough."""
    residencies = [
        (0, 0, 2, 0), (1, 0, 2, 2), (2, 1, 2, 6), (3, 2, 4, 0), (4, 3, 5, 8), (0, 4, 5, 0), (1, 4, 5, 2), (2, 4, 5, 6),
        (5, 4, 5, 9),
    ]  # fmt: skip
    nothing = np.zeros((0, 2))
    plan = SwapPlan(
        graph=fingerprint(graph), machine="test", method="by hand", budget_bytes=12 * KIB, host_budget_bytes=None,
        alignment=ALIGNMENT, workspaces=(),
        queues=device_queues(
            range(5), (SwapOut(1, 0, 2), SwapOut(2, 1, 2)), (SwapIn(1, 4, 4), SwapIn(0, 4, 4), SwapIn(2, 4, 4))
        ),
        residencies=tuple(Residency(s, start, stop, offset * KIB) for s, start, stop, offset in residencies),
        host_residencies=(
            HostResidency(0, -1, 5, 0), HostResidency(1, 0, 4, 2 * KIB), HostResidency(2, 1, 4, 6 * KIB),
        ),
        peak_bytes=10 * KIB, host_bytes=8 * KIB,
        predicted=Timeline.of_device(0, nothing, nothing, nothing, np.zeros(0), np.zeros(0, np.int64)),
    )  # fmt: skip
    plan = replace(plan, predicted=simulate(plan, graph, SLOW, np.ones(5)))
    assert not validate(plan, graph)
    return plan


@pytest.fixture(scope="module")
def explanation() -> Explanation:
    """Each op takes 1 s. `a` leaves from 1 to 5 s, `b` until 7; then two ops; then 4, 2 and 2 s of copies in."""
    graph = two_activations()
    return explain(plan_by_hand(graph), graph, SLOW, np.ones(5))


def test_a_wait_is_split_among_the_copies_it_was_due_to(explanation: Explanation) -> None:
    assert (explanation.step_seconds, explanation.compute_seconds, explanation.stall_seconds) == (18, 5, 13)
    waits = {(wait.slot, wait.storage, wait.direction): wait.seconds for wait in explanation.waits}
    # the third op could have begun at 2 s, and began at 7
    assert waits == {
        (2, 1, "out"): 3, (2, 2, "out"): 2, (4, 1, "in"): 4, (4, 0, "in"): 2, (4, 2, "in"): 2
    }  # fmt: skip
    stalls = explanation.stalls_by_storage
    assert [(stall.name, stall.seconds, stall.in_seconds, stall.out_seconds) for stall in stalls] == [
        ("a", 7, 4, 3), ("b", 4, 2, 2), ("weight", 2, 2, 0)
    ]  # fmt: skip
    assert [(stall.name, stall.slot, stall.seconds) for stall in explanation.stalls_by_op] == [
        ("read both", 4, 8), ("make large", 2, 5)
    ]  # fmt: skip


def test_the_peak_is_the_fullest_slot_and_its_holders(explanation: Explanation) -> None:
    assert (explanation.peak_slot, explanation.peak_op, explanation.peak_bytes) == (4, "read both", 10 * KIB)
    assert [(one.name, one.bytes) for one in explanation.holders] == [
        ("a", 4 * KIB), ("weight", 2 * KIB), ("b", 2 * KIB), ("loss", KIB), ("out", KIB)
    ]  # fmt: skip
    assert explanation.bytes_by_kind == (("activation", 6 * KIB), ("parameter", 2 * KIB), ("output", 2 * KIB))


def test_every_decision_has_its_reason(explanation: Explanation) -> None:
    reasons = {one.name: one.reason for one in explanation.decisions}
    assert reasons["a"] == (
        "swapped: idle for 16.0 s between ops 0 and 4, longer than the 8.00 s that its two copies take; "
        "freed 4 KiB while 17 KiB were wanted"
    )
    assert reasons["weight"] == (
        "dropped without a copy: the host copy was still valid; idle for 15.0 s between ops 1 and 4; "
        "freed 2 KiB while 17 KiB were wanted"
    )
    assert reasons["large"] == "kept: in use, or not yet made, whenever more than 12 KiB are wanted"


def test_what_fits_is_kept_and_says_so() -> None:
    graph = two_activations()
    explanation = explain(plan_swaps(graph, SLOW, "100%", seconds=np.ones(5)), graph, SLOW, np.ones(5))
    assert (explanation.limit.what, explanation.stall_seconds, explanation.waits) == ("compute", 0, ())
    assert {one.decision for one in explanation.decisions} == {"kept"}
    assert all("it fits" in one.reason for one in explanation.decisions)
    assert "Exposed copies: none" in str(explanation)


def weights(count: int, kib: int) -> Graph:
    """Inference: every op reads a weight of its own and hands a little on."""
    build = GraphBuilder("weights")
    value = tensor(build, "x", 1, Kind.INPUT)
    for layer in range(count):
        made = tensor(build, f"y{layer}", 1, Kind.OUTPUT if layer == count - 1 else Kind.ACTIVATION)
        weight = tensor(build, f"w{layer}", kib, Kind.PARAMETER)
        build.add_op(f"op{layer}", "aten.op.default", [value, weight], [made])
        value = made
    return build.build([value])


@pytest.mark.parametrize(("op_seconds", "what"), [(0.001, "link in"), (1000.0, "compute")])
def test_weights_that_stream_in_are_limited_by_the_link_or_by_compute(op_seconds: float, what: str) -> None:
    graph, seconds = weights(12, 8), np.full(12, op_seconds)
    explanation = explain(plan_swaps(graph, SLOW, 27 * KIB, seconds=seconds), graph, SLOW, seconds)
    assert explanation.limit.what == what
    assert {one.decision for one in explanation.decisions if one.kind == "parameter"} <= {"dropped", "kept"}
    assert (explanation.limit.in_busy > 0.95) == (what == "link in")


def test_copies_that_follow_each_other_are_limited_by_memory(explanation: Explanation) -> None:
    assert explanation.limit.what == "memory"
    assert (explanation.limit.in_seconds, explanation.limit.out_seconds, explanation.limit.both_seconds) == (
        8,
        6,
        8,
    )
    assert (explanation.limit.in_busy, explanation.limit.out_busy) == (8 / 18, 6 / 18)


def test_it_is_plain_data_and_readable_text(explanation: Explanation) -> None:
    data = json.loads(json.dumps(explanation.to_json()))
    assert data["stalls_by_storage"][0]["name"] == "a"
    assert data["bytes_by_kind"] == {"activation": 6 * KIB, "parameter": 2 * KIB, "output": 2 * KIB}
    for word in (
        "13.0 s of it waiting (72.2%)",
        "Peak: 10 KiB of 12 KiB at op 4 (read both)",
        "make large",
    ):
        assert word in str(explanation)


def test_a_plan_for_another_graph_is_refused() -> None:
    graph = two_activations()
    with pytest.raises(StowageError, match="is not for weights"):
        explain(plan_by_hand(graph), weights(3, 1), SLOW, np.ones(3))


def overlap(span: tuple[float, float], spans: list[tuple[float, float]]) -> float:
    return fsum(max(0.0, min(span[1], stop) - max(span[0], start)) for start, stop in spans)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps(), st.floats(0, 0.9), st.sampled_from([1e8, 1e9, 1e10]))
def test_waits_and_decisions_are_those_of_the_plan(
    step: tuple[Graph, list[float]], share: float, bandwidth: float
) -> None:
    graph, durations = step
    device, seconds = machine(bandwidth), np.array(durations)
    least = least_budget(graph)
    budget = least + int(share * max(0, step_peak(graph, ALIGNMENT) - least))
    plan = plan_swaps(graph, device, budget, seconds=seconds, time_limit=0.05)
    explanation, time = explain(plan, graph, device, seconds), simulate(plan, graph, device, seconds)
    check_waits(explanation, plan, time)
    check_decisions(explanation, plan, graph)
    check_limit(explanation, plan, graph, time, device.host_link)
    held = [
        sum(
            graph.storages[residency.storage].bytes
            for residency in plan.residencies
            if residency.start <= slot < residency.stop
        )
        for slot in range(len(plan.order))
    ]
    assert (
        explanation.peak_bytes
        == max(held)
        == held[explanation.peak_slot]
        == sum(holder.bytes for holder in explanation.holders)
    )
    assert str(explanation)


def check_waits(explanation: Explanation, plan: SwapPlan, time: Timeline) -> None:
    """Slot by slot they are as long as compute waits, and no copy is blamed for longer than it ran in that time."""
    tiny = 1e-9 * time.seconds + 1e-18
    begins, ends = [*time.compute[:, 0], time.seconds], [0.0, *time.compute[:, 1]]
    for slot, (end, begin) in enumerate(zip(ends, begins, strict=True)):
        mine = [wait for wait in explanation.waits if wait.slot == slot]
        assert fsum(wait.seconds for wait in mine) == pytest.approx(begin - end, abs=tiny)
        for wait in mine:
            queue, spans = (plan.swap_ins, time.swap_in) if wait.direction == "in" else (plan.swap_outs, time.swap_out)
            ran = [tuple(spans[place]) for place, copy in enumerate(queue) if copy.storage == wait.storage]
            assert 0 < wait.seconds <= overlap((end, begin), ran) + tiny
    total = time.seconds - float((time.compute[:, 1] - time.compute[:, 0]).sum())
    for parts in (explanation.waits, explanation.stalls_by_storage, explanation.stalls_by_op):
        assert fsum(part.seconds for part in parts) == pytest.approx(explanation.stall_seconds, rel=1e-12, abs=tiny)
    assert explanation.stall_seconds == pytest.approx(total, abs=tiny)


def check_decisions(explanation: Explanation, plan: SwapPlan, graph: Graph) -> None:
    """The decisions agree with the copies and residencies of the plan."""
    used = {s for op in graph.ops for s in (*graph.reads[op.id], *graph.writes[op.id])}
    out, copied_in = {copy.storage for copy in plan.swap_outs}, {copy.storage for copy in plan.swap_ins}
    assert {one.storage for one in explanation.decisions} == {
        s.id for s in graph.storages if s.bytes and s.kind != "workspace"
    }
    for one in explanation.decisions:
        residencies = [residency for residency in plan.residencies if residency.storage == one.storage]
        assert (one.decision == "unused") == (one.storage not in used)
        if one.decision == "unused":
            continue
        assert (one.decision == "swapped") == (one.storage in out)
        assert (one.decision == "kept") == (one.storage not in out | copied_in and len(residencies) == 1)
        ways = [absence for absence in one.absences if absence.copied_out]
        assert len(ways) == sum(copy.storage == one.storage for copy in plan.swap_outs)
        assert all(absence.idle_seconds >= -1e-15 for absence in one.absences)
        assert one.reason.startswith(one.decision)


def check_limit(explanation: Explanation, plan: SwapPlan, graph: Graph, time: Timeline, link: Link) -> None:
    """A stream limits the step only if its own work takes nearly as long; what a direction is busy is its spans'."""
    limit, step = explanation.limit, time.seconds
    works = [
        fsum(graph.storages[copy.storage].bytes / link.bandwidth + link.latency for copy in queue)
        for queue in (plan.swap_ins, plan.swap_outs)
    ]
    assert (limit.in_seconds, limit.out_seconds) == (pytest.approx(works[0]), pytest.approx(works[1]))
    assert max(works) * (1 - 1e-9) <= limit.both_seconds <= step * (1 + 1e-9)
    work = {
        "compute": limit.compute_seconds, "link in": works[0], "link out": works[1], "both ways": limit.both_seconds
    }  # fmt: skip
    if limit.what == "memory":
        assert max(work.values()) < 0.95 * step
    else:
        assert work[limit.what] >= 0.95 * step * (1 - 1e-9)
    for busy, spans in ((limit.in_busy, time.swap_in), (limit.out_busy, time.swap_out)):
        assert busy == pytest.approx(float((spans[:, 1] - spans[:, 0]).sum()) / step if step else 0.0)


def test_faster_machines_are_explained_by_their_own_link() -> None:
    graph = two_activations()
    fast: Machine = replace(SLOW, host_link=Link(1e9, 2e9, 0.0))
    explanation = explain(plan_by_hand(graph), graph, fast, np.ones(5))
    assert explanation.stall_seconds == pytest.approx(8 * KIB / 1e9 + 2 * KIB / 1e9)
    assert explanation.limit.what == "compute"


def test_what_is_recomputed_says_what_running_its_op_again_takes() -> None:
    graph, plan = again_by_hand.step(), again_by_hand.plan()
    explanation = explain(plan, graph, SLOW, np.array([1.0, 2.0, 3.0, 4.0, 5.0]), progress=False)
    decisions = {one.name: one for one in explanation.decisions}
    assert {name for name, one in decisions.items() if one.decision == "recomputed"} == {"a"}
    (absence,) = decisions["a"].absences
    assert (absence.copied_out, absence.copy_seconds, absence.recompute_seconds) == (False, 0.0, 1.0)
    assert "running its op again takes 1.00 s, where two copies would take 125 ms" in decisions["a"].reason
    assert "Recomputed: 1 storage, 64 B." in repr(explanation)
    assert explanation.compute_seconds == 1 + 2 + 3 + 1 + 2 + 4 + 5
