"""What runs say and do about memory of a GPU beside the arena: run as a program, which prints it as JSON.

The CPU stands in for a GPU; ops take temporary memory and libraries keep memory where a test has them do so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, replace
from io import StringIO
from typing import Any
from unittest.mock import patch

import torch

from planner import run
from planner.capture import capture
from planner.cli.run import _show
from planner.machine import PRESETS
from planner.memory import step_peak
from planner.plan import SwapPlan
from planner.profile import prepare
from planner.run.checks.eager_reference import EagerReference
from planner.run.devices.accelerator.accelerator_streams import AcceleratorStream
from planner.run.devices.cuda.memory_cap import SLACK_BYTES
from planner.swap import plan_swaps
from tests.gpu.allocator import MIB, TOTAL, Allocator
from tests.gpu.program import refusal
from tests.gpu.stand_in import stand_in
from tests.run.steps import mlp

SCRATCH, KEPT, OTHERS = 30 * MIB, 8 * MIB, 500 * MIB
BUDGET = 64 * MIB
OWN_LIMIT = 30 * MIB / TOTAL  # what the program itself lets PyTorch take of the GPU


@contextmanager
def taking(allocator: Allocator, scratch: int = 0, kept: int = 0) -> Iterator[None]:
    """Let every call take temporary memory, and the first of all keep some."""
    launch, left, call = AcceleratorStream.launch, [kept], "planner.profile.segment_benchmark._run"

    def taken(make: Callable[..., Any]) -> Callable[..., Any]:
        def made(*args: Any) -> Any:
            with allocator.holding(scratch):
                return make(*args)

        return made

    def launched(*args: Any) -> None:
        allocator.take(left[0])
        held.append(left[0])
        left[0] = 0
        taken(launch)(*args)

    held: list[int] = []
    from planner.profile import segment_benchmark

    with patch.object(AcceleratorStream, "launch", launched), patch(call, taken(segment_benchmark._run)):
        try:
            yield
        finally:
            for size in held:
                allocator.give_back(size)


def ran(plan: SwapPlan | None = None, **options: Any) -> Any:
    """Two steps."""
    return run(mlp(), plan, device="cuda", steps=2, **{"check": False, "progress": False, **options}).wait()


def full_plan(scratch: int) -> SwapPlan:
    """A plan that has every op's temporary memory in its arena, as for a device that has it there."""
    graph = capture(mlp(), device="cuda", progress=False)
    graph = graph.with_workspaces(dict.fromkeys(range(len(graph.ops)), scratch))
    plan = plan_swaps(graph, PRESETS["h100"], "100%", method="swap", time_limit=0, progress=False)
    return replace(plan, budget_bytes=plan.peak_bytes)


def bare_plan(beside: int) -> SwapPlan:
    """A plan that knows nothing of temporary memory, with so much room beside its arena."""
    graph = capture(mlp(), device="cuda", progress=False)
    plan = plan_swaps(graph, PRESETS["h100"], "100%", method="swap", time_limit=0, progress=False)
    return replace(plan, budget_bytes=plan.peak_bytes + beside)


def shown(result: Any) -> dict[str, Any]:
    """What `planner run` prints of a run as JSON."""
    with redirect_stdout(StringIO()) as text:
        _show(result, capture(mlp(), device="cuda", progress=False), check=False, as_json=True)
    found: dict[str, Any] = json.loads(text.getvalue())
    return found


def planned_within(allocator: Allocator) -> dict[str, Any]:
    """A run that is planned here, with what its ops take and libraries keep."""
    allocator.others = OTHERS
    with taking(allocator, SCRATCH, KEPT), patch.object(torch.backends.cuda, "cublas_workspace_size", lambda: KEPT):
        graph = prepare(capture(mlp(), device="cuda", progress=False), "auto", progress=False, remeasure=True).graph
        result = ran(budget=BUDGET)
    allocator.others = 0
    return {
        "counted": graph.outside_bytes, "workspaces": len(result.plan.workspaces), "budget": result.plan.budget_bytes,
        "total": result.peak_bytes - result.plan.peak_bytes, "within": result.peak_bytes <= result.budget_bytes,
        "library": result.library_bytes, "arena": result.plan.peak_bytes,
        "gpu": asdict(result.gpu_memory), "shown": shown(result), "step peak": step_peak(graph, result.plan.alignment),
    }  # fmt: skip


def refused(allocator: Allocator) -> dict[str, Any]:
    """Plans that leave too little room beside their arena."""
    plan = bare_plan(0)
    with taking(allocator, SCRATCH):
        found = {
            "in the arena": refusal(lambda: ran(full_plan(SCRATCH))),
            "no room": refusal(lambda: ran(bare_plan(SCRATCH - 1))),
            "room": refusal(lambda: ran(bare_plan(SCRATCH))),
        }
    with taking(allocator, SCRATCH, KEPT):
        found["no room for libraries"] = refusal(lambda: ran(bare_plan(SCRATCH + KEPT - 1)))
        found["room for libraries"] = refusal(lambda: ran(bare_plan(SCRATCH + KEPT)))
        found["together"] = [ran(bare_plan(room)).launched_together for room in (2 * SCRATCH, 2 * SCRATCH - 1)]
    return {**found, "arena": plan.peak_bytes}


def capped(allocator: Allocator) -> dict[str, Any]:
    """The limit of the allocator in a step, in eager PyTorch's, and afterwards; and steps that reach it."""
    seen: dict[str, list[float]] = {"step": [], "eager": []}
    launch, eager = AcceleratorStream.launch, EagerReference.step

    def launched(*args: Any) -> None:
        seen["step"].append(allocator.fraction)
        launch(*args)

    def stepped(*args: Any, **kwargs: Any) -> Any:
        seen["eager"].append(allocator.fraction)
        return eager(*args, **kwargs)

    plan, mine = bare_plan(MIB), 200 * MIB
    with allocator.holding(mine):
        before = allocator.reserved
        with patch.object(AcceleratorStream, "launch", launched), patch.object(EagerReference, "step", stepped):
            ran(plan, check=True)
        most = (before + plan.budget_bytes + SLACK_BYTES) / allocator.total
        found = {
            "step": all(share == most for share in seen["step"]), "steps": len(seen["step"]),
            "eager": seen["eager"], "after": allocator.fraction,
        }  # fmt: skip
    with taking(allocator, MIB, MIB):
        handle = run(mlp(), bare_plan(2 * MIB), device="cuda", steps=0, check=False, progress=False)
        batches = [mlp().materialize().batch] * 3
        found["beside others"] = refusal(lambda: [allocator.take(100 * MIB) for _ in handle.steps(batches)])
        for _ in range(3):
            allocator.give_back(100 * MIB)
    calls = iter(range(10**9))

    def grows(*args: Any) -> None:
        """From the second step on, which nobody measures, ops take more than the budget has."""
        if next(calls) >= len(plan.order) + 5:
            with allocator.holding(MIB + SLACK_BYTES + plan.budget_bytes):
                launch(*args)
        launch(*args)

    with patch.object(AcceleratorStream, "launch", grows):
        found["grows"] = refusal(lambda: ran(plan))
    found["after refusing"] = allocator.fraction
    allocator.limit(OWN_LIMIT)
    with patch.object(AcceleratorStream, "launch", launched):
        seen["step"].clear()
        refusal(lambda: ran(bare_plan(MIB)))
    found["mine"] = [sorted(set(seen["step"])), allocator.fraction]
    allocator.limit(1.0)
    return found


def main() -> None:
    runtime = stand_in()
    torch.backends.cuda.enable_flash_sdp(False)  # which eager PyTorch would choose on the CPU
    allocator = runtime.allocator
    print(json.dumps({
        "planned": planned_within(allocator), "refused": refused(allocator), "capped": capped(allocator),
        "left": allocator.allocated,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
