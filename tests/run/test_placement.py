"""Every call of a plan finds its tensors on the device, and leaves them as they are laid out.

The device is one whose tensors have no memory, so that a tensor of the host among them shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from planner import zoo
from planner.capture import capture
from planner.graph import Graph
from planner.plan import PlanIndex, SwapPlan
from planner.program import BoundCall, Program
from planner.run.executor.arena.arena_views import ArenaViews
from planner.run.executor.arena.binder import Binder
from tests.effort import EFFORT
from tests.run.plans import resident_plan
from tests.run.steps import ALL
from tests.run.test_races import plan_of, step_of

DEVICE = "meta"
SMALL = (
    "nasnet:cells=4,filters=24,image=64", "brnn:steps=3,hidden=16",
    *(("wresnet:batch=2", "inception:batch=1,widen=1") if EFFORT > 1 else ()),
)  # fmt: skip


class PlacedBinder(Binder):
    """A binder for tensors without addresses, whose overlaps the plan's own device has checked."""

    def _refuse_overlap(self, *_: Any) -> None:
        pass


class Places(TorchDispatchMode):
    """Notes calls that use a tensor of the host, or lay out one of their arguments anew."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # a step captured for the device would name it
        kwargs = {name: torch.device(DEVICE) if name == "device" else one for name, one in (kwargs or {}).items()}
        given = [one for one in pytree.tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        before = [laid_out(one) for one in given]
        result = func(*args, **kwargs)
        for one in (*given, *pytree.tree_leaves(result)):
            if isinstance(one, Tensor) and one.device.type != DEVICE:
                self.faults.append(f"{func} has a tensor on {one.device}")
        if before != [laid_out(one) for one in given]:
            self.faults.append(f"{func} lays out an argument anew")
        return result


def laid_out(tensor: Tensor) -> tuple[object, ...]:
    return tensor.shape, tensor.stride(), tensor.storage_offset()


def calls(graph: Graph, plan: SwapPlan, arena: Tensor) -> list[BoundCall]:
    program: Program = graph.program
    graph = graph.with_workspaces(dict(plan.workspaces))
    views = ArenaViews(PlanIndex(graph, plan), arena, torch.empty(plan.host_bytes, dtype=torch.uint8))
    binder, scalars = PlacedBinder(graph, program, plan, views, torch.default_generator), program.scalars(0)
    return [binder.bind(slot, scalars) for slot in range(len(plan.order))]


def faults(bound: Sequence[BoundCall]) -> list[str]:
    with torch.inference_mode(), Places() as places:
        for function, args, kwargs in bound:
            function(*args, **kwargs)
    return places.faults


def arena_for(plan: SwapPlan) -> Tensor:
    return torch.empty(plan.peak_bytes, dtype=torch.uint8, device=DEVICE)


@pytest.mark.parametrize("name", ALL)
def test_every_call_of_a_swapped_step_finds_its_tensors_on_the_device(name: str) -> None:
    plan = plan_of(name, "80%")
    assert faults(calls(capture(step_of(name)[0]), plan, arena_for(plan))) == []


@pytest.mark.parametrize("spec", SMALL)
def test_every_call_of_a_model_of_the_zoo_finds_its_tensors_on_the_device(spec: str) -> None:
    graph = capture(zoo.load(spec), progress=False)
    plan = resident_plan(graph)
    assert faults(calls(graph, plan, arena_for(plan))) == []


def test_a_tensor_of_the_host_is_found() -> None:
    graph = capture(step_of("mlp")[0])
    plan = resident_plan(graph)
    here, there = (
        calls(graph, plan, arena) for arena in (torch.zeros(plan.peak_bytes, dtype=torch.uint8), arena_for(plan))
    )
    assert faults([*there[:20], here[20], *there[21:]])


def test_a_result_that_is_resized_is_found() -> None:
    small, large = (torch.empty(size, 8, device=DEVICE) for size in (2, 4))
    call = BoundCall(torch.ops.aten.exp.out, (large,), {"out": small})
    with pytest.warns(UserWarning, match="was resized"):
        found = faults([call])
    assert found == ["aten.exp.out lays out an argument anew"]
