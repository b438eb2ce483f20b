"""Functions that a user has PyTorch call while it trains, which a plan does not call."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from planner.capture import torch_private as private
from planner.capture.members import Member
from planner.errors import StowageError


def refuse_hooks(found: Iterable[Member], optimizer: torch.optim.Optimizer | None) -> None:
    """Raise a StowageError if something hangs on a parameter or an optimizer; hooks of modules run while capturing.

    Args:
        found: the members of the model.
        optimizer: the live one; None where there is none.
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
