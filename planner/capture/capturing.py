"""From a step to its graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from torch import nn

from planner.capture.batches import Form, tensor_leaves
from planner.capture.fakes import refuse_meta_default
from planner.capture.hooks import refuse_hooks
from planner.capture.likeness import unlikeness
from planner.capture.lower import lower
from planner.capture.optimizer_checks import check_optimizer
from planner.capture.replay import reading_changed
from planner.capture.schedules import Scalars
from planner.capture.settings import Settings, change
from planner.capture.sole import sole
from planner.capture.step import Step
from planner.capture.trace import Trace, trace
from planner.capture.undisturbed import undisturbed
from planner.graph import Graph
from planner.progress import Progress, reporting

#: Graphs are kept for so many setups of a step.
_MOST_CAPTURES = 8


@undisturbed()
def capture(step: Step, *, progress: Progress = True) -> Graph:
    """The dataflow graph of a whole step, with its program; nothing of the model is allocated.

    The result is kept on the step, so that asking again costs nothing, until something is otherwise that the step
    depends on: `eval()` or `train()`, what the code of the model and the loss can reach (attributes, containers,
    closures, globals, hooks), a parameter frozen or replaced by one of another shape, the optimizer's groups and what
    selects its kernels, values of the batch that the code reads (`.item()`), or PyTorch's own settings. The graphs of
    some setups are kept, so that going back is free.

    Args:
        step: a `TrainStep` or an `InferenceStep`.
        progress: True shows how far it is, False shows nothing; a function is called with the share done, 0 to 1, and
            what is being done.

    Raises:
        StowageError: the step does what no graph can hold, or raises.
    """
    refuse_meta_default()
    with reporting(progress) as report, sole(lambda: report(0.0, "waiting for another capture or run")):
        found = _known(step)
        if found is None:
            traced = trace(step, report)
            report(0.8, "building the graph")
            alike = _alike(step.captures, traced)
            graph = lower(traced, Scalars(step, traced.scalars, traced.alike)) if alike is None else alike.graph
            found = Capture(graph, traced.settings, traced)
            if step.graph is not None:
                step.change = _change(step, traced.settings, traced.form) or step.change
            report(1.0, "captured")
        step.captures = [found, *(one for one in step.captures if one is not found)][:_MOST_CAPTURES]
        step.graph, step.settings = found.graph, found.settings
        step.form, step.given = found.trace.form, found.trace.given
        return found.graph


@dataclass(frozen=True, eq=False)
class Capture:
    """A graph, and what it was captured for.

    Args:
        graph: with its program.
        settings: how the step was set up.
        trace: what it did.
    """

    graph: Graph
    settings: Settings
    trace: Trace


def _known(step: Step) -> Capture | None:
    """An earlier capture of the step as it is set up now."""
    model = step.live.model if step.live is not None else step.model
    if not step.captures:
        return None
    if not isinstance(model, nn.Module):
        return cast(Capture, step.captures[0])
    reach = step.reach(model)
    found = step.held(model, reach)
    refuse_hooks(model, step.loss, found, step.torch_optimizer)
    if step.torch_optimizer is not None:
        check_optimizer(step.torch_optimizer)
    now = step.setup(model, found, reach)
    batch = step.live.batch if step.live is not None else None
    form = Form(batch) if batch is not None else None
    leaves = tensor_leaves(batch)
    for known in step.captures:
        program = known.graph.program
        if program is None or (program.guessed and form is not None):  # of a step that was copied; by a batch without
            continue  # values
        if known.trace.effects is not None and not known.trace.effects.fit(reach):
            continue
        scalars = program.scalars
        if change(known.settings, now) or (form is not None and known.trace.form.change(form)):
            continue
        apart = scalars.apart(found) if isinstance(scalars, Scalars) else ""
        apart = apart or ("" if form is None else reading_changed(program, leaves))
        if not apart:
            return cast(Capture, known)
        step.change = apart
    return None


def _alike(captures: Iterable[Capture], traced: Trace) -> Capture | None:
    """An earlier capture that made the same calls; what a step leaves behind belongs to variables of then."""
    if traced.effects is not None or traced.readings.calls:
        return None
    names = [name for name, _ in traced.batch]
    without = [
        one
        for one in captures
        if one.trace.effects is None and not one.trace.readings.calls and [name for name, _ in one.trace.batch] == names
    ]
    return next((one for one in without if not unlikeness(one.trace, traced)), None)


def _change(step: Step, now: Settings, form: Form) -> str:
    """What about the step is otherwise than when it was captured last, in words."""
    return change(step.settings, now) or ("" if step.form is None else step.form.change(form))
