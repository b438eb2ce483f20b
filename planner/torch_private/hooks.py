"""Hooks of tensors, modules and optimizers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from operator import attrgetter
from threading import get_ident
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as _modules
from torch.optim import optimizer as _optimizers

#: Getters of the hooks that are called when a tensor receives its gradient, by kind.
GRADIENT_HOOKS = attrgetter("_backward_hooks"), attrgetter("_post_accumulate_grad_hooks")


def has_gradient_hooks(tensor: torch.Tensor) -> bool:
    """Whether a tensor has hooks that are called when it receives its gradient."""
    return any(hooks(tensor) for hooks in GRADIENT_HOOKS)


def hook_tables(module: nn.Module | None) -> dict[str, dict[int, Any]]:
    """The tables of hooks that a module calls as it runs, by kind of hook; these are not copies.

    Args:
        module: the module; None for the hooks that every module calls.
    """
    source, prefix = (_modules, "_global") if module is None else (module, "")
    kinds = {
        "forward hook": "forward_hooks", "forward pre-hook": "forward_pre_hooks", "backward hook": "backward_hooks",
        "backward pre-hook": "backward_pre_hooks",
    }  # fmt: skip
    return {kind: getattr(source, f"{prefix}_{name}") for kind, name in kinds.items()}


@contextmanager
def watching_tensor_hooks(seen: Callable[[object], object]) -> Iterator[None]:
    """Observe the gradient hooks that this thread registers on tensors.

    Args:
        seen: called with a hook before it is registered, or with None if a gradient is to be retained; an exception
            that it raises reaches the caller.
    """
    thread, before = get_ident(), torch.Tensor.register_hook

    def watched(register: Any, *, keeps: bool = False) -> Any:
        @wraps(register)
        def look(tensor: torch.Tensor, *hook: Any, **named: Any) -> Any:
            if get_ident() == thread and not (keeps and tensor.is_leaf):
                seen(next(iter((*hook, *named.values())), None))
            return register(tensor, *hook, **named)

        return look

    owner: Any = torch.Tensor  # defines two of these itself and inherits the third
    after = owner.register_post_accumulate_grad_hook
    owner.register_hook, owner.retain_grad = watched(before), watched(owner.retain_grad, keeps=True)
    owner.register_post_accumulate_grad_hook = watched(after)
    try:
        yield
    finally:
        owner.register_hook, owner.register_post_accumulate_grad_hook = before, after
        del owner.retain_grad


def has_step_hooks(optimizer: torch.optim.Optimizer | None) -> bool:
    """Whether hooks are registered for before or after an optimizer's steps, or those of all optimizers."""
    tables = [_optimizers._global_optimizer_pre_hooks, _optimizers._global_optimizer_post_hooks]
    if optimizer is not None:
        tables += [optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks]
    return any(tables)
