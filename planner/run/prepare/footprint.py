"""The host memory that a run takes, computed before any allocation: the system kills a process that takes too much.

Where a plan is run on the CPU, its device memory is host memory too. The live model comes on top of it: the run copies
its state in, and updates it after every step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from planner.errors import StowageError
from planner.graph import Graph
from planner.guards import undisturbed
from planner.memory import lifetimes
from planner.plan import SwapPlan
from planner.run.prepare.available_memory import free_bytes
from planner.step import Step
from planner.units import format_bytes

#: Bytes left for everything else: PyTorch's threads, the monitor's samples, the notebook.
_SPARE = 256 * 2**20


class TooLargeError(StowageError):
    """Less memory is free than a run takes."""


@dataclass(frozen=True)
class Footprint:
    """Bytes of host memory that a run takes in addition to what is already allocated.

    Args:
        model: parameters, buffers, optimizer state and batch that are not allocated yet.
        device, host: the plan's memory.
        eager: memory of an eager step that the run is checked against.
    """

    model: int
    device: int
    host: int
    eager: int

    @property
    def bytes(self) -> int:
        """The total."""
        return self.model + self.device + self.host + self.eager


def footprint(graph: Graph, plan: SwapPlan | None, step: Step, *, checked: bool) -> Footprint:
    """The footprint of a run of a step.

    Args:
        graph: of the step.
        plan: the plan to run; None if it is not made yet, which assumes that it holds the state and nothing else.
        step: need not be live.
        checked: whether steps are checked against eager PyTorch.
    """
    state = sum(storage.bytes for storage in graph.storages if storage.persistent)
    batch = (
        0 if step.live is not None else sum(one.bytes for one in graph.storages if one.live_in and not one.persistent)
    )
    device, host = (state, 0) if plan is None else (plan.peak_bytes, plan.host_bytes)
    beside = max(0, lifetimes(graph).peak_bytes - state) if checked else 0
    if graph.device != "cpu":
        device = beside = 0  # on the GPU
    return Footprint(max(0, state - _made(step)) + batch, device, host, beside)


def missing_bytes(needed: Footprint) -> int:
    """How much more memory would have to be free; 0 if there is enough."""
    return max(0, needed.bytes + _SPARE - free_bytes())


def refuse_too_large(graph: Graph, plan: SwapPlan | None, step: Step, *, checked: bool) -> None:
    """Refuse a run that does not fit in memory, before any allocation.

    Args:
        graph, plan, step, checked: as in `footprint`.

    Raises:
        TooLargeError: it takes more than is free.
    """
    device = "the state of the steps" if plan is None else "the plan's device memory"
    refuse_footprint(footprint(graph, plan, step, checked=checked), graph.name, device)


def refuse_footprint(needed: Footprint, name: str, device: str) -> None:
    """Refuse what does not fit in memory.

    Args:
        needed: what it takes.
        name: of the step.
        device: what its device memory is, in words.

    Raises:
        TooLargeError: it takes more than is free.
    """
    missing = missing_bytes(needed)
    if not missing:
        return
    parts = (
        (needed.model, "the model, its optimizer and its batch"),
        (needed.device, device),
        (needed.host, "its host memory"),
        (needed.eager, "eager PyTorch beside it"),
    )
    listed = ", ".join(f"{format_bytes(size)} for {what}" for size, what in parts if size)
    without = "pass check=False, " if missing <= needed.eager else ""
    raise TooLargeError(
        f"running {name} on this computer takes {format_bytes(needed.bytes)} of memory, "
        f"{format_bytes(missing)} more than is free: {listed}; {without}make the model or the batch smaller, or end "
        "what else holds memory"
    )


@undisturbed()
def _made(step: Step) -> int:
    """Bytes of the step's state that are already allocated."""
    tensors: Iterable[Tensor] = ()
    if step.live is not None:
        tensors = step.state().values()
    elif isinstance(step.model, nn.Module):
        tensors = (*step.model.parameters(), *step.model.buffers())
    return sum(one.nbytes for one in tensors if one.layout is torch.strided and not one.is_meta and not is_lazy(one))
