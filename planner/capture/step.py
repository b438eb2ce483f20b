"""Steps: what is captured, planned and run."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from planner.capture import optimizers
from planner.capture.members import members, plain_recurrence
from planner.capture.program import ScalarRef
from planner.errors import StowageError
from planner.graph import Graph, Kind, Phase

Loss = Callable[[nn.Module, Any], torch.Tensor]


@dataclass
class Live:
    """A step's real tensors.

    Args:
        model, batch: the module and the pytree of tensors it is given.
        optimizer: what updates the module; None for inference.
        steps: how many steps it has made so far; a learning-rate schedule goes on from there.
    """

    model: nn.Module
    batch: Any
    optimizer: torch.optim.Optimizer | None
    steps: int = 0


class Step:
    """One step over a model and a batch; see `TrainStep` and `InferenceStep`."""

    def __init__(self, model: nn.Module | Callable[[], nn.Module], batch: Any, name: str | None, seed: int) -> None:
        if not callable(model):
            raise StowageError(f"the model is a {type(model).__name__}: pass an nn.Module or a function that makes one")
        self.model = model
        self.batch = batch
        self.seed = seed
        self.graph: Graph | None = None
        self._name = name
        self.live: Live | None = None

    @property
    def name(self) -> str:
        """What to call it in titles; without a name of its own, the model's class."""
        source = self.live.model if self.live is not None else self.model
        return self._name or (type(source).__name__ if isinstance(source, nn.Module) else _function_name(source))

    def make_model(self) -> nn.Module:
        """The module given, or what the function given makes.

        Raises:
            StowageError: the function makes something else.
        """
        if isinstance(self.model, nn.Module):
            return self.model
        made = self.model()
        if not isinstance(made, nn.Module):
            raise StowageError(f"the model's function returned a {type(made).__name__}: let it return an nn.Module")
        return made

    def make_batch(self) -> Any:
        """The batch given, or what the function given makes."""
        return self.batch() if callable(self.batch) and not isinstance(self.batch, torch.Tensor) else self.batch

    def materialize(self) -> Live:
        """The real module and batch, made from the seed when first asked for."""
        if self.live is None:
            with torch.random.fork_rng():
                torch.manual_seed(self.seed)
                model = self.make_model()
                torch.manual_seed(self.seed + 1)
                batch = self.make_batch()
            self.live = Live(model, batch, None)
            self._prepare(self.live)
        return self.live

    def batch_leaves(self) -> list[torch.Tensor]:
        """The tensors of the real batch, in pytree order."""
        return tensor_leaves(self.materialize().batch)

    def state(self) -> dict[str, torch.Tensor]:
        """Every tensor that outlives a step, live, by key.

        Keys are `model/<name>` for parameters and buffers and `optimizer/<parameter>/<state>` for the optimizer's.
        """
        live = self.materialize()
        return {f"model/{member.name}": member.tensor.detach() for member in members(live.model)}

    def clone(self) -> Step:
        """An independent copy of the step in its present state, sharing nothing that a step changes."""
        live = self.materialize()
        other = copy.copy(self)
        other.graph = None
        other.live = copy.deepcopy(live)
        other.model, other.batch = other.live.model, other.live.batch
        return other

    def eager(self, batch: Any = None) -> torch.Tensor:
        """Make one ordinary step with PyTorch on the live module, in place; returns the loss or the first output."""
        raise TypeError("a step is a TrainStep or an InferenceStep")

    def passes(self, model: nn.Module, batch: Any, enter: Callable[[Phase], None]) -> tuple[torch.Tensor, ...]:
        """Run what comes before the optimizer.

        Args:
            model, batch: real, or fake while a step is captured.
            enter: told about each phase that begins.

        Returns:
            The loss, or for inference the outputs.
        """
        raise TypeError("a step is a TrainStep or an InferenceStep")

    def groups(self, model: nn.Module) -> list[tuple[dict[str, Any], list[str]]]:
        """Per parameter group, the hyperparameters and the names of the parameters; none for inference."""
        return []

    def scalars(self, references: Mapping[ScalarRef, tuple[int, str, str]], number: int) -> dict[str, float]:
        """The numbers that the optimizer's calls take in step `number` of a run."""
        return {}

    def _prepare(self, live: Live) -> None:
        pass


class TrainStep(Step):
    """A training step: forward, loss, backward and optimizer.

    Args:
        model: a module, or a function that makes one, so that a model larger than memory can be captured.
        batch: a pytree of tensors, or a function that makes one.
        loss: from module and batch to a scalar; without it, `model(**batch).loss` is taken.
        optimizer: `SGD`, `Adam` or `AdamW` of this package, or a live optimizer of `torch.optim` over the module's
            parameters, whose groups, state and learning rates are followed; without it `SGD(lr=1e-2)`.
        clip_norm: gradients are scaled down to this norm, as `torch.nn.utils.clip_grad_norm_` does.
        micro_batches: the batch is cut into so many along dimension 0, and their gradients are averaged.
        autocast: a dtype, `torch.bfloat16`: forward and loss run under `torch.autocast`.
        name: for titles; the module's class without it.
        seed: what a function that makes the model or the batch starts from.

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
        clip_norm: float | None = None,
        micro_batches: int = 1,
        autocast: torch.dtype | None = None,
        name: str | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(model, batch, name, seed)
        if micro_batches < 1:
            raise StowageError(f"micro_batches is {micro_batches}: it must be at least 1")
        if clip_norm is not None and not clip_norm > 0:
            raise StowageError(f"clip_norm is {clip_norm}: it must be above 0, or None for no clipping")
        self.optimizer = optimizers.SGD() if optimizer is None else optimizer
        if isinstance(self.optimizer, torch.optim.Optimizer):
            optimizers.check_supported(self.optimizer)
            if not isinstance(model, nn.Module):
                raise StowageError(
                    "a torch.optim optimizer belongs to one module: pass that module instead of a function, "
                    "or planner.SGD, Adam or AdamW instead of the optimizer"
                )
        elif not isinstance(self.optimizer, optimizers.SGD | optimizers.Adam | optimizers.AdamW):
            raise StowageError(
                f"the optimizer is a {type(self.optimizer).__name__}: use planner.SGD, Adam, AdamW or one of torch.optim"
            )
        self.loss = loss
        self.clip_norm = clip_norm
        self.micro_batches = micro_batches
        self.autocast = autocast

    def passes(self, model: nn.Module, batch: Any, enter: Callable[[Phase], None]) -> tuple[torch.Tensor, ...]:
        """Forward, loss and backward over all micro-batches, then clipping; returns the mean loss."""
        total: torch.Tensor | None = None
        parts = list(micro_batches(batch, self.micro_batches))
        for part in parts:
            enter(Phase.FORWARD)
            device = next(iter(tensor_leaves(part)), torch.empty(0, device="cpu")).device.type
            with plain_recurrence(model), _autocast(device, self.autocast):
                loss = self._loss_of(model, part)
            share = loss / len(parts) if len(parts) > 1 else loss
            total = share.detach() if total is None else total + share.detach()
            enter(Phase.BACKWARD)
            share.backward()  # type: ignore[no-untyped-call]
        assert total is not None
        if self.clip_norm is not None:
            enter(Phase.OPTIMIZER)
            nn.utils.clip_grad_norm_(model.parameters(), self.clip_norm, foreach=False)
        return (total,)

    def eager(self, batch: Any = None) -> torch.Tensor:
        """Make one ordinary training step with autograd and `torch.optim` (`foreach=False`), in place; returns the loss."""
        live = self.materialize()
        assert live.optimizer is not None
        live.model.zero_grad(set_to_none=True)
        (loss,) = self.passes(live.model, live.batch if batch is None else batch, lambda _: None)
        groups = live.optimizer.param_groups
        asked = [{name: group.get(name) for name in ("foreach", "fused")} for group in groups]
        for group in groups:
            group.update({name: False for name in ("foreach", "fused") if name in group})
            if isinstance(self.optimizer, optimizers.Spec):
                group["lr"] = optimizers.rate(self.optimizer.lr, live.steps)
            if group.get("dampening"):
                self._undamped(live.optimizer, group)
        live.optimizer.step()
        for group, settings in zip(groups, asked, strict=True):
            group.update({name: value for name, value in settings.items() if name in group})
        live.steps += 1
        return loss

    def state(self) -> dict[str, torch.Tensor]:
        """Every tensor that outlives a step, live, by key: `model/<name>`, `optimizer/<parameter>/<state>`."""
        live = self.materialize()
        assert live.optimizer is not None
        found = super().state()
        for group, names in self.groups(live.model):
            for name, parameter in zip(names, group["params"], strict=True):
                for key in optimizers.state_names(group):
                    if key in live.optimizer.state.get(parameter, {}):
                        found[f"optimizer/{name}/{key}"] = live.optimizer.state[parameter][key]
        return found

    def clone(self) -> TrainStep:
        """An independent copy of the step in its present state, sharing nothing that a step changes."""
        other = super().clone()
        assert isinstance(other, TrainStep)
        assert other.live is not None
        if isinstance(other.optimizer, torch.optim.Optimizer):
            assert other.live.optimizer is not None
            other.optimizer = other.live.optimizer
        return other

    def groups(self, model: nn.Module) -> list[tuple[dict[str, Any], list[str]]]:
        """Per parameter group, the hyperparameters (with the learning rate of now) and the names of the parameters."""
        names = {id(m.tensor): m.name for m in members(model) if m.kind is Kind.PARAMETER}
        optimizer = self.live.optimizer if self.live is not None else None
        if optimizer is None:
            if isinstance(self.optimizer, torch.optim.Optimizer):
                optimizer = self.optimizer
            else:
                optimizer = self.optimizer.build(_trainable(model.parameters()))
        groups = []
        for group in optimizer.param_groups:
            strangers = [p for p in group["params"] if id(p) not in names]
            if strangers:
                raise StowageError(
                    f"the optimizer updates a parameter of shape {tuple(strangers[0].shape)} that is not the model's: "
                    "make the optimizer from this model's parameters"
                )
            groups.append((group, [names[id(p)] for p in group["params"]]))
        return groups

    def scalars(self, references: Mapping[ScalarRef, tuple[int, str, str]], number: int) -> dict[str, float]:
        """The numbers that the optimizer's calls take in step `number` of a run.

        Args:
            references: by reference, the group's number, a parameter whose count of steps holds, and the quantity.
            number: counts from 0 at the step's present state.
        """
        live = self.materialize()
        assert live.optimizer is not None
        parameters = {m.name: m.tensor for m in members(live.model)}
        values = {}
        for reference, (place, name, quantity) in references.items():
            group = live.optimizer.param_groups[place]
            state = live.optimizer.state[parameters[name]]
            count = float(state["step"]) if "step" in state else 0.0
            lr = self.optimizer.lr if isinstance(self.optimizer, optimizers.Spec) else group["lr"]
            rate = optimizers.rate(lr, live.steps + number)
            first = number == 0 and bool(group.get("dampening")) and _untouched(state.get("momentum_buffer"))
            values[reference.name] = optimizers.scalars(group, rate, count + number + 1, first=first)[quantity]
        return values

    def _prepare(self, live: Live) -> None:
        if isinstance(self.optimizer, torch.optim.Optimizer):
            live.optimizer = self.optimizer
        else:
            live.optimizer = self.optimizer.build(_trainable(live.model.parameters()))
        for group in live.optimizer.param_groups:
            for parameter in group["params"]:
                state = live.optimizer.state[parameter]
                for name in optimizers.state_names(group):
                    if state.get(name) is None:
                        state[name] = optimizers.initial_state(name, parameter)

    def _loss_of(self, model: nn.Module, batch: Any) -> torch.Tensor:
        if self.loss is not None:
            loss = self.loss(model, batch)
        elif isinstance(batch, Mapping):
            loss = getattr(model(**batch), "loss", None)
        else:
            raise StowageError("there is no loss: pass loss=function(model, batch), or a batch that is a mapping")
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            what = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, torch.Tensor) else type(loss).__name__
            raise StowageError(f"the loss is {what}: it must be one number, for example a mean")
        return loss

    def _undamped(self, optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> None:
        for parameter in group["params"]:
            state = optimizer.state[parameter]
            if _untouched(state.get("momentum_buffer")):
                state["momentum_buffer"] = None


class InferenceStep(Step):
    """A forward pass in evaluation mode, without gradients.

    Args:
        model: a module, or a function that makes one.
        batch: a tensor, a sequence of arguments, a mapping of named arguments, or a function that makes one of these.
        name: for titles; the module's class without it.
        seed: what a function that makes the model or the batch starts from.
    """

    def __init__(
        self,
        model: nn.Module | Callable[[], nn.Module],
        batch: Any,
        *,
        name: str | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(model, batch, name, seed)

    def passes(self, model: nn.Module, batch: Any, enter: Callable[[Phase], None]) -> tuple[torch.Tensor, ...]:
        """The model's outputs, as the tensors among the leaves of what it returns."""
        enter(Phase.FORWARD)
        training = [module for module in model.modules() if module.training]
        model.eval()
        try:
            with torch.no_grad(), plain_recurrence(model):
                if isinstance(batch, Mapping):
                    result = model(**batch)
                elif isinstance(batch, list | tuple):
                    result = model(*batch)
                else:
                    result = model(batch)
        finally:
            for module in training:
                module.training = True
        outputs = tensor_leaves(dict(result) if isinstance(result, Mapping) else result)
        if not outputs:
            raise StowageError("the model returns no tensor: return at least one")
        return tuple(outputs)

    def eager(self, batch: Any = None) -> torch.Tensor:
        """Run the live model once with PyTorch; returns its first output."""
        live = self.materialize()
        return self.passes(live.model, live.batch if batch is None else batch, lambda _: None)[0]

    def clone(self) -> InferenceStep:
        """An independent copy of the step in its present state, sharing nothing that a step changes."""
        other = super().clone()
        assert isinstance(other, InferenceStep)
        return other


def tensor_leaves(tree: Any) -> list[torch.Tensor]:
    """The tensors of a pytree, in order."""
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def micro_batches(batch: Any, count: int) -> Iterable[Any]:
    """A batch cut into equal parts along dimension 0 of every tensor that has one.

    Raises:
        StowageError: a tensor's first dimension does not divide.
    """
    if count == 1:
        return [batch]
    for leaf in tensor_leaves(batch):
        if leaf.dim() and leaf.shape[0] % count:
            raise StowageError(
                f"a batch of {leaf.shape[0]} cannot be cut into {count} micro-batches: let micro_batches divide it"
            )

    def part(number: int, leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or not leaf.dim():
            return leaf
        size = leaf.shape[0] // count
        return leaf[number * size : (number + 1) * size]

    return [pytree.tree_map(lambda leaf, number=number: part(number, leaf), batch) for number in range(count)]


def _autocast(device: str, dtype: torch.dtype | None) -> Any:
    return nullcontext() if dtype is None else torch.autocast(device, dtype=dtype)


def _trainable(parameters: Iterable[nn.Parameter]) -> list[nn.Parameter]:
    trainable = [parameter for parameter in parameters if parameter.requires_grad]
    if not trainable:
        raise StowageError("no parameter of the model requires a gradient: unfreeze one, or use an InferenceStep")
    return trainable


def _untouched(momentum: torch.Tensor | None) -> bool:
    return momentum is None or bool((momentum == 0).all() and momentum.signbit().all())


def _function_name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)
