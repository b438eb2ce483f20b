"""What PyTorch notes on its optimizers and gradient scalers."""

from __future__ import annotations

import torch
from torch.amp.grad_scaler import GradScaler


def note_step(optimizer: torch.optim.Optimizer) -> None:
    """Let learning-rate schedulers know that an optimizer has made a step, or their first step warns that it has not.

    Source: `LRScheduler.step`, and what `patch_track_step_called` wraps the optimizer's `step` with.
    """
    optimizer._opt_called = True  # type: ignore[attr-defined]


def scaler_state(scaler: GradScaler, device: torch.device | str) -> dict[str, torch.Tensor]:
    """The tensors of an enabled gradient scaler by name, made now if it has not scaled anything yet.

    Source: `GradScaler.scale`.

    Args:
        scaler: the scaler.
        device: where they are made.
    """
    if scaler._scale is None:
        scaler.scale(torch.zeros((), device=device))
    assert scaler._scale is not None
    assert scaler._growth_tracker is not None
    return {"scale": scaler._scale, "growth_tracker": scaler._growth_tracker}


def unscale(gradient: torch.Tensor, found_inf: torch.Tensor, inverse_scale: torch.Tensor) -> None:
    """Unscale a gradient in place by the kernel of a gradient scaler, which does so for all gradients in one call.

    Source: `GradScaler._unscale_grads_`.

    Args:
        gradient: the gradient.
        found_inf: is set to 1 where a number in the gradient is not finite.
        inverse_scale: the factor.
    """
    torch._amp_foreach_non_finite_check_and_unscale_([gradient], found_inf, inverse_scale)


def update_scale(
    scaler: GradScaler, scale: torch.Tensor, growth_tracker: torch.Tensor, found_inf: torch.Tensor
) -> None:
    """Adapt a scale in place by the kernel, and the factors, of a gradient scaler.

    Source: `GradScaler.update`.

    Args:
        scaler: has the factors.
        scale, growth_tracker: in place of those of the scaler.
        found_inf: not 0 where a gradient was not finite.
    """
    factors = scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()
    torch._amp_update_scale_(scale, growth_tracker, found_inf, *factors)


def in_iteration(scaler: GradScaler) -> bool:
    """Whether a gradient scaler has unscaled gradients, or let an optimizer step, since its last update.

    Source: `GradScaler.__getstate__`.
    """
    return bool(scaler._per_optimizer_states)


def begin_iteration(scaler: GradScaler) -> None:
    """Have a gradient scaler forget an iteration that was not finished, after which it refuses to begin another.

    Source: `GradScaler.unscale_` and `GradScaler.step`.
    """
    scaler._per_optimizer_states.clear()
