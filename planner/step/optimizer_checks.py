"""Checks of a live optimizer, which is supported only as PyTorch implements it and with plain numbers as settings."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

import torch

from planner.errors import StowageError, given_type
from planner.step.module_tensors import ModuleTensor

_TORCH = str(Path(torch.__file__).parent)
_SGD, _ADAM = ("momentum", "dampening", "weight_decay"), ("betas", "eps", "weight_decay")
_FLAGS = ("capturable", "differentiable", "fused")
#: Settings of a parameter group that are characteristic of the other kind of optimizer.
_FOREIGN_TO_SGD, _FOREIGN_TO_ADAM = ("betas", "eps", "amsgrad"), ("momentum", "dampening", "nesterov")


def check_optimizer(optimizer: torch.optim.Optimizer) -> None:
    """Raise a StowageError for an optimizer of PyTorch, or a setting of one, that is not supported."""
    kind = type(optimizer)
    if kind not in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        raise StowageError(f"the optimizer {kind.__name__} cannot be captured: use torch.optim.SGD, Adam or AdamW")
    if not _is_torchs_own(optimizer.step):
        raise StowageError(
            "the optimizer's step was replaced by another function, which a plan would not call: make a new optimizer "
            "and load_state_dict() into it, and do what the function does between two steps of Run.steps"
        )
    for index, group in enumerate(optimizer.param_groups):
        _check_group(f"optimizer.param_groups[{index}]", group, adam=kind is not torch.optim.SGD)
    for state in optimizer.state.values():
        for name, value in state.items():
            if value is not None and not isinstance(value, torch.Tensor):
                raise StowageError(
                    f"the optimizer keeps {given_type(value)} as {name}, where torch.optim keeps a tensor: make "
                    "it one, or load the state by load_state_dict()"
                )


def _check_group(path: str, group: Mapping[str, Any], *, adam: bool) -> None:
    for name in _FLAGS:
        if group.get(name):
            raise StowageError(f"an optimizer with {name}=True cannot be captured: make it with {name}=False")
    for name in _FOREIGN_TO_ADAM if adam else _FOREIGN_TO_SGD:
        if name in group:
            raise StowageError(f"{path} has {name}, which this kind of optimizer does not read: take it out")
    for name in ("lr", *(_ADAM if adam else _SGD)):
        if name not in group:
            raise StowageError(f"{path} has no {name}: put it in, as add_param_group does")
    lr = group["lr"]
    if not _number(lr) and not (isinstance(lr, torch.Tensor) and lr.numel() == 1 and not lr.requires_grad):
        raise StowageError(
            f"{path}['lr'] is {given_type(lr)}: give a number, or a tensor of one number without gradient"
        )
    betas = group["betas"] if adam else ()
    if not isinstance(betas, tuple | list) or (adam and len(betas) != 2):
        raise StowageError(f"{path}['betas'] is {given_type(betas)}: give a pair of numbers")
    named = [("betas", beta) for beta in betas]
    named += [(name, group[name]) for name in (_ADAM if adam else _SGD) if name != "betas"]
    for name, value in named:
        if not _number(value):
            raise StowageError(f"{path}['{name}'] holds {given_type(value)}: give a plain number, as float() makes it")


def refuse_other_optimizers(own: torch.optim.Optimizer | None, found: Iterable[ModuleTensor]) -> None:
    """Raise a StowageError if a tensor that gets a gradient belongs to another optimizer, which would find no gradient.

    Args:
        own: the step's optimizer; None if the step makes its own.
        found: the tensors that get a gradient in the step.
    """
    updated = {
        id(parameter) for group in (own.param_groups if own is not None else ()) for parameter in group["params"]
    }
    other_tensors = {id(one.tensor): one.name for one in found if id(one.tensor) not in updated}
    if not other_tensors or (own is None and not any(one.reached for one in found)):
        return
    for other in gc.get_objects():
        if issubclass(type(other), torch.optim.Optimizer) and other is not own:
            for group in other.param_groups:
                name = next((other_tensors[id(one)] for one in group["params"] if id(one) in other_tensors), None)
                if name is not None:
                    raise StowageError(
                        f"{name} gets its gradient in this step and is in another optimizer, and a plan keeps no "
                        "gradients: call requires_grad_(False) on it before the step and requires_grad_(True) after it "
                        "(for a GAN's discriminator, say), or put it into a parameter group of the step's own optimizer"
                    )


def _number(value: object) -> bool:
    """Whether a value is a number with Python's own arithmetic; NumPy's low-precision numbers round differently."""
    return isinstance(value, int | float)


def _is_torchs_own(step: Any) -> bool:
    """Whether a method is PyTorch's own, possibly wrapped by a learning-rate scheduler to count calls."""
    while step is not None:
        step = getattr(step, "__func__", step)
        if not isinstance(step, FunctionType) or not step.__code__.co_filename.startswith(_TORCH):
            return False
        step = getattr(step, "__wrapped__", None)
    return True


@contextmanager
def unwritten(optimizer: torch.optim.Optimizer | None) -> Iterator[None]:
    """Refuse, and undo, writes of the step's own code to its optimizer, which a plan would not repeat.

    Args:
        optimizer: the live one; None if there is none.

    Raises:
        StowageError: a setting of a parameter group, or the state of a parameter, was replaced.
    """
    if optimizer is None:
        yield
        return
    groups = [(group, dict(group)) for group in optimizer.param_groups]
    states = dict(optimizer.state)
    yield
    written = next((key for group, saved in groups for key in saved if group.get(key) is not saved[key]), None)
    emptied = any(optimizer.state.get(parameter) is not state for parameter, state in states.items())
    if written is None and not emptied:
        return
    for group, saved in groups:
        group.update(saved)
    optimizer.state.update(states)
    what = f"{written!r} of a parameter group" if written is not None else "what the optimizer keeps for a parameter"
    raise StowageError(
        f"the model or the loss changes {what}, which a plan would not: do so between two steps of Run.steps, or hand "
        "over the scheduler by TrainStep(..., scheduler=...)"
    )
