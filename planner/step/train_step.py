"""A training step."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, Self

import torch
from torch import nn
from torch.amp.grad_scaler import GradScaler
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from planner import torch_private as private
from planner.errors import StowageError
from planner.graph import Kind, Phase
from planner.guards import Reach, undisturbed
from planner.program import Outputs
from planner.step import optimizer_state, optimizers
from planner.step.batches import cut, tensor_leaves
from planner.step.capture_guards import CaptureGuards, optimizer_guards
from planner.step.extras import ExtrasOfStep
from planner.step.gradient_scaling import LiveScaler, LossScaler, enabled_scaler, refuse_scaler_in_use, scaler_guards
from planner.step.hyperparameter_schedules import advance
from planner.step.module_tensors import ModuleTensor, module_tensors
from planner.step.step import Live, Step

#: What a loss returns: a scalar, or a pair of it and extras.
Loss = Callable[[nn.Module, Any], torch.Tensor | tuple[torch.Tensor, Any]]


class TrainStep(Step):
    """A training step: forward, loss, backward and optimizer.

    Args:
        model: a module, or a function that makes one, so that a model larger than memory can be captured.
        batch: a pytree of tensors, or a function that makes one.
        loss: function from module and batch to a scalar, or to a pair of it and extras: a tensor, or a tuple, list or
            dict of tensors, which a run returns for each step as they were when the loss returned; with several
            micro-batches that is a tuple of the extras of each. Without a loss, `model(**batch).loss` is used.
        optimizer: `SGD`, `Adam` or `AdamW` of this package, or a live optimizer of `torch.optim` over the module's
            parameters, whose groups, state and learning rates are followed; without it `SGD(lr=1e-2)`. It updates
            parameters one by one, as with `foreach=False`, whatever its `foreach` is; `fused=True` is refused, since
            its kernels round differently.
        scheduler: a learning-rate scheduler of that live optimizer, which is stepped after each step.
        clip_norm: gradients are scaled down to this norm, as `torch.nn.utils.clip_grad_norm_` does.
        micro_batches: number of parts that the batch is cut into along dimension 0; their gradients are averaged.
        autocast: a dtype, `torch.bfloat16` or `torch.float16`: forward and loss run under `torch.autocast`.
        scaler: a `torch.amp.GradScaler`, which scales the loss and unscales the gradients, before they are clipped; a
            step with a gradient that is not finite then updates nothing but the scaler. One that is disabled is none.
        recapture: whether to capture every step again if the step itself changes a number, such as a counter that
            a weight depends on; without it such a step is refused.
        name: for titles; the name of the module's class or function if None.
        seed: random seed for functions that make the model or the batch.

    Raises:
        StowageError: an optimizer that cannot be captured, or arguments that contradict each other.
    """

    def __init__(
        self,
        model: nn.Module | Callable[[], nn.Module],
        batch: Any,
        *,
        loss: Loss | None = None,
        optimizer: optimizers.Spec | torch.optim.Optimizer | None = None,
        scheduler: LRScheduler | None = None,
        clip_norm: float | None = None,
        micro_batches: int = 1,
        autocast: torch.dtype | None = None,
        scaler: GradScaler | None = None,
        recapture: bool = False,
        name: str | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(model, batch, name, seed)
        self.optimizer = optimizers.SGD() if optimizer is None else optimizer
        optimizers.check_supported(self.optimizer)
        if isinstance(self.optimizer, torch.optim.Optimizer) and not isinstance(model, nn.Module):
            raise StowageError(
                "a torch.optim optimizer belongs to one module: pass that module instead of a function, "
                "or planner.SGD, Adam or AdamW instead of the optimizer"
            )
        if scheduler is not None and scheduler.optimizer is not self.optimizer:
            raise StowageError("the scheduler belongs to another optimizer: pass its optimizer as optimizer= too")
        if not isinstance(micro_batches, int) or micro_batches < 1:
            raise StowageError(f"micro_batches is {micro_batches!r}: it must be at least 1, and whole")
        if autocast not in (None, torch.bfloat16, torch.float16):
            raise StowageError(
                f"autocast is {autocast!r}: pass a dtype such as torch.bfloat16 or torch.float16, or None"
            )
        if clip_norm is not None and not clip_norm > 0:
            raise StowageError(f"clip_norm is {clip_norm}: it must be above 0, or None for no clipping")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise StowageError("ReduceLROnPlateau follows what was measured: step it between two steps of Run.steps")
        self.scheduler = scheduler
        self.loss = loss
        self.clip_norm = clip_norm
        self.micro_batches = micro_batches
        self.autocast = autocast
        self.scaler = enabled_scaler(scaler)
        self.recapture = recapture

    def passes(
        self, model: nn.Module, batch: Any, enter: Callable[[Phase], None], scaler: LossScaler | None = None
    ) -> Outputs:
        """Forward, loss and backward over all micro-batches, then clipping; returns the mean loss and the extras."""
        parts = cut(batch, self.micro_batches)
        shares, extras = [], ExtrasOfStep(model)
        for part in parts:
            enter(Phase.FORWARD)
            with self._precision(part):
                loss = extras.split(_own_loss(model, part) if self.loss is None else self.loss(model, part))
            share = loss / len(parts) if len(parts) > 1 else loss
            shares.append(share.detach())
            scaled = share if scaler is None else scaler.scale(share)
            enter(Phase.BACKWARD)
            scaled.backward()  # type: ignore[no-untyped-call]
        total = shares[0]
        for share in shares[1:]:
            total = total + share
        if scaler is not None:
            enter(Phase.OPTIMIZER)
            scaler.unscale()
        if self.clip_norm is not None:
            enter(Phase.OPTIMIZER)
            nn.utils.clip_grad_norm_(model.parameters(), self.clip_norm, foreach=False)
        return extras.outputs(total)

    def compute(self, batch: Any = None) -> Outputs:
        """Make one ordinary step with autograd and `torch.optim` (`foreach=False`) on the live module, in place.

        Args:
            batch: replaces the step's own.

        Returns:
            The loss and the tensors of its extras.
        """
        live = self.materialize()
        assert live.optimizer is not None
        self.complete()
        live.model.zero_grad(set_to_none=True)
        scaler = None if live.scaler is None else LiveScaler(live.scaler, live.optimizer)
        with nullcontext() if scaler is None else scaler.iteration():
            outputs = self.passes(live.model, live.batch if batch is None else batch, lambda _: None, scaler)
            if isinstance(self.optimizer, optimizers.Spec):
                for group in live.optimizer.param_groups:
                    group["lr"] = optimizers.settings(self.optimizer, live.steps)["lr"]
            with _first_momentum_undamped(live.optimizer), _single_tensor_kernels(live.optimizer):
                (live.optimizer if scaler is None else scaler).step()
        return outputs

    def computed(self) -> None:
        """Account for a step that `compute` has made."""
        self.advance(1)
        self.settle()

    def advance(self, count: int) -> None:
        """Account for steps that were made elsewhere; the learning-rate schedule continues from there."""
        super().advance(count)
        live = self.materialize()
        if count and live.optimizer is not None:
            private.note_step(live.optimizer)
        if live.scheduler is not None:
            advance(live.scheduler, count)

    def state(self, reach: Reach | None = None) -> dict[str, torch.Tensor]:
        """The live tensors of the state by key.

        Keys are `model/<name>`, `code/<name>`, `optimizer/<parameter>/<state>`, and `scaler/<state>`.
        """
        found = super().state(reach)
        live = self.materialize()
        assert live.optimizer is not None
        for group, names in self.groups(live.model):
            for name, parameter in zip(names, group["params"], strict=True):
                state = live.optimizer.state.get(parameter, {})
                states = (key for key in optimizers.state_names(group) if state.get(key) is not None)
                found.update({f"optimizer/{name}/{key}": state[key] for key in states})
        found.update({f"scaler/{name}": tensor for name, tensor in self.scaler_tensors().items()})
        return found

    def scaler_tensors(self) -> dict[str, torch.Tensor]:
        """The live tensors of the gradient scaler by name; empty without a scaler."""
        live = self.materialize()
        return {} if live.scaler is None else private.scaler_state(live.scaler, _device_of(live.model))

    def clone(self) -> Self:
        """An independent copy of the step in its present state, sharing nothing that a step changes."""
        other = super().clone()
        assert other.live is not None
        assert self.live is not None
        assert self.live.optimizer is not None
        assert other.live.optimizer is not None
        optimizer_state.copy_untouched(self.live.optimizer, other.live.optimizer)
        if isinstance(other.optimizer, torch.optim.Optimizer):
            other.optimizer, other.scheduler = other.live.optimizer, other.live.scheduler
        other.scaler = other.live.scaler
        return other

    def setup(self, model: nn.Module, persistent: Iterable[ModuleTensor], reach: Reach) -> CaptureGuards:
        """The capture guards of the model, a live optimizer and this step's own settings.

        Args:
            model: real or fake.
            persistent, reach: of the model.
        """
        refuse_scaler_in_use(self.scaler, reach)
        found = dict(super().setup(model, persistent, reach))
        own_settings = ("loss", "clip_norm", "micro_batches", "autocast")
        found.update({f"step.{name}": getattr(self, name) for name in own_settings})
        found.update(scaler_guards(self.scaler))
        if isinstance(self.optimizer, torch.optim.Optimizer):
            optimizers.check_supported(self.optimizer)
            found.update(optimizer_guards(self.groups(model)))
        return found

    def complete(self) -> None:
        """Create the optimizer state for parameters and hyperparameters that are new since its last step.

        Raises:
            StowageError: amsgrad was switched on in between.
        """
        live = self.materialize()
        assert live.optimizer is not None
        self._add_unfrozen_parameters(live)
        optimizer_state.complete(live.optimizer)

    def reads_schedule(self, reach: Reach | None) -> bool:
        """Whether the step's code reads numbers that the scheduler changes after each step, such as a learning rate.

        Args:
            reach: of the live model.
        """
        scheduler = self.materialize().scheduler
        if scheduler is None or reach is None:
            return False
        tables = {id(table) for table in (*scheduler.optimizer.param_groups, vars(scheduler))}
        return any(id(container.target) in tables for container in reach.containers)

    def settle(self, *, ended: bool = False) -> None:
        """Remove the optimizer state of parameters that get no gradient, for which PyTorch keeps none.

        Args:
            ended: whether no step follows at once, so that state of parameters which no step has updated goes too.
        """
        live = self.materialize()
        assert live.optimizer is not None
        if self.graph is None:
            return
        program: Any = self.graph.program
        used = {key for _, key in program.state}
        for group, names in self.groups(live.model):
            for name, parameter in zip(names, group["params"], strict=True):
                state = live.optimizer.state.get(parameter, {})
                if not (ended and live.scaler) and any(f"optimizer/{name}/{key}" in used for key in state):
                    continue
                if float(state.get("step", 0.0)) == 0 and optimizer_state.untouched(live.optimizer, parameter):
                    live.optimizer.state.pop(parameter, None)

    @undisturbed()
    def groups(self, model: nn.Module) -> list[tuple[dict[str, Any], list[str]]]:
        """Per parameter group, the hyperparameters (with the present learning rate) and the names of the parameters."""
        names = {id(entry.tensor): entry.name for entry in module_tensors(model) if entry.kind is Kind.PARAMETER}
        updated = self.torch_optimizer
        if updated is not None and any(
            id(one) not in names for group in updated.param_groups for one in group["params"]
        ):
            found = self.persistent_tensors(model, self.reach(model))
            names = {id(entry.tensor): entry.name for entry in found if entry.kind is Kind.PARAMETER}
        if self.live is not None and self.live.optimizer is not None:
            self._add_unfrozen_parameters(self.live)
            groups = self.live.optimizer.param_groups
        elif isinstance(self.optimizer, torch.optim.Optimizer):
            groups = self.optimizer.param_groups
        else:
            groups = [{"params": _trainable(model.parameters()), **optimizers.group_of(self.optimizer)}]
        for group in groups:
            for parameter in group["params"]:
                if id(parameter) not in names:
                    raise StowageError(
                        f"the optimizer updates a parameter of shape {tuple(parameter.shape)} that is not the model's: "
                        "make the optimizer, or the TrainStep, anew for the parameters that the model has now"
                    )
        return [(group, [names[id(parameter)] for parameter in group["params"]]) for group in groups]

    def _add_unfrozen_parameters(self, live: Live) -> None:
        """Add parameters unfrozen since to an optimizer that was made here, in the order of the model's parameters."""
        assert live.optimizer is not None
        if isinstance(self.optimizer, torch.optim.Optimizer):
            return
        (group,) = live.optimizer.param_groups
        known = {id(parameter) for parameter in group["params"]}
        if all(id(one) in known or not one.requires_grad for one in live.model.parameters()):
            return
        parameters = [one for one in live.model.parameters() if one.requires_grad or id(one) in known]
        kept_ids = {id(one) for one in parameters}
        group["params"] = parameters + [one for one in group["params"] if id(one) not in kept_ids]

    @undisturbed()
    def _make_live(self, model: nn.Module, batch: Any) -> Live:
        optimizer = self.optimizer
        if not isinstance(optimizer, torch.optim.Optimizer):
            optimizer = optimizer.build(_trainable(model.parameters()))
        optimizer_state.complete(optimizer)
        if self.scaler is not None:
            private.scaler_state(self.scaler, _device_of(model))  # made now, as ordinary tensors
        return Live(model, batch, optimizer, self.scheduler, self.scaler)

    def _precision(self, batch: Any) -> Any:
        if self.autocast is None:
            return nullcontext()
        leaves = tensor_leaves(batch)
        return torch.autocast(leaves[0].device.type if leaves else torch.get_default_device().type, dtype=self.autocast)


def _own_loss(model: nn.Module, batch: Any) -> object:
    """The loss that a model itself returns, as the models of transformers do."""
    example = "pass loss=, for example loss=lambda model, batch: model(batch[0]).square().mean()"
    if not isinstance(batch, Mapping):
        raise StowageError(f"there is no loss: {example}; or a batch that is a mapping, for a model with its own loss")
    try:
        inspect.signature(model.forward).bind(**batch)
    except TypeError as error:
        raise StowageError(
            f"without a loss the model is called as model(**batch), and it takes other arguments ({error}): {example}"
        ) from error
    output = model(**batch)
    loss = getattr(output, "loss", None)
    if loss is None:
        kind = "tensor" if isinstance(output, torch.Tensor) else type(output).__name__
        raise StowageError(f"there is no loss: the model returns a {kind} without one; {example}")
    return loss


@contextmanager
def _single_tensor_kernels(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Make an optimizer update parameters one by one, whatever its settings."""
    settings: list[dict[str, Any]] = [
        {name: group[name] for name in ("foreach", "fused") if name in group} for group in optimizer.param_groups
    ]
    for group, names in zip(optimizer.param_groups, settings, strict=True):
        group.update(dict.fromkeys(names, False))
    try:
        yield
    finally:
        for group, names in zip(optimizer.param_groups, settings, strict=True):
            group.update(names)


@contextmanager
def _first_momentum_undamped(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Let PyTorch make momentum buffers itself, so that the first gradient is not dampened.

    If the block raises or makes no step, the previous buffers are restored.
    """
    untouched = {
        parameter: optimizer.state[parameter].get("momentum_buffer")
        for group in optimizer.param_groups
        if group.get("dampening")
        for parameter in group["params"]
        if optimizer_state.untouched(optimizer, parameter)
    }
    try:
        for parameter in untouched:
            optimizer.state[parameter]["momentum_buffer"] = None
        yield
    except BaseException:
        for parameter, buffer in untouched.items():
            optimizer.state[parameter]["momentum_buffer"] = buffer
        raise
    if all(optimizer.state[parameter]["momentum_buffer"] is None for parameter in untouched):
        for parameter, buffer in untouched.items():
            optimizer.state[parameter]["momentum_buffer"] = buffer


def _device_of(model: nn.Module) -> torch.device:
    return next((one.device for one in model.parameters()), torch.get_default_device())


def _trainable(parameters: Iterable[nn.Parameter]) -> list[nn.Parameter]:
    trainable = [parameter for parameter in parameters if parameter.requires_grad]
    if not trainable:
        raise StowageError("no parameter of the model requires a gradient: unfreeze one, or use an InferenceStep")
    return trainable
