"""The devices that steps can be captured for."""

from __future__ import annotations

from planner.errors import StowageError
from planner.program.kernels.backend import Backend
from planner.program.kernels.cpu import CPU
from planner.program.kernels.cuda import ABSENT_CUDA, CUDA

_BACKENDS = {backend.device: backend for backend in (CPU, CUDA)}


def backend_of(device: str) -> Backend:
    """The backend of a device.

    Args:
        device: its name, such as `Graph.device`.

    Raises:
        StowageError: there is none.
    """
    backend = _BACKENDS.get(device) if isinstance(device, str) else None
    if backend is None:
        known = " or ".join(f'"{name}"' for name in _BACKENDS)
        raise StowageError(f"a step cannot be captured for device {device!r}; choose {known}")
    return backend


def capturing_backend(device: str) -> Backend:
    """The backend that steps are captured with for a device, which may be absent.

    Args:
        device: as in `backend_of`.

    Raises:
        StowageError: there is none.
    """
    backend = backend_of(device)
    return absent_backend(device) if backend.missing() else backend


def absent_backend(device: str) -> Backend:
    """The backend that steps are captured with for a device where there is none; only GPUs may be absent."""
    return {CPU: CPU, CUDA: ABSENT_CUDA}[backend_of(device)]
