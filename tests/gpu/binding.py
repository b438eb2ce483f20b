"""Every call of plans for a GPU, bound in a fake arena there and made on fake tensors: run as a program.

Prints, as JSON: by step, the calls made, the devices of their tensors, how they are made, what is wrong with them, and
their operators; what forward passes keep for backward ones; and why other steps are refused.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from planner.capture import capture
from planner.errors import StowageError, first_line
from planner.plan import PlanIndex, SwapPlan
from planner.profile.segment_benchmark import SegmentBenchmark
from planner.program import BoundCall, backend_of, operands
from planner.run.executor.arena.arena_views import ArenaViews
from planner.run.executor.arena.binder import Binder
from planner.step import Step
from tests.gpu.imitated import imitate_gpu
from tests.gpu.steps import KEEPING, REFUSED, STEPS
from tests.run.plans import resident_plan

RESERVE = 24  # bytes that cuDNN's batch normalisation keeps


def main() -> None:
    imitate_gpu()
    found = {"steps": {name: checked(make()) for name, make in STEPS.items()}}
    with patch.object(torch._C, "_get_cudnn_batch_norm_reserve_space_size", lambda *_: RESERVE):
        found["kept"] = {name: kept(make()) for name, make in KEEPING.items()}
    print(json.dumps({**found, "refusals": {name: refusal(make()) for name, make in REFUSED.items()}}))


def checked(step: Step) -> dict[str, Any]:
    """What binding and making the calls of a plan of a step shows."""
    graph = capture(step, device="cuda", progress=False)
    plan = resident_plan(graph)
    graph = graph.with_workspaces(dict(plan.workspaces))
    devices, forms, faults = Counter[str](), Counter[str](), []
    with FakeTensorMode(), torch.inference_mode(), warnings.catch_warnings(action="ignore"), drawn_nowhere():
        binder = fake_binder(graph, plan)
        for slot, op in enumerate(plan.order):
            name = graph.ops[op].name
            try:
                bound = binder.bind(slot, graph.program.scalars(0))
                devices.update(str(one.device) for one in operands(bound) or ())
                forms[getattr(bound.function, "__name__", "?")] += 1
                faults += [f"{name}: {fault}" for fault in resized_by(bound)]
            except Exception as error:
                faults.append(f"{name}: {type(error).__name__} {first_line(error)}")
    operators = sorted({op.target for op in graph.ops})
    return {
        "calls": len(plan.order), "devices": devices, "forms": forms, "faults": faults, "operators": operators,
    }  # fmt: skip


def kept(step: Step) -> dict[str, Any]:
    """Bytes that forward passes leave for backward ones, and operators that are not measured for their indices."""
    graph = capture(step, device="cuda", progress=False)
    backend = backend_of("cuda")
    places = [(call, place) for call in graph.program.calls for place in sorted(backend.undefined.get(call.target, ()))]
    benchmark: Any = SimpleNamespace(
        _segment=SimpleNamespace(ops=range(len(graph.ops))), _graph=graph, _program=graph.program, _backend=backend
    )
    left_out = SegmentBenchmark._reading_computed_indices(benchmark)
    return {
        "bytes": [graph.storages[graph.tensors[call.results[place]].storage].bytes for call, place in places],
        "unmeasured": [graph.ops[position].target for position in left_out],
    }


def refusal(step: Step) -> str:
    """Why a step cannot be captured for a GPU; empty if it can."""
    try:
        capture(step, device="cuda", progress=False)
    except StowageError as error:
        return str(error)
    return ""


def fake_binder(graph: Any, plan: SwapPlan) -> Binder:
    """A binder of a plan's calls in a fake arena, where addresses say nothing about overlaps."""
    arena = torch.empty(plan.peak_bytes, dtype=torch.uint8, device="cuda")
    host = torch.empty(max(plan.host_bytes, 1), dtype=torch.uint8)
    binder: Any = Binder(graph, graph.program, plan, ArenaViews(PlanIndex(graph, plan), arena, host), torch.Generator())
    binder._refuse_overlap = lambda *_: None
    made: Binder = binder
    return made


def resized_by(bound: BoundCall) -> list[str]:
    """Make a call; which of its tensors it has given another layout."""
    tensors = operands(bound) or []
    before = [(one.shape, one.stride()) for one in tensors]
    without_generators(bound)
    return [f"tensor {place} was resized" for place, one in enumerate(tensors)
            if (one.shape, one.stride()) != before[place]]  # fmt: skip


def without_generators(bound: BoundCall) -> None:
    """Make a call without the generator of a GPU, which fake kernels do not draw from and which is not there."""
    function, args, kwargs = bound
    function(*args, **{name: value for name, value in kwargs.items() if not isinstance(value, torch.Generator)})


def drawn_nowhere() -> Any:
    """Let the GPU's default generator be one of the CPU."""
    generator = torch.Generator()
    find: Callable[[str], torch.Generator] = lambda _: generator  # noqa: E731
    return patch("planner.program.kernels.cuda.default_generator", find)


if __name__ == "__main__":
    main()
