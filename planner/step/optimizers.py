"""Optimizers: their specifications, their state, and the numbers that they compute in each step.

The kernels and their order are those of `torch.optim` with `foreach=False`, so the bits are too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from planner.errors import StowageError, first_line, given_type
from planner.step.optimizer_checks import check_optimizer

#: A learning rate, or the learning rate of step 0, 1, 2, ...
Rate = float | Callable[[int], float]


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent, with the meaning of `torch.optim.SGD`.

    Args:
        lr: learning rate, or a function from the step's number (0, 1, ...) to it.
        momentum, dampening, weight_decay, nesterov: as in `torch.optim.SGD`.
    """

    lr: Rate = 1e-2
    momentum: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False
    dampening: float = 0.0

    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """The PyTorch optimizer that this stands for."""
        return torch.optim.SGD(parameters, **settings(self), foreach=False)


@dataclass(frozen=True)
class Adam:
    """Adam, with the meaning of `torch.optim.Adam`.

    Args:
        lr: learning rate, or a function from the step's number (0, 1, ...) to it.
        betas, eps, weight_decay, amsgrad: as in `torch.optim.Adam`.
    """

    lr: Rate = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    amsgrad: bool = False

    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """The PyTorch optimizer that this stands for."""
        return torch.optim.Adam(parameters, **settings(self), foreach=False)


@dataclass(frozen=True)
class AdamW:
    """Adam with decoupled weight decay, with the meaning of `torch.optim.AdamW`.

    Args:
        lr: learning rate, or a function from the step's number (0, 1, ...) to it.
        betas, eps, weight_decay, amsgrad: as in `torch.optim.AdamW`.
    """

    lr: Rate = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 1e-2
    amsgrad: bool = False

    def build(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        """The PyTorch optimizer that this stands for."""
        return torch.optim.AdamW(parameters, **settings(self), foreach=False)


Spec = SGD | Adam | AdamW


def settings(spec: Spec, step: int = 0) -> dict[str, Any]:
    """The hyperparameters in step 0, 1, ... as `torch.optim` takes them."""
    return asdict(spec) | {"lr": float(spec.lr(step)) if callable(spec.lr) else float(spec.lr)}


def group_of(spec: Spec, step: int = 0) -> dict[str, Any]:
    """The hyperparameters in step 0, 1, ... as `Optimizer.param_groups` holds them."""
    return settings(spec, step) | {"decoupled_weight_decay": isinstance(spec, AdamW)}


def check_supported(optimizer: object) -> None:
    """Raise a StowageError for an optimizer, or a setting of one, that is not supported."""
    if isinstance(optimizer, Spec):
        try:
            optimizer.build([nn.Parameter(torch.zeros(1))])
        except (TypeError, ValueError) as error:
            raise StowageError(f"{optimizer} cannot be made ({first_line(error)}): correct what it is given") from error
        return
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise StowageError(
            f"{_not_an_optimizer(optimizer)}, such as torch.optim.AdamW(model.parameters()) or planner.AdamW()"
        )
    check_optimizer(optimizer)


def _not_an_optimizer(optimizer: object) -> str:
    """Why an argument is not an optimizer, and what to pass instead."""
    if not isinstance(optimizer, type):
        return f"the optimizer is {given_type(optimizer)}: pass an SGD, Adam or AdamW optimizer"
    return f"the optimizer is the class {optimizer.__name__}: pass an instance of SGD, Adam or AdamW"


def state_names(group: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of an optimizer's state per parameter, as in `torch.optim`."""
    if "betas" in group:
        return ("step", "exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if group["amsgrad"] else ()))
    return ("momentum_buffer",) if group["momentum"] != 0 else ()


def step_dtype() -> torch.dtype:
    """The dtype of the step counts in `torch.optim`."""
    return torch.float64 if torch.get_default_dtype() is torch.float64 else torch.float32


def initial_state(name: str, parameter: torch.Tensor) -> torch.Tensor:
    """The value of a state before the first step.

    PyTorch makes the momentum buffer as a copy of the first gradient. The regular update of a buffer of negative zeros
    gives exactly that copy, because -0.0 + x is x for every x, -0.0 included.
    """
    if name == "step":
        return torch.tensor(0.0, dtype=step_dtype())
    if name == "momentum_buffer":
        negative_zero = complex(-0.0, -0.0) if parameter.is_complex() else -0.0
        return torch.full_like(parameter, negative_zero, requires_grad=False)
    return torch.zeros_like(parameter, memory_format=torch.preserve_format, requires_grad=False)


def numbers(group: Mapping[str, Any], step: float, *, first: bool) -> dict[str, float]:
    """The scalars of an update that depend on hyperparameters and the step count, computed as in `torch.optim`.

    Args:
        group: the hyperparameters of this step.
        step: the parameter's step count after this step.
        first: whether there is no momentum yet, so that the gradient is not dampened.
    """
    # a learning rate may be a tensor, and is then rounded as one
    lr, decay = group["lr"], group["weight_decay"]
    if "betas" not in group:
        dampening = 0.0 if first else group["dampening"]
        return {"-lr": float(-lr), "weight_decay": decay, "momentum": group["momentum"], "1-dampening": 1 - dampening}
    beta1, beta2 = (float(beta) for beta in group["betas"])
    return {
        "weight_decay": decay,
        "1-lr*weight_decay": float(1 - lr * decay),
        "1-beta1": 1 - beta1,
        "beta2": beta2,
        "1-beta2": 1 - beta2,
        "bias_correction2_sqrt": (1 - beta2**step) ** 0.5,
        "eps": group["eps"],
        "-step_size": float(-(lr / (1 - beta1**step))),
    }
