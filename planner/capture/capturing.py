"""Capture of a step as a dataflow graph, with a cache of earlier captures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import nn

from planner.capture.fakes.fakes import refuse_meta_default
from planner.capture.hooks.hooks import refuse_hooks
from planner.capture.lower.lower import lower
from planner.capture.trace.trace import Trace, trace
from planner.capture.trace.trace_difference import trace_difference
from planner.errors import StowageError, given_type
from planner.global_state_lock import global_state_lock
from planner.graph import Graph
from planner.guards import undisturbed
from planner.program import absent_backend, capturing_backend, reading_changed
from planner.progress import Progress, ShowProgress, reporting
from planner.step import CaptureGuards, Form, Scalars, Step, check_optimizer, guard_change, tensor_leaves

#: Captures cached per step, one for each of its setups.
_MOST_CAPTURES = 8


@undisturbed()
def capture(step: Step, *, device: str = "cpu", progress: ShowProgress = True) -> Graph:
    """Capture the dataflow graph of a whole step, with its program, without allocating memory for the model.

    The result is cached on the step, so calling again is free until something that the step depends on changes:
    `eval()` or `train()`, what the code of the model and the loss can reach (attributes, containers, closures, globals,
    hooks), a parameter frozen or replaced by one of another shape, the optimizer's groups and the options that select
    its kernels, values of the batch that the code reads (`.item()`), or PyTorch's own settings. The graphs of several
    setups are cached, so returning to one of them is free.

    Args:
        step: a `TrainStep` or an `InferenceStep`.
        device: the type of device that the step is to run on, `"cpu"` or `"cuda"`; a model on the host may be run on
            either.
        progress: True shows the progress, False shows nothing; a function is called with the fraction done, 0 to 1,
            and a description of the current work.

    Raises:
        StowageError: it is not a step, steps cannot be captured for the device, or the step does something that no
            graph can represent, or it raises an exception.
    """
    if not isinstance(step, Step):
        raise StowageError(f"{given_type(step)} cannot be captured: give a TrainStep or an InferenceStep")
    backend = capturing_backend(device)
    refuse_meta_default()
    with reporting(progress) as report, global_state_lock(lambda: report(0.0, "waiting for another capture or run")):
        found = _known(step, device)
        if found is None:
            traced = trace(step, backend, report)
            report(0.8, "building the graph")
            alike = _alike(_captured_for(step, device), traced)
            if alike is None:
                graph = lower(traced, Scalars(step, traced.scalars, traced.representatives), backend)
            else:
                graph = alike.graph
            found = Capture(graph, traced.guards, traced)
            if step.graph is not None:
                step.change = _change(step, traced.guards, traced.form) or step.change
            report(1.0, "captured")
        step.captures = [found, *(one for one in step.captures if one is not found)][:_MOST_CAPTURES]
        step.graph, step.guards = found.graph, found.guards
        step.form, step.given = found.trace.form, found.trace.given
        return found.graph


def capture_as_absent(step: Step, device: str) -> Graph:
    """Capture a step for a device as if that were not there, to compare; the result is not cached.

    Args:
        step: a `TrainStep` or an `InferenceStep`.
        device: as in `capture`.

    Raises:
        StowageError: as in `capture`.
    """
    backend = absent_backend(device)
    with global_state_lock():
        traced = trace(step, backend, Progress())
        return lower(traced, Scalars(step, traced.scalars, traced.representatives), backend)


@dataclass(frozen=True, eq=False)
class Capture:
    """A graph and the setup that it was captured for.

    Args:
        graph: the graph, with its program.
        guards: the capture guards of the step.
        trace: the recorded step.
    """

    graph: Graph
    guards: CaptureGuards
    trace: Trace


def _captured_for(step: Step, device: str) -> list[Capture]:
    return [one for one in step.captures if one.graph.device == device]


def _known(step: Step, device: str) -> Capture | None:
    """Return an earlier capture for a device that matches the current setup of the step, or None."""
    model = step.live.model if step.live is not None else step.model
    captures = _captured_for(step, device)
    if not captures:
        return None
    if not isinstance(model, nn.Module):
        return captures[0]
    reach = step.reach(model)
    found = step.persistent_tensors(model, reach)
    refuse_hooks(model, step.loss, found, step.torch_optimizer)
    if step.torch_optimizer is not None:
        check_optimizer(step.torch_optimizer)
    now = step.setup(model, found, reach)
    batch = step.live.batch if step.live is not None else None
    form = Form(batch) if batch is not None else None
    leaves = tensor_leaves(batch)
    for known in captures:
        program = known.graph.program
        # without a program if the step was copied; guessed if the batch of the capture had no values
        if program is None or (program.guessed and form is not None):
            continue
        if known.trace.effects is not None and not known.trace.effects.fit(reach):
            continue
        scalars = program.scalars
        if guard_change(known.guards, now) or (form is not None and known.trace.form.change(form)):
            continue
        changed = scalars.changed_step_count(found) if isinstance(scalars, Scalars) else ""
        changed = changed or ("" if form is None else reading_changed(program, leaves))
        if not changed:
            return known
        step.change = changed
    return None


def _alike(captures: Iterable[Capture], traced: Trace) -> Capture | None:
    """Return an earlier capture that made the same calls, or None.

    Captures with effects do not qualify, because their effects refer to the Python variables of that time.
    """
    if traced.effects is not None or traced.readings.calls:
        return None
    names = [name for name, _ in traced.batch]
    without = [
        one
        for one in captures
        if one.trace.effects is None and not one.trace.readings.calls and [name for name, _ in one.trace.batch] == names
    ]
    return next((one for one in without if not trace_difference(one.trace, traced)), None)


def _change(step: Step, now: CaptureGuards, form: Form) -> str:
    """Describe what has changed about the step since its last capture."""
    return guard_change(step.guards, now) or ("" if step.form is None else step.form.change(form))
