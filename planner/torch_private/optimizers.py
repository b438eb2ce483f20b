"""What PyTorch notes on its optimizers."""

from __future__ import annotations

import torch


def note_step(optimizer: torch.optim.Optimizer) -> None:
    """Let learning-rate schedulers know that an optimizer has made a step, or their first step warns that it has not.

    Source: `LRScheduler.step`, and what `patch_track_step_called` wraps the optimizer's `step` with.
    """
    optimizer._opt_called = True  # type: ignore[attr-defined]
