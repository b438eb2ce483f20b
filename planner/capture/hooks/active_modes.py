"""Observers of a whole step, such as dispatch modes and anomaly detection, which a plan would not call."""

from __future__ import annotations

import torch

from planner import torch_private as private
from planner.errors import StowageError


def refuse_observers() -> None:
    """Raise a StowageError if dispatch modes, saved-tensor hooks or anomaly detection would observe the step."""
    if any(isinstance(mode, private.TorchDispatchMode) for mode in private.user_modes()):
        raise StowageError(
            "a TorchDispatchMode is entered, which a plan would not call: leave it before the step is made"
        )
    if private.saved_tensors_hooks():
        raise StowageError(
            "saved_tensors_hooks are entered (save_on_cpu is one), which a plan would not call: leave them before the "
            "step is made; the plan itself moves to the host what is kept for the backward pass"
        )
    if torch.is_anomaly_enabled():
        raise StowageError(
            "the detection of anomalies is on, and a plan does not look for NaN: leave detect_anomaly, and look for "
            "them in a step by eager PyTorch"
        )
