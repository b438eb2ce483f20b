"""How far a step's training is, beside its state: the number of steps, and the schedule of its learning rates."""

from __future__ import annotations

import io
from typing import Any

import torch
from torch import Tensor

from planner.errors import StowageError, first_line
from planner.step import optimizers
from planner.step.hyperparameter_schedules import advance, without_parameters
from planner.step.step import Step

STEPS, SCHEDULE = "steps", "schedule"
#: What schedulers change, or remember, in a parameter group.
_SCHEDULED = "lr", "initial_lr", "max_lr", "min_lr", "momentum", "base_momentum", "max_momentum", "betas"


def training_progress(step: Step, ahead: int = 0) -> dict[str, Tensor]:
    """How far a step is, as tensors, of which nothing is executed when they are read.

    Args:
        step: live.
        ahead: as it will be after so many more steps.

    Raises:
        StowageError: the learning-rate scheduler keeps something that cannot be read safely.
    """
    found = {STEPS: torch.tensor(step.materialize().steps + ahead)}
    optimizer, scheduler = step.torch_optimizer, step.materialize().scheduler
    if optimizer is None or isinstance(getattr(step, "optimizer", None), optimizers.Spec):
        return found
    if scheduler is not None and ahead:
        scheduler = without_parameters(scheduler)
        advance(scheduler, ahead)
        optimizer = scheduler.optimizer
    groups = [{name: _plain(group[name]) for name in _SCHEDULED if name in group} for group in optimizer.param_groups]
    buffer = io.BytesIO()
    try:
        torch.save({"groups": groups, "scheduler": None if scheduler is None else scheduler.state_dict()}, buffer)
        _read(torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8))
    except Exception as error:
        raise StowageError(
            f"what the {type(scheduler).__name__} keeps cannot be put into a checkpoint that is safe to load "
            f"({first_line(error)}): give it functions, numbers and lists of these alone"
        ) from error
    found[SCHEDULE] = torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)
    return found


def progress_mismatch(step: Step, found: dict[str, Tensor]) -> str:
    """Why a step cannot go on from where another was, in words; empty if it can.

    Args:
        step: live.
        found: as `training_progress` returned it.
    """
    here = step.materialize().scheduler is not None
    schedule = _read(found[SCHEDULE]) if SCHEDULE in found else {"scheduler": None, "groups": None}
    there = schedule["scheduler"] is not None
    if there and not here:
        return "it has a learning-rate scheduler, and the step has none"
    if here and not there:
        return "the step has a learning-rate scheduler, and it has none"
    if schedule["groups"] is None or step.torch_optimizer is None:
        return ""
    ours, theirs = len(step.torch_optimizer.param_groups), len(schedule["groups"])
    return "" if ours == theirs else f"it has {theirs} parameter groups, and the step has {ours}"


def restore_training_progress(step: Step, found: dict[str, Tensor]) -> None:
    """Go on from where a step was.

    Args:
        step: live.
        found: as `training_progress` returned it, without a mismatch.
    """
    live = step.materialize()
    live.steps = int(found[STEPS])
    if SCHEDULE not in found or step.torch_optimizer is None:
        return
    schedule = _read(found[SCHEDULE])
    if live.scheduler is not None and schedule["scheduler"] is not None:
        live.scheduler.load_state_dict(schedule["scheduler"])
    for group, saved in zip(step.torch_optimizer.param_groups, schedule["groups"], strict=True):
        for name, value in saved.items():
            if isinstance(group.get(name), Tensor):
                group[name].fill_(value)
            else:
                group[name] = value


def _read(data: Tensor) -> dict[str, Any]:
    return dict(torch.load(io.BytesIO(data.numpy().tobytes()), weights_only=True))


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Tensor) else value
