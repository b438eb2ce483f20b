"""The kernels by which an optimizer updates parameters, in the order of `torch.optim` with `foreach=False`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from planner import torch_private as private
from planner.capture.record.recorder import Recorder
from planner.graph import Kind, Phase
from planner.program import Event, Layout, ScalarRef
from planner.step import ModuleTensor, Step, state_names, step_dtype, untouched

_ATEN = torch.ops.aten


@dataclass(frozen=True, slots=True)
class PersistentTensor:
    """A tensor that outlives the step.

    Args:
        name: name in the graph.
        key: key in `Step.state()`.
        kind: parameter, buffer or optimizer state.
        module: path of the module that owns it.
        layout: layout before the step.
        replaced: layout of the tensor that replaces it in the module after the step; None if it is not replaced.
    """

    name: str
    key: str
    kind: Kind
    module: str
    layout: Layout
    replaced: Layout | None = None


class Skipping(NamedTuple):
    """What says in a step whether it updates nothing, as the gradient scaler found a gradient that is not finite.

    Args:
        overflowed: a bool, whether it updates nothing.
        counted: a number, by how much step counts grow: 0 or 1.
    """

    overflowed: Layout
    counted: Layout


class Updates:
    """Adds the optimizer's calls to the recording; `states` and `scalars` are what they additionally need.

    `representatives` maps each updated parameter to the one whose step count represents its own.

    Args:
        step, found: the step and its module tensors.
        recorder: of the step.
        skipping: says whether the step updates nothing; None if it always updates.
    """

    def __init__(
        self, step: Step, recorder: Recorder, found: Sequence[ModuleTensor], skipping: Skipping | None
    ) -> None:
        self._skipping = skipping
        self.states: list[PersistentTensor] = []
        self.scalars: dict[ScalarRef, tuple[int, str, str]] = {}
        self.representatives: dict[str, str] = {}
        self._recorder = recorder
        self._tensors = {member.name: member.tensor for member in found}
        self._optimizer = step.torch_optimizer
        self._kept = self._optimizer.state if self._optimizer is not None else {}
        self._first: dict[tuple[int, float, bool], str] = {}
        self._lines = _first_lines(recorder.events)

    def emit(
        self,
        groups: Sequence[tuple[Mapping[str, Any], Sequence[str]]],
        persistent: Sequence[PersistentTensor],
        gradients: Mapping[str, Layout],
    ) -> None:
        """Add the update of every parameter that has a gradient.

        Args:
            groups: hyperparameters and parameter names.
            persistent: persistent tensors, including the parameters.
            gradients: layouts by parameter name.
        """
        self._recorder.enter(Phase.OPTIMIZER)
        parameters = {one.name: one for one in persistent}
        for place, (group, names) in enumerate(groups):
            for name in names:
                if name in gradients:
                    states = {key: self._state(parameters[name], key) for key in state_names(group)}
                    scalar = self._scalar(place, group, name)
                    line = self._lines.get(parameters[name].layout.storage, "")
                    kernels = _Kernels(self._recorder, parameters[name].module, line, self._skipping)
                    _emit(kernels, group, parameters[name].layout, gradients[name], states, scalar)

    def _state(self, parameter: PersistentTensor, key: str) -> Layout:
        live = self._kept.get(self._tensors[parameter.name], {}).get(key)
        if key == "step":
            like = Layout(0, (), (), 0, step_dtype() if live is None else live.dtype)
        elif live is not None:
            like = parameter.layout._replace(strides=live.stride(), dtype=live.dtype)
        else:
            like = parameter.layout
        layout = self._recorder.fresh(like)
        title = f"{parameter.name}/{key}"
        self.states.append(
            PersistentTensor(title, f"optimizer/{title}", Kind.OPTIMIZER_STATE, parameter.module, layout)
        )
        return layout

    def _scalar(self, place: int, group: Mapping[str, Any], name: str) -> Callable[[str], ScalarRef]:
        """Return a factory of references for a parameter; parameters of a group with equal step counts share them."""
        state = self._kept.get(self._tensors[name], {})
        undamped = bool(group.get("dampening")) and untouched(self._optimizer, self._tensors[name])
        first = self._first.setdefault((place, float(state.get("step", 0.0)), undamped), name)
        self.representatives[name] = first

        def reference(quantity: str) -> ScalarRef:
            made = ScalarRef(f"{place}/{first}/{quantity}")
            self.scalars[made] = (place, first, quantity)
            return made

        return reference


class _Kernels:
    """Records the kernels that update one parameter.

    Where a step may update nothing, updates of a persistent tensor are computed beside it, and are then written to it
    or not: no kernel needs to be left out, and the old numbers stay as they are, bit for bit.

    Args:
        recorder: of the step.
        module, line: of the parameter.
        skipping: says whether the step updates nothing; None if it always updates.
    """

    def __init__(self, recorder: Recorder, module: str, line: str, skipping: Skipping | None) -> None:
        self._recorder, self._module, self._line, self._skipping = recorder, module, line, skipping
        self._updated: dict[Layout, Layout] = {}

    def new(self, target: Any, *args: Any, **kwargs: Any) -> Layout:
        """Add a call whose result is a new tensor with the layout of its first argument."""
        return self._recorder.emit(target, args, kwargs, module=self._module, source=self._line, like=args[0])

    def update(self, target: Any, state: Layout, *args: Any, **kwargs: Any) -> None:
        """Add a call that updates a persistent tensor, its first argument."""
        if self._skipping is None:
            self._in_place(target, state, *args, **kwargs)
        elif state in self._updated:
            self._in_place(target, self._updated[state], *args, **kwargs)
        else:
            self._updated[state] = self.new(private.functional_form(target), state, *args, **kwargs)

    def finish(self, state: Layout) -> None:
        """Write what has become of a persistent tensor to it, which no later call of this step updates."""
        if self._skipping is not None:
            updated = self._updated.pop(state)
            self._in_place(_ATEN.where.self_out, self._skipping.overflowed, state, updated, out=state)

    def count(self, steps: Layout) -> None:
        """Count this step."""
        self._in_place(_ATEN.add_.Tensor, steps, 1 if self._skipping is None else self._skipping.counted)

    def keep_larger(self, state: Layout, other: Layout) -> None:
        """Update a persistent tensor to the maximum of it and another."""
        if self._skipping is None:
            self._in_place(_ATEN.maximum.out, state, other, out=state)
        else:
            self._updated[state] = self.new(_ATEN.maximum.default, state, other)

    def _in_place(self, target: Any, *args: Any, **kwargs: Any) -> None:
        self._recorder.emit(target, args, kwargs, module=self._module, source=self._line)


def _emit(
    kernels: _Kernels,
    group: Mapping[str, Any],
    parameter: Layout,
    gradient: Layout,
    state: Mapping[str, Layout],
    scalar: Callable[[str], ScalarRef],
) -> None:
    new, update, finish = kernels.new, kernels.update, kernels.finish
    adam = "betas" in group
    if group.get("maximize", False):
        gradient = new(_ATEN.neg.default, gradient)
    if adam:
        kernels.count(state["step"])
    if group["weight_decay"] != 0:
        if adam and group.get("decoupled_weight_decay", False):
            update(_ATEN.mul_.Tensor, parameter, scalar("1-lr*weight_decay"))
        else:
            gradient = new(_ATEN.add.Tensor, gradient, parameter, alpha=scalar("weight_decay"))
    if not adam:
        if group["momentum"] != 0:
            momentum = state["momentum_buffer"]
            update(_ATEN.mul_.Tensor, momentum, scalar("momentum"))
            update(_ATEN.add_.Tensor, momentum, gradient, alpha=scalar("1-dampening"))
            finish(momentum)
            if group["nesterov"]:
                gradient = new(_ATEN.add.Tensor, gradient, momentum, alpha=scalar("momentum"))
            else:
                gradient = momentum
        update(_ATEN.add_.Tensor, parameter, gradient, alpha=scalar("-lr"))
        finish(parameter)
        return
    if parameter.dtype.is_complex:
        parameter, gradient = _as_real(parameter), _as_real(gradient)
        state = {name: layout if name == "step" else _as_real(layout) for name, layout in state.items()}
    mean, square = state["exp_avg"], state["exp_avg_sq"]
    update(_ATEN.lerp_.Scalar, mean, gradient, scalar("1-beta1"))
    finish(mean)
    update(_ATEN.mul_.Tensor, square, scalar("beta2"))
    update(_ATEN.addcmul_.default, square, gradient, gradient, value=scalar("1-beta2"))
    finish(square)
    if group["amsgrad"]:
        largest = state["max_exp_avg_sq"]
        kernels.keep_larger(largest, square)
        finish(largest)
        square = largest
    root = new(_ATEN.sqrt.default, square)
    root = new(_ATEN.div.Tensor, root, scalar("bias_correction2_sqrt"))
    root = new(_ATEN.add.Tensor, root, scalar("eps"))
    update(_ATEN.addcdiv_.default, parameter, mean, root, value=scalar("-step_size"))
    finish(parameter)


def _first_lines(events: Iterable[Event]) -> dict[int, str]:
    """By storage, the first line that has a call read it; the update of a parameter belongs to that line."""
    found: dict[int, str] = {}
    for event in events:
        if event.source:
            for layout in event.arguments:
                found.setdefault(layout.storage, event.source)
    return found


def _as_real(layout: Layout) -> Layout:
    """View complex numbers as pairs of real ones, as `torch.optim` passes them to Adam's kernels."""
    return Layout(
        layout.storage,
        (*layout.shape, 2),
        (*(2 * stride for stride in layout.strides), 1),
        2 * layout.offset,
        layout.dtype.to_real(),
    )
