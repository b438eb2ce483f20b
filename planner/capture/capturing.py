"""From a step to its graph."""

from __future__ import annotations

from torch import nn

from planner.capture.hooks import refuse_hooks
from planner.capture.lower import lower
from planner.capture.members import members
from planner.capture.schedules import Scalars
from planner.capture.settings import change
from planner.capture.sole import sole
from planner.capture.step import Step
from planner.capture.trace import Progress, trace
from planner.graph import Graph


def capture(step: Step, *, progress: Progress | None = None) -> Graph:
    """The dataflow graph of a whole step, with its program; nothing of the model is allocated.

    The result is kept on the step, so that asking again costs nothing, until something is set up otherwise: `eval()` or
    `train()`, an attribute of a module, a parameter frozen or replaced by one of another shape, the optimizer's groups
    and what selects its kernels, or autocast.

    Args:
        step: a `TrainStep` or an `InferenceStep`.
        progress: told the share done, from 0 to 1, and what is being done.

    Raises:
        StowageError: the step does what no graph can hold, or raises.
    """
    report = progress or _silent
    with sole(lambda: report(0.0, "waiting for another capture or run")):
        changed = _changed(step)
        if step.graph is None or changed:
            traced = trace(step, report)
            report(0.8, "building the graph")
            step.graph = lower(traced, Scalars(step, traced.scalars, traced.alike))
            step.settings = traced.settings
            step.change = changed or step.change
            report(1.0, "captured")
        return step.graph


def _changed(step: Step) -> str:
    """What about the model is otherwise than when the step was captured, in words."""
    model = step.live.model if step.live is not None else step.model
    if step.graph is None or not isinstance(model, nn.Module):
        return ""
    found = members(model)
    if step.follows_modes:
        refuse_hooks(found, step.torch_optimizer)
    scalars = step.graph.program.scalars
    apart = scalars.apart(found) if isinstance(scalars, Scalars) else ""
    return change(step.settings, step.setup(model, found)) or apart


def _silent(share: float, what: str) -> None:
    del share, what
