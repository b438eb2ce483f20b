"""Steps to draw: one of five ops with a plan made by hand, and real ones."""

from functools import cache

import numpy as np

from planner import zoo
from planner.capture import capture
from planner.graph import Graph, GraphBuilder, Kind, Phase, fingerprint
from planner.plan import (
    HostResidency,
    Residency,
    SwapIn,
    SwapOut,
    SwapPlan,
    Timeline,
    device_queues,
)
from planner.profile import machine
from planner.step import TrainStep
from planner.swap import plan_swaps, search_swaps

MIB = 2**20


def by_hand() -> Graph:
    """Two layers, a loss, one gradient and its update; every size in MiB is another number."""
    build = GraphBuilder("by hand")
    build.modules |= {"": "Net", "a": "Linear", "b": "Linear"}

    def tensor(name: str, mib: float, kind: Kind) -> int:
        return build.add_tensor(name, build.add_storage(name, int(mib * MIB), kind), (int(mib * MIB) // 4,))

    weight_a, weight_b = tensor("a.weight", 4, Kind.PARAMETER), tensor("b.weight", 2, Kind.PARAMETER)
    batch = tensor("batch", 1, Kind.INPUT)
    first, second = tensor("a/mm", 8, Kind.ACTIVATION), tensor("b/mm", 3, Kind.ACTIVATION)
    loss, gradient = tensor("sum", 0.5, Kind.OUTPUT), tensor("b/gradient", 2, Kind.GRADIENT)
    build.add_op("a/mm", "aten.mm.default", [batch, weight_a], [first], module="a")
    build.add_op("b/mm", "aten.mm.default", [first, weight_b], [second], module="b")
    build.add_op("sum", "aten.sum.default", [second], [loss])
    build.add_op("b/gradient", "aten.mm.default", [first], [gradient], module="b", phase=Phase.BACKWARD)
    updated = build.add_tensor("b.weight'", 1, (2 * MIB // 4,))
    build.add_op(
        "b/update", "aten.sub_.Tensor", [weight_b, gradient], [updated], module="b", phase=Phase.OPTIMIZER
    )  # fmt: skip
    return build.build([loss]).with_workspaces({1: 5 * MIB})


def plan_by_hand(graph: Graph) -> SwapPlan:
    """The first activation is away while the loss is computed; compute waits for it to leave and to come back."""
    places = [
        (0, 0, 5, 0), (1, 0, 5, 4), (2, 0, 1, 6), (3, 0, 2, 7), (4, 1, 3, 15), (7, 1, 2, 18), (5, 2, 5, 6),
        (3, 3, 4, 7), (6, 3, 5, 15),
    ]  # fmt: skip
    predicted = Timeline.of_device(
        seconds=7.0,
        compute=np.array([[0, 1], [1, 2], [2.5, 3.5], [5, 6], [6, 7]], np.float64),
        swap_out=np.array([[1, 2.5]]),
        swap_in=np.array([[3.5, 5]]),
        sample_seconds=np.array([0.0, 1.0, 2.5, 3.5, 5.0, 6.0]),
        sample_bytes=(np.array([15, 22, 9.5, 14.5, 16.5, 8.5]) * MIB).astype(np.int64),
    )
    return SwapPlan(
        graph=fingerprint(graph), machine="cpu", method="by hand", budget_bytes=24 * MIB, host_budget_bytes=None,
        alignment=64,
        queues=device_queues(range(5), (SwapOut(3, 0, 2),), (SwapIn(3, 3, 3),)), workspaces=((1, 5 * MIB),),
        residencies=tuple(Residency(storage, start, stop, offset * MIB) for storage, start, stop, offset in places),
        host_residencies=(HostResidency(3, 0, 3, 0), HostResidency(2, -1, 5, 8 * MIB)),
        peak_bytes=23 * MIB, host_bytes=9 * MIB,
        predicted=predicted,
    )  # fmt: skip


@cache
def real(spec: str) -> tuple[TrainStep, Graph]:
    """A model of the zoo, captured."""
    step = zoo.load(spec)
    return step, capture(step)


@cache
def real_plan(spec: str, budget: str) -> SwapPlan:
    """A plan for it on this CPU, with op times by rule."""
    return plan_swaps(real(spec)[1], machine("cpu"), budget, method="swap", time_limit=0, progress=False)


@cache
def again_step() -> Graph:
    """A small model, captured, in a plan for which ops run again."""
    return real("gpt:layers=2,hidden=64,sequence=32")[1]


@cache
def again_plan() -> SwapPlan:
    """Its plan with copies and with ops that run again, for a GPU."""
    return search_swaps(
        again_step(), machine("h200"), "55%", method="joint", time_limit=None, evaluations=40, threads=1
    ).wait(progress=False)
