"""The overrides of composite operators that a capture is made with."""

from __future__ import annotations

from contextlib import AbstractContextManager

from planner import torch_private as private
from planner.capture.composites.cuda import ON_CUDA
from planner.capture.composites.cuda_autocast import CUDA_AUTOCAST
from planner.capture.composites.eager import AS_IN_EAGER
from planner.program import Backend


def as_on_device(backend: Backend, capture: private.TorchDispatchMode) -> AbstractContextManager[None]:
    """Make the composite operators of a capture of the operators that eager PyTorch makes them of on its device.

    Args:
        backend: of the device that the step is to run on; PyTorch itself sees where the fake tensors are.
        capture: a mode that it is made in, by this thread.
    """
    overrides = AS_IN_EAGER | CUDA_AUTOCAST | ON_CUDA if backend.approximate else AS_IN_EAGER
    return private.overriding(overrides, capture)
