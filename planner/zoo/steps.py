"""How every model of the zoo becomes a step: classification by cross-entropy, built only when asked for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Literal, get_args

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from planner.errors import StowageError
from planner.step import SGD, Adam, AdamW, InferenceStep, TrainStep

Optimizer = Literal["sgd", "momentum", "adam", "adamw"]
Mode = Literal["train", "inference"]
Batch = tuple[Tensor, Tensor]
ZooStep = TrainStep | InferenceStep

_OPTIMIZERS: dict[str, Callable[[], SGD | Adam | AdamW]] = {
    "sgd": lambda: SGD(lr=1e-2),
    "momentum": lambda: SGD(lr=1e-2, momentum=0.9),
    "adam": lambda: Adam(lr=1e-3),
    "adamw": lambda: AdamW(lr=1e-3),
}


def classification_step(
    name: str,
    model: Callable[[], nn.Module],
    batch: Callable[[], Batch],
    optimizer: Optimizer,
    seed: int,
    mode: Mode = "train",
) -> ZooStep:
    """A training step whose loss is the mean cross-entropy over all labels, or the model's forward pass alone.

    Args:
        name: what was asked for, as text that `load` reads.
        model, batch: called when the step is captured or materialized; the batch is (inputs, labels), of which
            inference takes the inputs.
        optimizer: `sgd`, `momentum` (SGD with 0.9), `adam` or `adamw`; for training.
        seed: of the initial weights and the batch.
        mode: `train`, or `inference`: the scores in evaluation mode, without labels, gradients and optimizer.

    Raises:
        StowageError: the optimizer or the mode is none of those, or inference is asked to have an optimizer.
    """
    if optimizer not in _OPTIMIZERS:
        raise StowageError(f"unknown optimizer {optimizer!r}; choose one of {', '.join(_OPTIMIZERS)}")
    if mode not in get_args(Mode):
        raise StowageError(f"unknown mode {mode!r}; choose one of {', '.join(get_args(Mode))}")
    if mode == "train":
        return TrainStep(model, batch, loss=cross_entropy, optimizer=_OPTIMIZERS[optimizer](), seed=seed, name=name)
    if optimizer != "sgd":
        raise StowageError(f"mode=inference updates nothing, so optimizer={optimizer} has no meaning; leave it out")
    return InferenceStep(model, lambda: batch()[:1], seed=seed, name=name)


def cross_entropy(model: nn.Module, batch: Batch) -> Tensor:
    """Mean cross-entropy of the model's scores (..., classes) against the labels (...)."""
    inputs, labels = batch
    scores = model(inputs)
    return F.cross_entropy(scores.flatten(0, -2), labels.flatten())


def images(batch: int, size: int, classes: int) -> Batch:
    """Random images (batch, 3, size, size) and labels (batch)."""
    return torch.randn(batch, 3, size, size), torch.randint(0, classes, (batch,))


def title(builder: Callable[..., ZooStep], **values: float | str) -> str:
    """What `load` reads to make this step again: the model's name and every argument that is not its default."""
    defaults = inspect.signature(builder).parameters
    changed = [f"{argument}={value}" for argument, value in values.items() if value != defaults[argument].default]
    return ":".join(filter(None, (builder.__name__, ",".join(changed))))


def require_positive(model: str, **values: float) -> None:
    """Refuse sizes below 1.

    Raises:
        StowageError: names the first argument that is not at least 1.
    """
    for argument, value in values.items():
        if value < 1:
            raise StowageError(f"{model}: {argument}={value} must be at least 1")
