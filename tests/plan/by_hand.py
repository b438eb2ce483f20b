"""One small training step and a plan for it, both written by hand.

slot  op      reads       makes    swapped
0     first   x w         a
1     second  a           b        a leaves (copied after slot 0, gone from slot 2)
2     loss    b           loss     where a lay
3     back    b loss      g        takes over b; a comes back to another address
4     grad    g a         d        m comes
5     update  w d         w        in place, with a workspace
6     state   m d         m        in place; m leaves at the end
"""

from __future__ import annotations

import numpy as np

from planner.graph import Graph, GraphBuilder, Kind, fingerprint
from planner.plan import (
    HostResidency,
    Residency,
    SwapIn,
    SwapOut,
    SwapPlan,
    Timeline,
    device_queues,
)
from tests.plan.changing import replace

W, M, X, A, B, LOSS, G, D, SCRATCH = range(9)
END = 7


def step() -> Graph:
    build = GraphBuilder("by hand")
    kinds = {
        "w": Kind.PARAMETER, "m": Kind.OPTIMIZER_STATE, "x": Kind.INPUT, "a": Kind.ACTIVATION, "b": Kind.ACTIVATION,
        "loss": Kind.OUTPUT, "g": Kind.GRADIENT, "d": Kind.GRADIENT,
    }  # fmt: skip
    t = {name: build.add_tensor(name, build.add_storage(name, 64, kind), [64]) for name, kind in kinds.items()}
    t |= {new: build.add_tensor(new, build.tensors[t[old]].storage, [64]) for new, old in (("w'", "w"), ("m'", "m"))}
    build.add_op("first", "mm", [t["x"], t["w"]], [t["a"]])
    build.add_op("second", "relu", [t["a"]], [t["b"]])
    build.add_op("loss", "sum", [t["b"]], [t["loss"]])
    build.add_op("back", "mul", [t["b"], t["loss"]], [t["g"]], overwrites=[t["b"]])
    build.add_op("grad", "mm", [t["g"], t["a"]], [t["d"]])
    build.add_op("update", "add", [t["w"], t["d"]], [t["w'"]])
    build.add_op("state", "add", [t["m"], t["d"]], [t["m'"]])
    return build.build([t["loss"]]).with_workspaces({5: 64})


def plan() -> SwapPlan:
    timeline = Timeline.of_device(
        seconds=10.0,
        compute=np.array([[0, 1], [1, 2], [3, 4], [4, 5], [6, 7], [7, 8], [8, 9]], float),
        swap_out=np.array([[1, 3], [9, 10]], float),
        swap_in=np.array([[4, 6], [7, 8]], float),
        sample_seconds=np.array([0.0, 5.0]),
        sample_bytes=np.array([256, 192]),
    )
    return SwapPlan(
        graph=fingerprint(step()),
        machine="v100-16gb",
        method="by hand",
        budget_bytes=320,
        host_budget_bytes=128,
        alignment=64,
        queues=device_queues(range(7), (SwapOut(A, 0, 2), SwapOut(M, 6, END)), (SwapIn(A, 3, 4), SwapIn(M, 5, 6))),
        workspaces=((5, 64),),
        residencies=(
            Residency(W, 0, END, 0),
            Residency(X, 0, 1, 64),
            Residency(A, 0, 2, 128),
            Residency(B, 1, 3, 64),
            Residency(LOSS, 2, END, 128),
            Residency(G, 3, 5, 64),
            Residency(A, 3, 5, 192),
            Residency(D, 4, END, 256),
            Residency(M, 5, END, 64),
            Residency(SCRATCH, 5, 6, 192),
        ),
        host_residencies=(HostResidency(M, -1, END, 0), HostResidency(A, 0, 4, 64)),
        peak_bytes=320,
        host_bytes=128,
        predicted=timeline,
    )


def seconds_each(ops: int, outs: int, ins: int) -> Timeline:
    """A timeline without waits, for plans that have none."""
    spans = [np.arange(count)[:, None] + np.array([0.0, 1.0]) for count in (ops, outs, ins)]
    return Timeline.of_device(float(max(ops, outs, ins)), *spans, np.zeros(1), np.zeros(1, np.int64))


def changed(plan: SwapPlan, table: str, place: int, **fields: int) -> SwapPlan:
    """The plan with one row of a table changed."""
    rows = getattr(plan, table)
    return replace(plan, **{table: (*rows[:place], replace(rows[place], **fields), *rows[place + 1 :])})


def without(plan: SwapPlan, table: str, place: int) -> SwapPlan:
    """The plan without one row of a table."""
    rows = getattr(plan, table)
    return replace(plan, **{table: (*rows[:place], *rows[place + 1 :])})
