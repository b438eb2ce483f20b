"""Running a step on fake tensors: every kernel call it makes, without memory for any tensor."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import nn

from planner.capture import torch_private as private
from planner.capture.batches import leaf_names, tensor_leaves
from planner.capture.draws import Draws
from planner.capture.events import Event, Layout
from planner.capture.failures import explain
from planner.capture.fakes import check_devices, fake_batch, fake_members, fake_model, fake_tensor
from planner.capture.hooks import refuse_hooks
from planner.capture.members import Member, members, restored, substitute
from planner.capture.program import ScalarRef
from planner.capture.recorder import Recorder
from planner.capture.settings import Settings
from planner.capture.step import Step
from planner.capture.updates import Held, Updates
from planner.errors import StowageError
from planner.graph import Kind

Progress = Callable[[float, str], object]
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
        literals: storages of those among them that the step makes anew each time (`torch.tensor(0.5)`).
        modules: class name by module path.
        settings: of the model.
        scalars: by reference, the parameter group, a parameter with the right count of steps, and the quantity.
        alike: by updated parameter, the one that stands for it there.
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

    @property
    def kept(self) -> Iterator[Layout]:
        """What outlives the step."""
        yield from self.outputs
        for held in self.held:
            yield held.layout
            if held.replaced is not None:
                yield held.replaced


def trace(step: Step, progress: Progress) -> Trace:
    """Run a step once on fake tensors.

    Args:
        step: its model is left as it was.
        progress: told the share done, from 0 to 1, and what is being done; it may raise.

    Raises:
        StowageError: the model does what no graph can hold, or raises.
    """

    def heed(calls: int) -> None:
        progress(0.1, f"{_RUNNING}: {calls:,} ops")

    fake = private.FakeTensorMode(allow_non_fake_inputs=True)
    progress(0.0, "building the model")
    given = step.live is not None or isinstance(step.model, nn.Module)
    if step.live is not None:
        model, batch = step.live.model, step.live.batch
    else:
        model = step.make_model() if given else fake_model(step.make_model, fake)
        batch = fake_batch(step.make_batch, fake)
    check_devices(model, batch, meta=not given)
    with restored(model):
        found = members(model)
        if step.follows_modes:
            refuse_hooks(found, step.torch_optimizer)
        fakes = fake_members(found, fake)
        setup = step.setup(model, found)
        batch = private.pytree.tree_map_only(
            torch.Tensor, lambda leaf: fake_tensor(leaf, fake, "a tensor of the batch"), batch
        )
        groups = step.groups(model)
        substitute(model, fakes)
        classes = {path: type(module).__name__ for path, module in model.named_modules()}
        draws = Draws()
        recorder = Recorder(fake, {id(module): path for path, module in model.named_modules()}, draws, heed)
        held = [_held(member, recorder.layout(fakes[id(member.tensor)])) for member in found]
        inputs = list(zip(leaf_names(batch), map(recorder.layout, tensor_leaves(batch)), strict=True))
        progress(0.1, _RUNNING)
        try:
            with (
                draws.following(), fake, recorder, recorder.watching_modules(), _without_collection(),
                private.quiet(),
            ):  # fmt: skip
                outputs = step.passes(model, batch, recorder.enter)
                draws.finish()
        except Exception as error:
            raise explain(error, recorder.phase, recorder.current, recorder.paths, classes) from error
        held = [_after(one, model, member, fakes, recorder) for one, member in zip(held, found, strict=True)]
        gradients = _gradients(found, fakes, recorder)
        progress(0.7, "adding the optimizer")
        updates = Updates(step, recorder, found)
        updates.emit(groups, held, gradients)
        return Trace(
            step.given_name or (step.name if given else type(model).__name__),
            recorder.events,
            recorder.storage_bytes,
            held + updates.states,
            inputs,
            [recorder.layout(output) for output in outputs],
            gradients,
            list(recorder.constants.values()),
            recorder.literals,
            classes,
            setup,
            updates.scalars,
            updates.alike,
        )


def _held(member: Member, layout: Layout) -> Held:
    return Held(member.name, f"model/{member.name}", member.kind, member.path, layout)


def _after(held: Held, model: nn.Module, member: Member, fakes: Mapping[int, torch.Tensor], recorder: Recorder) -> Held:
    """The same with the tensor that the module holds now, where the step put another in its place."""
    now = getattr(model.get_submodule(member.path), member.name.rpartition(".")[2], None)
    if not isinstance(now, torch.Tensor) or now is fakes[id(member.tensor)]:
        return held
    layout = recorder.layout(now)
    storages = [recorder.layout(other).storage for other in fakes.values()]
    if layout.storage != held.layout.storage and storages.count(held.layout.storage) > 1:
        raise StowageError(
            f"{member.name} shares memory with another parameter or buffer before the step and not after it: make it a "
            "tensor of its own before the first step, for example by one forward pass"
        )
    if (layout.shape, layout.dtype) != (held.layout.shape, held.layout.dtype):
        raise StowageError(
            f"{member.name} has shape {layout.shape} and {layout.dtype} after the step, {held.layout.shape} and "
            f"{held.layout.dtype} before: let the model keep both"
        )
    return held if layout == held.layout else replace(held, replaced=layout)


def _gradients(found: list[Member], fakes: Mapping[int, torch.Tensor], recorder: Recorder) -> dict[str, Layout]:
    gradients = {}
    for member in found:
        gradient = fakes[id(member.tensor)].grad if member.kind is Kind.PARAMETER else None
        if gradient is not None:
            gradients[member.name] = recorder.layout(gradient)
    return gradients


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
