"""PyTorch's per-thread settings that results depend on, carried from the calling thread to the worker thread.

Other settings (the default dtype, deterministic algorithms, the precision of matrix products) hold for the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from planner import torch_private as private
from planner.capture import refuse_meta_default, refuse_observers
from planner.errors import StowageError


class TorchContext:
    """Gradient and inference mode, autocast, the default device, the GPU and the number of threads of a thread.

    Raises:
        StowageError: the default device is meta, or a mode, a hook or anomaly detection is on that a plan would skip.
    """

    def __init__(self) -> None:
        refuse_meta_default()
        refuse_observers()
        self._gradients, self._inference = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        self._autocast = private.autocast_settings()
        self._caching = torch.is_autocast_cache_enabled()
        self._device, self._threads = torch.get_default_device(), torch.get_num_threads()
        self._dtype = torch.get_default_dtype()
        used: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        self._gpu = torch.cuda.current_device() if used else None

    def refuse_changes(self) -> None:
        """Refuse to make a model or a batch after a process-wide setting has changed.

        Raises:
            StowageError: the default dtype has changed.
        """
        if torch.get_default_dtype() != self._dtype:
            raise StowageError(
                f"the default dtype was {self._dtype} when the run was asked for and is {torch.get_default_dtype()} "
                "now that the model is made: leave it alone until the run makes steps"
            )

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Apply the settings in this thread during the block."""
        threads = torch.get_num_threads()
        with ExitStack() as stack:
            if threads != self._threads:  # sums are split among the threads, which changes their rounding
                torch.set_num_threads(self._threads)
                stack.callback(torch.set_num_threads, threads)  # new threads inherit this number too
            if torch.get_default_device() != self._device:
                stack.enter_context(self._device)
            if self._gpu is not None:
                stack.enter_context(torch.cuda.device(self._gpu))
            if self._inference:
                stack.enter_context(torch.inference_mode())
            stack.enter_context(torch.set_grad_enabled(self._gradients))
            stack.enter_context(private.autocast_as(self._autocast, caching=self._caching))
            yield
