"""The overrides of composite operators that a capture is made with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from planner import torch_private as private
from planner.capture.composites.cuda import ON_CUDA
from planner.capture.composites.cuda_autocast import CUDA_AUTOCAST
from planner.capture.composites.eager import AS_IN_EAGER
from planner.program import Backend


@contextmanager
def as_on_device(backend: Backend, capture: private.TorchDispatchMode) -> Iterator[None]:
    """Make the composite operators of a capture of the operators that eager PyTorch makes them of on its device.

    Args:
        backend: of the device that the step is to run on; PyTorch itself sees where the fake tensors are.
        capture: a mode that it is made in, by this thread.
    """
    if not backend.approximate:
        with private.overriding(AS_IN_EAGER, capture):
            yield
        return
    overrides = private.overriding(AS_IN_EAGER | CUDA_AUTOCAST | ON_CUDA, capture)
    with overrides, private.autocasting_for(backend.device, backend.fakes_on, capture):
        yield
