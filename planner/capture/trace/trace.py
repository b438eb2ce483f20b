"""Tracing of a step: runs it on fake tensors and records every kernel call, without memory for any tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from planner import torch_private as private
from planner.capture.composites import as_on_device
from planner.capture.failures.failures import explain
from planner.capture.fakes.absent_device import on_device
from planner.capture.fakes.fake_devices import FakeDevice
from planner.capture.fakes.fakes import (
    check_devices,
    fake_batch,
    fake_leaves,
    fake_members,
    fake_model,
    fake_reached,
)
from planner.capture.fakes.leaked_fakes import Leftovers
from planner.capture.hooks.active_modes import refuse_observers
from planner.capture.hooks.hooks import Hooks, refuse_hooks
from planner.capture.record.concrete_values import Steering
from planner.capture.record.gradient_scaling import TracedScaler
from planner.capture.record.known_positions import refuse_positions_out_of_range
from planner.capture.record.non_torch_rng import unchanged_generators
from planner.capture.record.optimizer_kernels import PersistentTensor, Updates
from planner.capture.record.recorder import Recorder
from planner.capture.record.rng_tracker import RngTracker
from planner.capture.saved.saved_tensor_log import SavedTensorLog
from planner.capture.source.user_lines import UserLines
from planner.capture.trace.changed_loss_extras import refuse_changing
from planner.capture.trace.interrupts import interrupted_safely
from planner.capture.trace.variable_changes import Changes
from planner.errors import StowageError
from planner.finalizers import without_garbage_collection
from planner.graph import Kind
from planner.program import Backend, Effects, Event, ExtrasForm, Layout, Readings, ScalarRef, as_default
from planner.progress import Progress
from planner.step import (
    CaptureGuards,
    Form,
    ModuleTensor,
    Step,
    rebuilt,
    refuse_other_optimizers,
    restored,
    substitute,
    tensors_of,
    unwritten,
)

_RUNNING = "running the model on fake tensors"


@dataclass(frozen=True)
class Trace:
    """A recorded step.

    Args:
        name: name of the step.
        events: kernel calls in order.
        storage_bytes: sizes in bytes by storage number.
        persistent: parameters, buffers and optimizer states.
        batch: (name, layout) per tensor leaf of the batch.
        outputs: layouts of the outputs.
        gradients: layouts by parameter name.
        constants: layouts and values of tensors that are neither persistent nor computed.
        literals: storages of those constants that the step creates anew each time (`torch.tensor(0.5)`).
        modules: class name by module path.
        guards: the capture guards of the step.
        scalars: by reference, the parameter group, a parameter with the right step count, and the quantity.
        representatives: by updated parameter, the parameter that represents it in `scalars`.
        effects: effects on Python variables; None if there are none.
        returned: how many of the outputs the step returns; the others are for `effects`.
        form: the batch apart from the numbers in its tensors.
        given: the real batch with its current plain values, since it may be refilled; None if there is none.
        readings: values of the batch that Python code read.
        guessed: whether Python code asked if it was being traced while the batch had no values to read.
        saved: the tensors that autograd saved; None if they were not recorded.
        extras: how the outputs after the loss are put together; None if the loss returns nothing beside its value.
        overflow: layout of the number that is not 0 if a gradient is not finite; None without a gradient scaler.
    """

    name: str
    events: list[Event]
    storage_bytes: list[int]
    persistent: list[PersistentTensor]
    batch: list[tuple[str, Layout]]
    outputs: list[Layout]
    gradients: dict[str, Layout]
    constants: list[tuple[Layout, torch.Tensor]]
    literals: set[int]
    modules: dict[str, str]
    guards: CaptureGuards
    scalars: dict[ScalarRef, tuple[int, str, str]]
    representatives: dict[str, str]
    effects: Effects | None
    returned: int
    form: Form
    given: Any
    readings: Readings
    guessed: bool
    saved: SavedTensorLog | None = None
    extras: ExtrasForm | None = None
    overflow: Layout | None = None

    @property
    def kept(self) -> Iterator[Layout]:
        """Layouts of the tensors that outlive the step."""
        yield from self.outputs
        if self.overflow is not None:
            yield self.overflow
        for one in self.persistent:
            yield one.layout
            if one.replaced is not None:
                yield one.replaced


def trace(step: Step, backend: Backend, progress: Progress, saved: SavedTensorLog | None = None) -> Trace:
    """Trace a step by running it once on fake tensors.

    Args:
        step: the step; its model is left unchanged.
        backend: of the device that it is to run on.
        progress: called with the fraction done, from 0 to 1, and a description of the current work; it may raise.
        saved: filled with the tensors that autograd saves; None to leave autograd without hooks.

    Raises:
        StowageError: the model does something that no graph can represent, or it raises an exception.
    """
    leftovers = Leftovers()
    with interrupted_safely() as check_interrupted:
        try:
            traced = _trace(step, backend, progress, leftovers, saved, check_interrupted)
        finally:
            leftovers.clear()
    leftovers.refuse()
    return traced


def _trace(
    step: Step,
    backend: Backend,
    progress: Progress,
    leftovers: Leftovers,
    saved: SavedTensorLog | None,
    check_interrupted: Callable[[], None],
) -> Trace:
    def report_calls(calls: int) -> None:
        progress(0.1, f"{_RUNNING}: {calls:,} ops")

    fake = private.FakeTensorMode(allow_non_fake_inputs=True)
    progress(0.0, "building the model")
    given = step.live is not None or isinstance(step.model, nn.Module)
    if step.live is not None:
        model, batch = step.live.model, step.live.batch
    else:
        generator = torch.Generator()  # the functions may draw and set seeds while the user keeps drawing
        with as_default(generator):
            generator.manual_seed(step.seed)
            model = step.make_model() if given else fake_model(step.make_model, fake, generator)
            generator.manual_seed(step.seed + 1)
            batch = fake_batch(step.make_batch, fake, generator)
    check_devices(model, batch, backend.fakes_on, given=given)
    refuse_observers()
    reach = step.reach(model)
    with restored(reach), unchanged_generators():
        found = step.persistent_tensors(model, reach)
        refuse_hooks(model, step.loss, found, step.torch_optimizer)
        own = [member for member in found if not member.reached]
        device = FakeDevice(backend.fakes_on, fake)
        fakes = fake_members(own, device)
        fakes |= fake_reached([member for member in found if member.reached], device)
        setup = step.setup(model, found, reach)
        form = Form(batch)
        as_given = rebuilt(batch, tensors_of(batch)) if step.live is not None or not callable(step.batch) else None
        real = tensors_of(batch)
        batch = fake_leaves(batch, found, device)
        groups = step.groups(model)
        steering = readings = Steering(list(real.values()), list(real), backend.fakes_on)
        substitute(reach, fakes)
        classes = {path: type(module).__name__ for path, module in model.named_modules()}
        draws, lines = RngTracker(backend), UserLines(model)
        recorder = Recorder(
            backend,
            fake,
            {id(module): path for path, module in model.named_modules()},
            lines,
            draws,
            steering,
            leftovers,
            report_calls,
            check_interrupted,
        )
        persistent = [_persistent(member, recorder.layout(fakes[id(member.tensor)])) for member in own]
        inputs = [(name, recorder.layout(leaf)) for name, leaf in tensors_of(batch).items()]
        steering.hold_batch([layout for _, layout in inputs])
        for member in found:
            tensor = fakes.get(id(member.tensor), member.tensor)
            if tensor is not member.tensor:
                leftovers.note(tensor)
                steering.hold_member(member, recorder.layout(tensor))
        scaler = _scaler(step, recorder, groups, found, fakes, backend.fakes_on)
        changes = Changes(step, model, reach, fakes)
        before = [_memory(fakes.get(id(member.tensor))) for member in found]
        check_interrupted()
        progress(0.1, _RUNNING)
        log = saved.following(recorder.layout, lambda: len(recorder.events)) if saved is not None else nullcontext()
        try:
            with (
                draws.following(fake), fake, recorder, recorder.watching_modules(), without_garbage_collection(),
                private.quiet(), Hooks(model, step.loss).watched(recorder.running), as_on_device(backend, fake),
                private.tracing_hidden(steering.active) as question, torch.autograd.set_detect_anomaly(False),
                private.addresses_refused(), unwritten(step.torch_optimizer), log,
            ):  # fmt: skip
                outputs = step.passes(model, batch, recorder.enter, scaler)
                draws.finish()
        except Exception as error:
            raise explain(error, recorder.phase, recorder.current, recorder.paths, classes) from error
        refuse_positions_out_of_range(recorder.events, recorder.constants)
        _refuse_other_memory(found, before, [_memory(fakes.get(id(member.tensor))) for member in found])
        used = {layout.storage for event in recorder.events for layout in event.arguments}
        for member in found:
            if member.reached:
                layout = _reached(member, fakes, recorder)
                if layout is not None and (layout.storage in used or changes.replaces(fakes.get(id(member.tensor)))):
                    persistent.append(_persistent(member, layout))
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
        persistent, effects, left = changes.found(persistent, found, recorder)
        if changes.advances and not step.recapture:
            steering = Steering(list(real.values()), list(real), backend.fakes_on)
            once_more = Recorder(
                backend, fake, {}, lines, RngTracker(backend), steering, leftovers, report_calls, check_interrupted
            )
            steering.hold_batch([once_more.layout(leaf) for leaf in tensors_of(batch).values()])
            changes.refuse_advancing(lambda: _again(step, model, batch, fakes.values(), once_more))
        check_interrupted()
        progress(0.7, "adding the optimizer")
        overflow, skipping = (None, None) if scaler is None else scaler.overflow()
        updates = Updates(step, recorder, found, skipping)
        updates.emit(groups, persistent, gradients)
        if scaler is not None:
            scaler.update()
        if outputs.form is not None:
            refuse_changing(outputs.form, returned[1:], recorder.events, persistent)
        known = {one.layout for one in persistent}
        return Trace(
            step.given_name or (step.name if given else type(model).__name__),
            on_device(recorder.events, backend) if backend.approximate else recorder.events,
            recorder.storage_bytes,
            persistent + updates.states + ([] if scaler is None else scaler.states),
            inputs,
            [*returned, *left],
            gradients,
            [(layout, value) for layout, value in recorder.constants.items() if layout not in known],
            recorder.literals,
            classes,
            setup,
            updates.scalars,
            updates.representatives,
            effects,
            len(outputs),
            form,
            as_given,
            readings.finish([one.layout.storage for one in persistent if one.replaced is not None]),
            question.asked and not readings.active,
            saved,
            outputs.form,
            overflow,
        )


def _again(
    step: Step,
    model: nn.Module,
    batch: Any,
    fakes: Iterable[torch.Tensor],
    recorder: Recorder,
) -> None:
    """Run the step a second time, on the state that the first run left behind."""
    for tensor in fakes:
        if tensor.is_leaf:
            tensor.grad = None
    with recorder.draws.following(recorder.fake), recorder.fake, recorder, private.quiet():
        step.passes(model, batch, recorder.enter)


def _scaler(
    step: Step,
    recorder: Recorder,
    groups: Iterable[tuple[Mapping[str, Any], Iterable[str]]],
    found: Iterable[ModuleTensor],
    fakes: Mapping[int, torch.Tensor],
    device: str,
) -> TracedScaler | None:
    if step.scaler is None:
        return None
    updated = {name for _, names in groups for name in names}
    parameters = {one.name: fakes[id(one.tensor)] for one in found if one.name in updated and id(one.tensor) in fakes}
    return TracedScaler(step.scaler, recorder, parameters, device)


def _reached(member: ModuleTensor, fakes: Mapping[int, torch.Tensor], recorder: Recorder) -> Layout | None:
    """Return the layout of a tensor that the step's code reaches, or None if no layout was recorded."""
    if id(member.tensor) in fakes:
        return recorder.layout(fakes[id(member.tensor)])
    return next((layout for layout, value in recorder.constants.items() if value is member.tensor), None)


def _memory(fake: torch.Tensor | None) -> tuple[int, bool] | None:
    """Return the storage identity of a fake tensor, and whether it is a leaf that requires a gradient."""
    if fake is None or not isinstance(fake, private.FakeTensor) or fake.layout is not torch.strided:
        return None
    return private.storage_identity(fake.untyped_storage()), fake.requires_grad and fake.is_leaf


def _refuse_other_memory(
    found: Iterable[ModuleTensor], before: Iterable[tuple[int, bool] | None], after: Iterable[tuple[int, bool] | None]
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


def _persistent(member: ModuleTensor, layout: Layout) -> PersistentTensor:
    return PersistentTensor(member.name, member.key, member.kind, member.path, layout)


def _gradients(found: list[ModuleTensor], fakes: Mapping[int, torch.Tensor], recorder: Recorder) -> dict[str, Layout]:
    gradients = {}
    for member in found:
        tensor = fakes.get(id(member.tensor))
        gradient = tensor.grad if tensor is not None and member.kind is Kind.PARAMETER else None
        if gradient is not None:
            gradients[member.name] = recorder.layout(recorder.resolved(gradient))
    return gradients


def _with_gradients(found: list[ModuleTensor], fakes: Mapping[int, torch.Tensor]) -> list[ModuleTensor]:
    """The module tensors that receive a gradient in the step."""
    places = [(one, fakes.get(id(one.tensor)), one.tensor) for one in found if one.tensor.is_leaf]
    return [
        one
        for one, fake, real in places
        if (fake is not None and fake.grad is not None) or isinstance(real.grad, private.FakeTensor)
    ]
