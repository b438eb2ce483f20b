"""Running a step on fake tensors: every kernel call it makes, without memory for any tensor."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from planner.capture import torch_private as private
from planner.capture.batches import Form, rebuilt, tensors_of
from planner.capture.changes import Changes
from planner.capture.composites import as_in_eager
from planner.capture.draws import Draws
from planner.capture.effects import Effects
from planner.capture.events import Event, Layout
from planner.capture.failures import explain
from planner.capture.fakes import (
    check_devices,
    fake_batch,
    fake_leaves,
    fake_members,
    fake_model,
    fake_reached,
)
from planner.capture.generators import unchanged_generators
from planner.capture.hooks import Hooks, refuse_hooks
from planner.capture.leftovers import Leftovers
from planner.capture.members import Member, restored, substitute
from planner.capture.optimizer_checks import refuse_other_optimizers, unwritten
from planner.capture.own_generator import as_default
from planner.capture.program import ScalarRef
from planner.capture.readings import Readings
from planner.capture.recorder import Recorder
from planner.capture.settings import Settings
from planner.capture.steering import Steering
from planner.capture.step import Step
from planner.capture.updates import Held, Updates
from planner.capture.watchers import refuse_watchers
from planner.errors import StowageError
from planner.graph import Kind
from planner.progress import Report

_RUNNING = "running the model on fake tensors"


@dataclass(frozen=True)
class Trace:
    """What a step did.

    Args:
        name: the step's.
        events: kernel calls in order.
        storage_bytes: by storage number.
        held: parameters, buffers and optimizer states.
        batch: (name, layout) per tensor leaf of the batch.
        outputs: layouts of what the step returns.
        gradients: by parameter name.
        constants: layouts and values of tensors that are neither held nor computed.
        effects: what it leaves in Python's variables; None for nothing.
        returned: how many of the outputs the step returns; the others are for `effects`.
        literals: storages of those among them that the step makes anew each time (`torch.tensor(0.5)`).
        modules: class name by module path.
        settings: of the model.
        scalars: by reference, the parameter group, a parameter with the right count of steps, and the quantity.
        alike: by updated parameter, the one that stands for it there.
        form: what the batch is apart from the numbers in its tensors.
        given: the real batch with its plain values as they are now, since it may be filled anew; None without one.
        readings: values of the batch that Python code read.
        guessed: whether it asked if it was traced, where the batch has no values to read.
    """

    name: str
    events: list[Event]
    storage_bytes: list[int]
    held: list[Held]
    batch: list[tuple[str, Layout]]
    outputs: list[Layout]
    gradients: dict[str, Layout]
    constants: list[tuple[Layout, torch.Tensor]]
    literals: set[int]
    modules: dict[str, str]
    settings: Settings
    scalars: dict[ScalarRef, tuple[int, str, str]]
    alike: dict[str, str]
    effects: Effects | None
    returned: int
    form: Form
    given: Any
    readings: Readings
    guessed: bool

    @property
    def kept(self) -> Iterator[Layout]:
        """What outlives the step."""
        yield from self.outputs
        for held in self.held:
            yield held.layout
            if held.replaced is not None:
                yield held.replaced


def trace(step: Step, progress: Report) -> Trace:
    """Run a step once on fake tensors.

    Args:
        step: its model is left as it was.
        progress: told the share done, from 0 to 1, and what is being done; it may raise.

    Raises:
        StowageError: the model does what no graph can hold, or raises.
    """
    leftovers = Leftovers()
    try:
        traced = _trace(step, progress, leftovers)
    finally:
        leftovers.clear()
    leftovers.refuse()
    return traced


def _trace(step: Step, progress: Report, leftovers: Leftovers) -> Trace:
    def heed(calls: int) -> None:
        progress(0.1, f"{_RUNNING}: {calls:,} ops")

    fake = private.FakeTensorMode(allow_non_fake_inputs=True)
    progress(0.0, "building the model")
    given = step.live is not None or isinstance(step.model, nn.Module)
    if step.live is not None:
        model, batch = step.live.model, step.live.batch
    else:
        generator = torch.Generator()  # functions may draw and set seeds, and their user goes on drawing meanwhile
        with as_default(generator):
            generator.manual_seed(step.seed)
            model = step.make_model() if given else fake_model(step.make_model, fake, generator)
            generator.manual_seed(step.seed + 1)
            batch = fake_batch(step.make_batch, fake, generator)
    check_devices(model, batch, meta=not given)
    refuse_watchers()
    reach = step.reach(model)
    with restored(reach), unchanged_generators():
        found = step.held(model, reach)
        refuse_hooks(model, step.loss, found, step.torch_optimizer)
        own = [member for member in found if not member.reached]
        fakes = fake_members(own, fake)
        fakes |= fake_reached([member for member in found if member.reached], fake)
        setup = step.setup(model, found, reach)
        form = Form(batch)
        as_given = rebuilt(batch, tensors_of(batch)) if step.live is not None or not callable(step.batch) else None
        real = tensors_of(batch)
        batch = fake_leaves(batch, found, fake)
        groups = step.groups(model)
        steering = readings = Steering(list(real.values()), list(real))
        substitute(reach, fakes)
        classes = {path: type(module).__name__ for path, module in model.named_modules()}
        draws = Draws()
        recorder = Recorder(
            fake, {id(module): path for path, module in model.named_modules()}, draws, steering, leftovers, heed
        )
        held = [_held(member, recorder.layout(fakes[id(member.tensor)])) for member in own]
        inputs = [(name, recorder.layout(leaf)) for name, leaf in tensors_of(batch).items()]
        steering.hold_batch([layout for _, layout in inputs])
        for member in found:
            tensor = fakes.get(id(member.tensor), member.tensor)
            if tensor is not member.tensor:
                leftovers.note(tensor)
                steering.hold_member(member, recorder.layout(tensor))
        changes = Changes(step, model, reach, fakes)
        before = [_memory(fakes.get(id(member.tensor))) for member in found]
        progress(0.1, _RUNNING)
        try:
            with (
                draws.following(), fake, recorder, recorder.watching_modules(), _without_collection(),
                private.quiet(), Hooks(model, step.loss).watched(recorder.running), as_in_eager(),
                private.tracing_hidden(steering.active) as question, torch.autograd.set_detect_anomaly(False),
                private.addresses_refused(), unwritten(step.torch_optimizer),
            ):  # fmt: skip
                outputs = step.passes(model, batch, recorder.enter)
                draws.finish()
        except Exception as error:
            raise explain(error, recorder.phase, recorder.current, recorder.paths, classes) from error
        _refuse_other_memory(found, before, [_memory(fakes.get(id(member.tensor))) for member in found])
        used = {layout.storage for event in recorder.events for layout in event.arguments}
        for member in found:
            if member.reached:
                layout = _reached(member, fakes, recorder)
                if layout is not None and (layout.storage in used or changes.replaces(fakes.get(id(member.tensor)))):
                    held.append(_held(member, layout))
        gradients = _gradients(found, fakes, recorder)
        graded = _with_gradients(found, fakes)
        refuse_other_optimizers(step.torch_optimizer, graded)
        lone = next(
            (one for one in graded if one.kind is not Kind.PARAMETER and id(one.tensor) not in reach.owned), None
        )
        if lone is not None:
            raise StowageError(
                f"{lone.name} gets a gradient, which a plan does not keep: make it a parameter of the model and of the "
                "optimizer, or detach it in the loss"
            )
        returned = [recorder.layout(recorder.resolved(output)) for output in outputs]
        held, effects, left = changes.found(held, found, recorder)
        if changes.advances and not step.recapture:
            steering = Steering(list(real.values()), list(real))
            once_more = Recorder(fake, {}, Draws(), steering, leftovers, heed)
            steering.hold_batch([once_more.layout(leaf) for leaf in tensors_of(batch).values()])
            changes.refuse_advancing(lambda: _again(step, model, batch, fakes.values(), once_more))
        progress(0.7, "adding the optimizer")
        updates = Updates(step, recorder, found)
        updates.emit(groups, held, gradients)
        known = {one.layout for one in held}
        return Trace(
            step.given_name or (step.name if given else type(model).__name__),
            recorder.events,
            recorder.storage_bytes,
            held + updates.states,
            inputs,
            [*returned, *left],
            gradients,
            [(layout, value) for layout, value in recorder.constants.items() if layout not in known],
            recorder.literals,
            classes,
            setup,
            updates.scalars,
            updates.alike,
            effects,
            len(outputs),
            form,
            as_given,
            readings.finish([one.layout.storage for one in held if one.replaced is not None]),
            question.asked and not readings.active,
        )


def _again(
    step: Step,
    model: nn.Module,
    batch: Any,
    fakes: Iterable[torch.Tensor],
    recorder: Recorder,
) -> None:
    """Run the step once more on what it left behind."""
    for tensor in fakes:
        if tensor.is_leaf:
            tensor.grad = None
    with recorder.draws.following(), recorder.fake, recorder, private.quiet():
        step.passes(model, batch, recorder.enter)


def _reached(member: Member, fakes: Mapping[int, torch.Tensor], recorder: Recorder) -> Layout | None:
    """The layout of a tensor that a step's code reaches, if anything but its place is known of it."""
    if id(member.tensor) in fakes:
        return recorder.layout(fakes[id(member.tensor)])
    return next((layout for layout, value in recorder.constants.items() if value is member.tensor), None)


def _memory(fake: torch.Tensor | None) -> tuple[int, bool] | None:
    """Which memory a fake tensor stands for, and whether it wants a gradient."""
    if fake is None or not isinstance(fake, private.FakeTensor) or fake.layout is not torch.strided:
        return None
    return private.storage_identity(fake.untyped_storage()), fake.requires_grad and fake.is_leaf


def _refuse_other_memory(
    found: Iterable[Member], before: Iterable[tuple[int, bool] | None], after: Iterable[tuple[int, bool] | None]
) -> None:
    for member, was, now in zip(found, before, after, strict=True):
        if was is not None and now is not None and was[0] != now[0]:
            raise StowageError(
                f"the step gives {member.name} other memory (.data = ...), which a plan would not: write to what it "
                "has, by .data.copy_(...)"
            )
        if was is not None and now is not None and was[1] and not now[1] and member.tensor.is_leaf:
            raise StowageError(
                f"the step leaves {member.name} without requires_grad, and a plan would not: do so between two steps "
                "of Run.steps"
            )


def _held(member: Member, layout: Layout) -> Held:
    return Held(member.name, member.key, member.kind, member.path, layout)


def _gradients(found: list[Member], fakes: Mapping[int, torch.Tensor], recorder: Recorder) -> dict[str, Layout]:
    gradients = {}
    for member in found:
        tensor = fakes.get(id(member.tensor))
        gradient = tensor.grad if tensor is not None and member.kind is Kind.PARAMETER else None
        if gradient is not None:
            gradients[member.name] = recorder.layout(recorder.resolved(gradient))
    return gradients


def _with_gradients(found: list[Member], fakes: Mapping[int, torch.Tensor]) -> list[Member]:
    """The members that get a gradient in the step."""
    places = [(one, fakes.get(id(one.tensor)), one.tensor) for one in found if one.tensor.is_leaf]
    return [
        one
        for one, fake, real in places
        if (fake is not None and fake.grad is not None) or isinstance(real.grad, private.FakeTensor)
    ]


@contextmanager
def _without_collection() -> Iterator[None]:
    """Nothing made while tracing is garbage yet; looking for it costs a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
