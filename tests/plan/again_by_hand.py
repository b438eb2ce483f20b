"""One small step and a plan for it, both written by hand, in which two ops run again."""

from __future__ import annotations

import numpy as np

from planner.graph import GraphBuilder, Kind, fingerprint
from planner.plan import Residency, SwapPlan, Timeline, device_queues
from tests.plan.changing import replace
from tests.plan.plans import with_times

W, X, A, B, C, OUT = range(6)
MAKE, TWIST, MORE, LAST, UPDATE = range(5)
#: A is made, twisted in place and dropped; both are done again for the last op.
ORDER = (MAKE, TWIST, MORE, MAKE, TWIST, LAST, UPDATE)
END = len(ORDER)


def step(random=False, update_first=False):
    """x w -> a; a twisted in place; a -> b; b a -> out; w updated by out (or at once), with c beside a."""
    build = GraphBuilder("again")
    kinds = {
        "w": Kind.PARAMETER, "x": Kind.INPUT, "a": Kind.ACTIVATION, "b": Kind.ACTIVATION, "c": Kind.ACTIVATION,
        "out": Kind.OUTPUT,
    }  # fmt: skip
    t = {name: build.add_tensor(name, build.add_storage(name, 64, kind), [64]) for name, kind in kinds.items()}
    t |= {new: build.add_tensor(new, build.tensors[t[old]].storage, [64]) for new, old in (("a'", "a"), ("w'", "w"))}
    build.add_op("make", "mm", [t["x"], t["w"]], [t["a"], t["c"]], random=random)
    build.add_op("twist", "relu_", [t["a"]], [t["a'"]])
    build.add_op("more", "mul", [t["a'"]], [t["b"]])
    build.add_op("last", "add", [t["a'"], t["b"]], [t["out"]])
    build.add_op("update", "add_", [t["w"], t["out"]], [t["w'"]])
    return build.build([t["out"]])


def plan(graph=None, **changes):
    """A leaves after slot 2 and is made again in slot 3; c stays, and is written again."""
    made = SwapPlan(
        graph=fingerprint(step() if graph is None else graph), machine="v100-16gb", method="by hand",
        budget_bytes=1024, host_budget_bytes=None, alignment=64, queues=device_queues(ORDER), workspaces=(),
        residencies=(
            Residency(W, 0, END, 0), Residency(X, 0, 4, 64), Residency(A, 0, 3, 128), Residency(B, 2, 6, 192),
            Residency(A, 3, 6, 256), Residency(C, 0, 4, 320), Residency(OUT, 5, END, 128),
        ),
        host_residencies=(), peak_bytes=384, host_bytes=0,
        predicted=Timeline.of_device(0.0, *(np.zeros((0, 2)),) * 3, np.zeros(0), np.zeros(0, np.int64)),
    )  # fmt: skip
    return with_times(replace(made, **changes))
