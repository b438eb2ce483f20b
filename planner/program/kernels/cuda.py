"""The kernels of NVIDIA's GPUs (and AMD's, which PyTorch calls by the same name): how they are called and measured.

Nothing of this has been run on a GPU by the project itself; `planner selftest --device cuda` tests it on the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from planner.errors import StowageError
from planner.program.kernels.backend import Backend, Target
from planner.program.kernels.collectives import REWRITTEN_COLLECTIVES
from planner.program.kernels.pointwise import POINTWISE, SELF_FIRST
from planner.program.kernels.rewrites import REWRITTEN, BoundCall
from planner.torch_private import (
    BATCH_NORMALISATIONS,
    default_generator,
    device_of,
    fake_call,
    is_deterministic,
    plainly_laid,
    tensors,
)

_ATEN = torch.ops.aten
_HERE = Path(__file__).parent
_MOVE_IT = "make it where the others are, by device=x.device"
#: NVIDIA recommends no larger workspace of cuBLAS for any GPU; PyTorch before 2.13 does not say which it takes.
_LARGEST_WORKSPACE = 32 * 2**20
_FUSED_ATTENTION = "aten._scaled_dot_product"
#: cuDNN's recurrent layer, and how PyTorch looks for its weights in one block of memory before it.
_RECURRENT = frozenset({_ATEN._cudnn_rnn.default, _ATEN.set_.source_Storage})
#: Calls that may bring a tensor from the host to the GPU.
_MOVES = frozenset({_ATEN._to_copy.default, _ATEN.copy_.default, _ATEN.detach.default, _ATEN.lift_fresh.default})


def _missing() -> str:
    """Why no CUDA GPU can be used by this process, in words; empty if one can."""
    if torch.cuda.is_available():
        return ""
    if torch.version.cuda is None and torch.version.hip is None:
        return "this PyTorch is built for the CPU alone: install one built for CUDA"
    return "PyTorch finds no CUDA GPU, or a driver too old for it; nvidia-smi shows what is attached"


def _fake_call(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call an operator on fake tensors, which must all be the GPU's, as everything in a plan is.

    Fused attention that drops values hands the numbers that it drew to its backward pass on the host. The fake kernel
    of cuDNN's recurrent layers has no bytes where the real one keeps its states for the backward pass, which has none.
    """
    if target in _RECURRENT:
        raise StowageError(
            f"{target} is how nn.LSTM, nn.GRU and nn.RNN use cuDNN, which alone knows how much memory it keeps for the "
            "backward pass: call them under torch.backends.cudnn.flags(enabled=False)"
        )
    attention = str(target).startswith(_FUSED_ATTENTION)
    if attention and not is_deterministic(target, args, kwargs):
        raise StowageError(
            f"{target} with dropout hands what it drew to its backward pass on the host, which a plan cannot hold: let "
            "attention drop nothing, or call it under torch.nn.attention.sdpa_kernel(SDPBackend.MATH)"
        )
    given = [*tensors((args, kwargs))]
    if target not in _MOVES and not attention and any(device_of(one).type == "cpu" for one in given):
        raise StowageError(f"{target} computes with a tensor on the host in a step for the GPU: {_MOVE_IT}")
    result = fake_call(target, args, kwargs)
    if not given and any(device_of(one).type == "cpu" for one in tensors(result)):
        raise StowageError(f"{target} makes a tensor on the host in a step for the GPU: {_MOVE_IT}")
    return result


def _rounds_apart(target: Target, args: Sequence[Any]) -> bool:
    """Batch normalisation chooses its kernel by the layout of both its input and its result."""
    return target in BATCH_NORMALISATIONS and not plainly_laid(args[0])


def _drawing(generator: torch.Generator, bound: BoundCall) -> BoundCall:
    return BoundCall(_run_drawing, (generator, bound), {})


def _run_drawing(generator: torch.Generator, bound: BoundCall) -> None:
    """Call what draws from PyTorch's default generator alone, which is in the place of another meanwhile.

    A GPU's generator is a seed and a number of draws, kept by the host and handed to the kernel when it is launched.
    """
    default = default_generator("cuda")
    if default is generator:
        bound.function(*bound.args, **bound.kwargs)
        return
    kept = default.get_state()
    default.set_state(generator.get_state())
    try:
        bound.function(*bound.args, **bound.kwargs)
        generator.set_state(default.get_state())
    finally:
        default.set_state(kept)


def _seconds(calls: Sequence[BoundCall]) -> list[float]:
    """By events between the calls: what the GPU takes, or the host to launch where that is longer."""
    events = [torch.Event("cuda", enable_timing=True) for _ in range(len(calls) + 1)]
    events[0].record()
    for (function, args, kwargs), event in zip(calls, events[1:], strict=True):
        function(*args, **kwargs)
        event.record()
    events[-1].synchronize()
    return [start.elapsed_time(stop) / 1e3 for start, stop in pairwise(events)]


def _slab(size: int, check_cancelled: Callable[[], object]) -> Tensor:
    check_cancelled()
    try:
        return torch.zeros(size, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as error:
        free, total = _free_bytes(), torch.cuda.mem_get_info()[1]
        raise StowageError(
            f"{size:,} bytes are needed on the GPU, and {free:,} of its {total:,} are free; give a smaller budget, or "
            "end what else holds its memory"
        ) from error


def _free_bytes() -> int:
    """What the driver has left, and what PyTorch's allocator has and nobody uses."""
    kept = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    return int(torch.cuda.mem_get_info()[0]) + int(kept)


def _scratch_bytes(call: Callable[[], object]) -> int:
    """Make a call, and return the most memory that it held at once, without what it keeps for later calls.

    Libraries keep workspaces, which PyTorch's allocator makes for them at the first call.
    """
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call()
    kept = max(torch.cuda.memory_allocated() - before, 0)
    return max(torch.cuda.max_memory_allocated() - before - kept, 0)


def _library_bytes() -> int:
    """What cuBLAS and cuBLASLt keep for the one stream that a plan's kernels are in; cuDNN keeps nothing."""
    asked = (getattr(torch.backends.cuda, f"{library}_workspace_size", None) for library in ("cublas", "cublaslt"))
    return sum(_LARGEST_WORKSPACE if ask is None else int(ask()) for ask in asked)


#: Attention that drops nothing returns the place of what it would have drawn as it is, and on the host.
_NOT_DRAWN: Mapping[Target, frozenset[int]] = {
    _ATEN._scaled_dot_product_efficient_attention.default: frozenset({2, 3}),
    _ATEN._scaled_dot_product_flash_attention.default: frozenset({6, 7}),
    _ATEN._scaled_dot_product_cudnn_attention.default: frozenset({6, 7}),
}

CUDA = Backend(
    device="cuda",
    fakes_on="cuda",
    missing=_missing,
    fake_call=_fake_call,
    # its dropout is one kernel, which draws as no other does
    rewritten={target: made for target, made in (REWRITTEN | REWRITTEN_COLLECTIVES).items()
               if target is not _ATEN.native_dropout.default},
    pointwise=POINTWISE,
    self_first=SELF_FIRST,
    storage_aware=frozenset({_ATEN.linalg_qr.default}),
    rounds_apart=_rounds_apart,
    keeps_gradients=lambda _target, _results: False,
    first_run_only=lambda _target, _args: (),
    undefined={_ATEN.cudnn_batch_norm.default: frozenset({3}), **_NOT_DRAWN},
    unwritten=_NOT_DRAWN,
    drawing=_drawing,
    hardware=lambda: f"{torch.cuda.get_device_name()} {torch.version.cuda or torch.version.hip}",
    breaks_on_indices=True,
    seconds=_seconds,
    slab=_slab,
    free_bytes=_free_bytes,
    scratch_bytes=_scratch_bytes,
    library_bytes=_library_bytes,
    scratch_is_outside=True,
    sources=tuple(_HERE / name for name in ("cuda.py", "pointwise.py", "../out_variants.py", "rewrites.py")),
)  # fmt: skip

#: What steps for a GPU are captured with where there is none: fake tensors on the host, as if its kernels took them.
ABSENT_CUDA = replace(CUDA, missing=lambda: "", fakes_on="cpu", fake_call=partial(fake_call, as_on="cuda"))
