"""Steps: the unit that is captured, planned and run."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import nn
from torch.amp.grad_scaler import GradScaler

from planner import torch_private as private
from planner.errors import StowageError, first_line, given_type
from planner.global_state_lock import global_state_lock
from planner.graph import Graph, Phase
from planner.guards import Reach, undisturbed
from planner.program import Outputs, drawing_from
from planner.step.batches import Form, tensor_leaves
from planner.step.capture_guards import CaptureGuards, capture_guards
from planner.step.gradient_scaling import LossScaler
from planner.step.module_tensors import ModuleTensor, module_tensors, reached_tensors


@dataclass
class Live:
    """A step's real tensors.

    Args:
        model, batch: the module and its batch, a pytree of tensors.
        optimizer: updates the module; None for inference.
        scheduler: changes the optimizer's learning rates after each step; None for none.
        scaler: scales the loss and unscales gradients; None for neither.
        steps: number of steps made so far.
    """

    model: nn.Module
    batch: Any
    optimizer: torch.optim.Optimizer | None = None
    scheduler: Any = None
    scaler: GradScaler | None = None
    steps: int = 0


class Step:
    """The base of `TrainStep` and `InferenceStep`: a model, a batch, and their captures.

    `live` holds the real tensors once they exist, `graph` is the last captured graph, `guards` are its capture guards,
    `form` is the form of its batch and `given` that batch with its plain values, `change` says what has changed about
    these since an earlier capture, and `captures` lists the captures, the latest first.
    """

    follows_modes = True
    recapture = False
    loss: Callable[[nn.Module, Any], Any] | None = None
    scaler: GradScaler | None = None

    def __init__(self, model: nn.Module | Callable[[], nn.Module], batch: Any, name: str | None, seed: int) -> None:
        if not callable(model):
            raise StowageError(f"the model is {given_type(model)}: pass an nn.Module or a function that makes one")
        self.model = model
        self.batch = batch
        self.seed = seed
        self.given_name = name
        self.graph: Graph | None = None
        self.guards: CaptureGuards = {}
        self.form: Form | None = None
        self.given: Any = None
        self.change = ""
        self.captures: list[Any] = []
        self.live: Live | None = None

    def __getstate__(self) -> dict[str, Any]:
        """The state without captures, which belong to the original's variables; copies and pickles capture again."""
        return vars(self) | {"captures": []}

    def __repr__(self) -> str:
        captured = "not captured yet" if self.graph is None else f"{len(self.graph.ops):,} ops"
        return f"<{type(self).__name__} of {self.name}: {captured}>"

    @property
    def name(self) -> str:
        """The name for titles: the given name, or else that of the model's class or function."""
        model = self.live.model if self.live is not None else self.model
        kind = type(model)
        return self.given_name or (kind.__name__ if isinstance(model, nn.Module) else _name_of(model))

    @property
    def torch_optimizer(self) -> torch.optim.Optimizer | None:
        """The live optimizer, or the given one; None if there is neither."""
        optimizer = self.live.optimizer if self.live is not None else getattr(self, "optimizer", None)
        return optimizer if isinstance(optimizer, torch.optim.Optimizer) else None

    @undisturbed()
    def make_model(self) -> nn.Module:
        """The given module, or the one that the given function returns.

        Raises:
            StowageError: the function returns something else, or a part of the module was compiled by `torch.jit`.
        """
        model = self.model if isinstance(self.model, nn.Module) else self.model()
        if not isinstance(model, nn.Module):
            raise StowageError(f"the model's function returned {given_type(model)}: let it return an nn.Module")
        if any(isinstance(module, torch.jit.ScriptModule) for module in model.modules()):
            raise StowageError("the model is a torch.jit module, which cannot be captured: pass the nn.Module it is of")
        return model

    def make_batch(self) -> Any:
        """The given batch, or the one that the given function returns."""
        return self.batch() if callable(self.batch) else self.batch

    def materialize(self, note: Callable[[int], None] = lambda _: None) -> Live:
        """The real module and batch, made from the seed on the first call.

        PyTorch's default generator is not used, since other code may draw from it at the same time.

        Args:
            note: called with the bytes of the tensors made so far; may raise.

        Raises:
            StowageError: a function does not return a module, or draws in a way that cannot be repeated.
        """
        if self.live is None:
            with global_state_lock():  # another thread may be making it
                if self.live is None:
                    self.live = self._materialized(note)
        return self.live

    def _materialized(self, note: Callable[[int], None]) -> Live:
        with drawing_from(torch.Generator(), note), torch.random.fork_rng():
            torch.manual_seed(self.seed)
            model = self.make_model()
            torch.manual_seed(self.seed + 1)
            return self._make_live(model, self.make_batch())

    @contextmanager
    def given_batch(self, batch: Any) -> Iterator[None]:
        """Replace the step's own batch during the block."""
        live = self.materialize()
        original, live.batch = live.batch, batch
        try:
            yield
        finally:
            live.batch = original

    def batch_leaves(self) -> list[torch.Tensor]:
        """The tensors of the real batch, in order."""
        return tensor_leaves(self.materialize().batch)

    def state(self, reach: Reach | None = None) -> dict[str, torch.Tensor]:
        """The live tensors of the state that persists between steps, by key.

        Keys are `model/<name>` for parameters and buffers, `code/<name>` for other tensors that the step's code
        reaches, in containers, closures or globals, and `optimizer/<parameter>/<state>` for the optimizer's.

        Args:
            reach: of the live model as it is now, if known.
        """
        model = self.materialize().model
        return {
            entry.key: entry.tensor.detach() for entry in self.persistent_tensors(model, reach or self.reach(model))
        }

    def scaler_tensors(self) -> dict[str, torch.Tensor]:
        """The live tensors of the gradient scaler by name; empty without a scaler."""
        return {}

    def reach(self, model: nn.Module) -> Reach:
        """Everything that the step's code can reach.

        Args:
            model: real or fake.
        """
        return Reach(model, getattr(self, "loss", None))

    def persistent_tensors(self, model: nn.Module, reach: Reach) -> list[ModuleTensor]:
        """The tensors that the step's code holds, those of the model's modules first.

        Args:
            model: real or fake.
            reach: of the model.
        """
        optimizer = self.torch_optimizer
        updated = [one for group in optimizer.param_groups for one in group["params"]] if optimizer is not None else []
        found = module_tensors(model)
        return found + reached_tensors(reach, found, updated)

    def clone(self) -> Self:
        """An independent copy of the step in its present state, sharing nothing that a step changes."""
        try:
            live = copy.deepcopy(self.materialize())
        except Exception as error:
            raise StowageError(
                f"the model or the batch cannot be copied ({first_line(error)}): keep no tensor that was computed with "
                "gradients, no lock and no open file as an attribute of a module"
            ) from error
        other = copy.copy(self)
        other.live, other.graph, other.captures = live, None, []
        other.model, other.batch = live.model, live.batch
        return other

    def eager(self, batch: Any = None) -> torch.Tensor:
        """Make one ordinary PyTorch step on the live module, in place.

        Args:
            batch: replaces the step's own.

        Returns:
            The loss, or for inference the first output.
        """
        result = self.compute(batch)
        self.computed()
        return result[0]

    def compute(self, batch: Any = None) -> Outputs:
        """Make an ordinary step like `eager`, without `computed`; it may be interrupted at any point.

        Returns all outputs.

        After an interruption, tensors of the model, the optimizer and the batch may be partly updated; everything else
        is unchanged.
        """
        raise TypeError("only a TrainStep or an InferenceStep can be run")

    def computed(self) -> None:
        """Account for a step that `compute` has made."""

    def passes(
        self, model: nn.Module, batch: Any, enter: Callable[[Phase], None], scaler: LossScaler | None = None
    ) -> Outputs:
        """Run everything before the optimizer.

        Args:
            model, batch: real, or fake while a step is captured.
            enter: called at the start of each phase.
            scaler: scales the loss and unscales the gradients; None for neither.

        Returns:
            The loss and its extras, or for inference the outputs.
        """
        raise TypeError("only a TrainStep or an InferenceStep can be run")

    def advance(self, count: int) -> None:
        """Account for steps that were made elsewhere, so that schedules continue from there.

        Args:
            count: number of steps.
        """
        self.materialize().steps += count

    def setup(self, model: nn.Module, persistent: Iterable[ModuleTensor], reach: Reach) -> CaptureGuards:
        """The capture guards of the step.

        Args:
            model: real or fake.
            persistent, reach: of the model.
        """
        del model
        return capture_guards(persistent, reach, modes=self.follows_modes)

    def reads_schedule(self, reach: Reach | None) -> bool:
        """Whether the step's code reads numbers that a scheduler changes after each step, such as a learning rate.

        Args:
            reach: of the live model.
        """
        del reach
        return False

    def settle(self, *, ended: bool = False) -> None:
        """Remove the optimizer state of parameters that get no gradient, for which PyTorch keeps none.

        Args:
            ended: whether no step follows at once, so that state of parameters which no step has updated goes too.
        """

    def complete(self) -> None:
        """Create the optimizer state for parameters and hyperparameters that are new since its last step."""

    def groups(self, model: nn.Module) -> list[tuple[dict[str, Any], list[str]]]:
        """Per parameter group, the hyperparameters and the names of the parameters; empty for inference."""
        del model
        return []

    def _make_live(self, model: nn.Module, batch: Any) -> Live:
        return Live(model, batch)


class InferenceStep(Step):
    """A forward pass in evaluation mode, without gradients.

    Args:
        model: a module, or a function that makes one.
        batch: a tensor, a sequence of arguments, a mapping of named arguments, or a function that makes one of these.
        name: for titles; the name of the module's class or function if None.
        seed: random seed for functions that make the model or the batch.
    """

    follows_modes = False

    def __init__(
        self, model: nn.Module | Callable[[], nn.Module], batch: Any, *, name: str | None = None, seed: int = 0
    ) -> None:
        super().__init__(model, batch, name, seed)

    def passes(
        self, model: nn.Module, batch: Any, enter: Callable[[Phase], None], scaler: LossScaler | None = None
    ) -> Outputs:
        """The tensors among the leaves of the model's output."""
        del scaler
        enter(Phase.FORWARD)
        training = [module for module in model.modules() if module.training]
        model.eval()
        try:
            with torch.no_grad():
                if isinstance(batch, Mapping):
                    result = model(**batch)
                elif isinstance(batch, list | tuple):
                    result = model(*batch)
                else:
                    result = model(batch)
        finally:
            for module in training:
                module.training = True
        found = private.pytree.tree_leaves(dict(result) if isinstance(result, Mapping) else result)
        outputs = [leaf for leaf in found if isinstance(leaf, torch.Tensor)]
        if not outputs:
            raise StowageError("the model returns no tensor: return at least one")
        return Outputs(outputs)

    def compute(self, batch: Any = None) -> Outputs:
        """Run the live model once with PyTorch."""
        live = self.materialize()
        return self.passes(live.model, live.batch if batch is None else batch, lambda _: None)


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
