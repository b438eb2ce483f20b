"""Hooks that a user registers with PyTorch: those that compute are captured, those that only observe are refused.

A plan calls kernels and no Python, so a hook that logs would be called once, with fake tensors, and never again. A hook
that can return something is treated as part of the step and runs during capture. So is one that is the model's own
code, as `forward` is: defined in the library that the model's modules come from (such as `torch` for weight norms, or
`transformers` for its output recorders), or storing something where only the model and the loss can see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import Any

import torch
from torch import nn

from planner import torch_private as private
from planner.capture.hooks.hook_code import package, place, reachable, returns_nothing, stores
from planner.capture.source.user_lines import UserLines
from planner.errors import StowageError
from planner.guards import installed
from planner.step import ModuleTensor

_OURS = "planner"
_INSTEAD = (
    "remove it, and see the values in an eager step (TrainStep.eager) or return them from forward; if it changes what "
    "it is given in place, let it return the result instead"
)


def refuse_hooks(
    model: nn.Module, loss: object, found: Iterable[ModuleTensor], optimizer: torch.optim.Optimizer | None
) -> None:
    """Raise a StowageError if there are hooks that a plan would not call.

    Args:
        model: the model, real or fake.
        loss: the function that reads its outputs, or None.
        found: the module tensors of the model.
        optimizer: the live optimizer, or None.
    """
    for member in found:
        if private.has_gradient_hooks(member.tensor):
            raise StowageError(
                f"{member.kind} {member.name} has a hook (register_hook or register_post_accumulate_grad_hook), which "
                "a plan would not call: remove it, and do what it does in the loss or with clip_norm="
            )
    if private.has_step_hooks(optimizer):
        raise StowageError(
            "the optimizer has a hook (register_step_pre_hook or register_step_post_hook), which a plan would not "
            "call: remove it, and do what it does between two steps of Run.steps"
        )
    hooks = Hooks(model, loss)
    for where, kind, _, hook in hooks.foreign():
        if returns_nothing(hook):
            raise StowageError(
                f"{where} has a {kind} that returns nothing, {place(hook)}, which a plan would not call: {_INSTEAD}"
            )


class Hooks:
    """The hooks that a step's modules call.

    Args:
        model: the model, real or fake.
        loss: the function that reads its outputs, or None.
    """

    def __init__(self, model: nn.Module, loss: object) -> None:
        self._model, self._modules = model, dict(model.named_modules())
        self._loss = loss
        self._known: set[int] = set()

    def all(self) -> Iterator[tuple[str, str, dict[int, Any], int]]:
        """Yield, for every hook, its owner, its kind, the table that holds it, and its key in that table."""
        for kind, table in private.hook_tables(None).items():
            yield from (("every module", kind, table, key) for key in list(table))
        for path, module in self._modules.items():
            for kind, table in private.hook_tables(module).items():
                yield from ((_name(path, module), kind, table, key) for key in list(table))

    def foreign(self) -> Iterator[tuple[str, str, tuple[dict[int, Any], int], Any]]:
        """Yield the owner, kind, (table, key) and function of every hook that is not the model's own code."""
        for where, kind, table, key in self.all():
            if not self.own(table[key]):
                yield where, kind, (table, key), table[key]

    def own(self, hook: object) -> bool:
        """Whether a hook is the model's own code, or belongs to the capture."""
        if self._of_a_library(hook):
            return True
        if not stores(hook):
            return False
        if not self._known:
            self._known = {id(thing) for thing in (*self._modules.values(), *reachable(self._loss))}
        return all(id(thing) in self._known for thing in reachable(hook))

    @cached_property
    def _packages(self) -> set[str]:
        classes = {type(module) for module in self._modules.values()}
        return {name for name in map(package, classes) if installed(name)}

    def _of_a_library(self, hook: object) -> bool:
        return package(hook) in {"torch", _OURS, *self._packages}

    @contextmanager
    def watched(self, module: Callable[[], str]) -> Iterator[None]:
        """Refuse hooks that turn out to only observe while the step is captured.

        Args:
            module: returns the running module, for messages.
        """

        def registered(hook: object) -> None:
            if hook is None:
                what = "retain_grad()"
                why = "keeps a gradient, which a plan does not: remove it, and see the gradient in TrainStep.eager"
            elif self.own(hook) or not returns_nothing(hook):
                return
            else:
                what, why = "register_hook()", f"is given {place(hook)}, which returns nothing: {_INSTEAD}"
            line = UserLines(self._model).running()
            where = f"{module()} at {line}" if line else module()
            raise StowageError(f"{what} in {where} {why}")

        with ExitStack() as stack:
            calls = []
            for where, kind, (table, key), hook in self.foreign():
                stack.callback(table.__setitem__, key, hook)
                table[key] = call = _HookCall(hook, f"{where} has a {kind}, {place(hook)}")
                calls.append(call)
            stack.enter_context(private.watching_tensor_hooks(registered))
            yield
            for call in calls:
                call.refuse_looking()


class _HookCall:
    """Wraps a hook that may compute, to see during capture whether it does.

    Args:
        hook: the registered hook.
        title: description of the hook, for messages.
    """

    def __init__(self, hook: Callable[..., Any], title: str) -> None:
        self._hook, self._title = hook, title
        self._called = self._computed = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        before = _versions(args)
        result = self._hook(*args, **kwargs)
        self._called = True
        if (result is not None and all(result is not each for each in args)) or _versions(args) != before:
            self._computed = True
        return result

    def refuse_looking(self) -> None:
        """Raise a StowageError if the hook was called and changed nothing."""
        if self._called and not self._computed:
            raise StowageError(
                f"{self._title}, that changed nothing when the step was captured and that a plan would not call: "
                f"{_INSTEAD}"
            )


def _versions(args: object) -> list[int]:
    return [private.version(leaf) for leaf in private.pytree.tree_leaves(args) if isinstance(leaf, torch.Tensor)]


def _name(path: str, module: nn.Module) -> str:
    return f"module {path} ({type(module).__name__})" if path else "the model"
