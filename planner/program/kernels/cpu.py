"""The CPU's kernels: how they are called and measured."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from torch import Tensor

from planner.errors import StowageError
from planner.program.kernels.backend import Backend, Target
from planner.program.kernels.collectives import REWRITTEN_COLLECTIVES
from planner.program.kernels.pointwise import POINTWISE, SELF_FIRST
from planner.program.kernels.rewrites import REWRITTEN, BoundCall
from planner.torch_private import BATCH_NORMALISATIONS, allocations, fake_call, plainly_laid

_ATEN = torch.ops.aten
_HERE = Path(__file__).parent
_ALIGNMENT = 64  # of PyTorch's allocations
_TOUCHED_BYTES = 2**28  # of a slab, between two checks for cancellation


def _rounds_apart(target: Target, args: Sequence[Any]) -> bool:
    """Batch normalisation into given memory rounds differently if its input is transposed."""
    return target in BATCH_NORMALISATIONS and not plainly_laid(args[0])


def _keeps_gradients(target: Target, results: Sequence[Tensor | None]) -> bool:
    """Where gradients are enabled, oneDNN's LSTM keeps a workspace for the backward pass, and rounds accordingly."""
    return target is _ATEN.mkldnn_rnn_layer.default and results[3] is not None


def _first_run_only(target: Target, args: Sequence[Any]) -> tuple[int, ...]:
    """Batch normalisation in training only updates its running statistics.

    Without weights they still decide, by their dtype, how precise the saved statistics are.
    """
    if target is not _ATEN.native_batch_norm.default:
        return ()
    source, weight, _, mean, variance, training, *_ = args
    alike = weight is not None or mean is None or mean.dtype == source.dtype
    return (3, 4) if training and mean is not None and variance is not None and alike else ()


def _seconds(calls: Sequence[BoundCall]) -> list[float]:
    """Between two marks there are one call and the taking of one mark, as when a step runs."""
    marks: list[float] = []
    stamp, mark = marks.append, time.perf_counter
    stamp(mark())
    for function, args, kwargs in calls:
        function(*args, **kwargs)
        stamp(mark())
    return [stop - start for start, stop in pairwise(marks)]


def _slab(size: int, check_cancelled: Callable[[], object]) -> Tensor:
    """NumPy asks for huge pages where the system has them, and PyTorch's allocator does not, as of torch 2.13.

    The slab is aligned as PyTorch's allocations are, and unlike those, kernels cannot resize it.
    """
    try:
        memory = np.empty(size + _ALIGNMENT, np.uint8)
    except MemoryError as error:
        raise StowageError(f"there is no memory for a slab of {size} bytes; give a smaller budget") from error
    first = -memory.ctypes.data % _ALIGNMENT
    slab = torch.from_numpy(memory[first : first + size])
    for part in slab.split(_TOUCHED_BYTES):  # type: ignore[no-untyped-call]
        check_cancelled()
        part.zero_()  # touch the pages now, not while a step is timed
    return slab


def _scratch_bytes(call: Callable[[], object]) -> int:
    """The results of the call are counted too.

    PyTorch's allocator reports every allocation and release; memory that a kernel library caches internally between
    calls does not go through it.
    """
    return max(accumulate(allocations(call), initial=0))


CPU = Backend(
    device="cpu",
    fakes_on="cpu",
    missing=lambda: "",
    fake_call=fake_call,
    rewritten={**REWRITTEN, **REWRITTEN_COLLECTIVES},
    pointwise=POINTWISE,
    self_first=SELF_FIRST,
    storage_aware=frozenset({_ATEN.linalg_qr.default}),
    rounds_apart=_rounds_apart,
    keeps_gradients=_keeps_gradients,
    first_run_only=_first_run_only,
    undefined={_ATEN.mkldnn_rnn_layer.default: frozenset({3})},
    unwritten={},
    drawing=None,
    hardware=platform.machine,
    breaks_on_indices=False,
    seconds=_seconds,
    slab=_slab,
    free_bytes=lambda: int(psutil.virtual_memory().available),
    scratch_bytes=_scratch_bytes,
    library_bytes=lambda: 0,
    scratch_is_outside=False,
    sources=tuple(_HERE / name for name in ("cpu.py", "pointwise.py", "../out_variants.py", "rewrites.py")),
)
