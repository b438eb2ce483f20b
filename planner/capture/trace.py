"""Running a step on fake tensors: every kernel call it makes, without memory for any tensor."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from planner.capture import torch_private as private
from planner.capture.failures import explain
from planner.capture.fakes import check_devices, fake_batch, fake_members, fake_model, fake_tensor
from planner.capture.members import Member, members, replace, restored
from planner.capture.optimizers import state_names
from planner.capture.program import ScalarRef
from planner.capture.recorder import Event, Layout, Recorder
from planner.capture.step import Step, tensor_leaves
from planner.capture.updates import emit_update
from planner.errors import StowageError
from planner.graph import Kind, Phase

Progress = Callable[[float, str], object]


@dataclass(frozen=True, slots=True)
class Held:
    """A tensor that outlives the step: its name in the graph, its key in `Step.state()`, its layout and its new value.

    `replaced` is the layout of the tensor that the module holds in its place after the step, where that is another.
    """

    name: str
    key: str
    kind: Kind
    module: str
    layout: Layout
    replaced: Layout | None = None


@dataclass
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
        modules: class name by module path.
        scalars: by reference, the parameter group, a parameter with the right count of steps, and the quantity.
    """

    name: str
    events: list[Event]
    storage_bytes: list[int]
    held: list[Held]
    batch: list[tuple[str, Layout]]
    outputs: list[Layout]
    gradients: dict[str, Layout]
    constants: list[tuple[Layout, torch.Tensor]]
    modules: dict[str, str]
    scalars: dict[ScalarRef, tuple[int, str, str]] = field(default_factory=dict)


def trace(step: Step, progress: Progress) -> Trace:
    """Run a step once on fake tensors.

    Raises:
        StowageError: the model does what no graph can hold, or raises.
    """
    fake = private.FakeTensorMode(allow_non_fake_inputs=True)
    progress(0.0, "building the model")
    live = step.live
    given = live is not None or isinstance(step.model, nn.Module)
    if live is not None:
        model = live.model
    else:
        model = step.make_model() if given else fake_model(step.make_model, fake)
    batch = live.batch if live is not None else fake_batch(step.make_batch, fake)
    check_devices(model, batch, meta=not given)
    with restored(model):
        found = members(model)
        fakes = fake_members(found, fake)
        batch = pytree.tree_map_only(torch.Tensor, lambda leaf: fake_tensor(leaf, fake, "a tensor of the batch"), batch)
        groups = step.groups(model)
        replace(model, fakes)
        paths = {id(module): path for path, module in model.named_modules()}
        classes = {path: type(module).__name__ for path, module in model.named_modules()}
        recorder = Recorder(fake, paths)
        held = [_held(member, recorder.layout(fakes[id(member.tensor)])) for member in found]
        names = [name for name, leaf in _named_leaves(batch) if isinstance(leaf, torch.Tensor)]
        inputs = list(zip(names, (recorder.layout(leaf) for leaf in tensor_leaves(batch)), strict=True))
        progress(0.1, "running the model on fake tensors")
        try:
            with fake, recorder, recorder.watching_modules(), _without_collection():
                outputs = step.passes(model, batch, lambda phase: _enter(recorder, phase))
                held = [_after(h, model, m, fakes, recorder) for h, m in zip(held, found, strict=True)]
        except Exception as error:
            raise explain(error, paths, classes, recorder.current, recorder.phase) from error
        gradients = {
            m.name: recorder.layout(fakes[id(m.tensor)].grad)
            for m in found
            if m.kind is Kind.PARAMETER and fakes[id(m.tensor)].grad is not None
        }
        result = Trace(
            step.name if isinstance(step.model, nn.Module) else step._name or type(model).__name__,
            recorder.events,
            recorder.storage_bytes,
            held,
            inputs,
            [recorder.layout(output) for output in outputs],
            gradients,
            list(recorder.constants.values()),
            classes,
        )
        progress(0.7, "adding the optimizer")
        _update(result, recorder, groups, {m.name: m for m in found}, step)
    return result


def _held(member: Member, layout: Layout) -> Held:
    return Held(member.name, f"model/{member.name}", member.kind, member.path, layout)


def _after(held: Held, model: nn.Module, member: Member, fakes: Mapping[int, torch.Tensor], recorder: Recorder) -> Held:
    """The same with the tensor that the module holds now, where the step put another in its place."""
    name = member.name.rpartition(".")[2]
    now = getattr(model.get_submodule(member.path), name, None)
    if not isinstance(now, torch.Tensor) or now is fakes[id(member.tensor)]:
        return held
    layout = recorder.layout(now)
    if layout == held.layout:
        return held
    if (layout.shape, layout.dtype) != (held.layout.shape, held.layout.dtype):
        raise StowageError(
            f"{member.name} has shape {layout.shape} after the step and {held.layout.shape} before: let the model keep "
            "the shape of its buffers"
        )
    return Held(held.name, held.key, held.kind, held.module, held.layout, layout)


def _enter(recorder: Recorder, phase: Phase) -> None:
    recorder.phase = phase


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


def _named_leaves(batch: Any) -> list[tuple[str, Any]]:
    leaves, _ = pytree.tree_flatten_with_path(batch)
    return [("batch" + "".join(f"/{_key(part)}" for part in path), leaf) for path, leaf in leaves]


def _key(part: Any) -> str:
    for attribute in ("key", "idx", "name"):
        if hasattr(part, attribute):
            return str(getattr(part, attribute))
    return str(part)


def _update(
    result: Trace,
    recorder: Recorder,
    groups: list[tuple[dict[str, Any], list[str]]],
    found: dict[str, Member],
    step: Step,
) -> None:
    recorder.phase = Phase.OPTIMIZER
    parameters = {held.name: held for held in result.held if held.kind is Kind.PARAMETER}
    optimizer = step.live.optimizer if step.live is not None else getattr(step, "optimizer", None)
    kept = optimizer.state if isinstance(optimizer, torch.optim.Optimizer) else {}
    representatives: dict[tuple[int, float], str] = {}
    for place, (group, names) in enumerate(groups):
        for name in names:
            if name not in result.gradients:
                continue
            parameter = parameters[name]
            states = {}
            live = kept.get(found[name].tensor, {})
            for key in state_names(group):
                layout = _state_layout(recorder, key, parameter.layout, live.get(key))
                states[key] = layout
                result.held.append(
                    Held(f"{name}/{key}", f"optimizer/{name}/{key}", Kind.OPTIMIZER_STATE, parameter.module, layout)
                )
            count = float(live["step"]) if "step" in live else 0.0
            holder = representatives.setdefault((place, count), name)

            def scalar(quantity: str, place: int = place, holder: str = holder) -> ScalarRef:
                reference = ScalarRef(f"{place}/{holder}/{quantity}")
                result.scalars[reference] = (place, holder, quantity)
                return reference

            emit_update(recorder, group, parameter.layout, result.gradients[name], states, scalar, parameter.module)


def _state_layout(recorder: Recorder, key: str, parameter: Layout, live: torch.Tensor | None) -> Layout:
    if key == "step":
        return recorder.fresh(Layout(0, (), (), 0, torch.float32))
    if live is not None:
        return recorder.fresh(parameter._replace(strides=live.stride(), dtype=live.dtype))
    return recorder.fresh(parameter)
