"""What autocast does on NVIDIA's GPUs, for fake tensors of the CPU, whose autocast leaves other operators alone.

Norms, softmax, sums and powers are computed in single precision there. What both convert is left to PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from planner import torch_private as private

_ATEN = torch.ops.aten
_HALVES = (torch.bfloat16, torch.float16)


def _in_single_precision(go_on: private.Continuation, *args: Any, **kwargs: Any) -> Any:
    if not private.autocast_enabled():
        return go_on(*args, **kwargs)
    args, kwargs = private.pytree.tree_map_only(torch.Tensor, single, (args, kwargs))
    with private.without_autocast():
        return go_on.past_autocast(*args, **kwargs)


def single(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of half precision as one of single precision, any other one as it is."""
    return tensor.to(torch.float32) if tensor.dtype in _HALVES else tensor


def _with_single_results(go_on: private.Continuation, *args: Any, **kwargs: Any) -> Any:
    """The result is in single precision unless another one is asked for, and the kernel converts as it reads."""
    if not private.autocast_enabled():
        return go_on(*args, **kwargs)
    if args[0].dtype in (torch.float32, *_HALVES) and _dtype(go_on, args, kwargs) is None:
        kwargs = {**kwargs, "dtype": torch.float32}
    with private.without_autocast():
        return go_on.past_autocast(*args, **kwargs)


def _dtype(go_on: private.Continuation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.dtype | None:
    names = [argument.name for argument in private.schema(go_on.target).arguments]
    place = names.index("dtype")
    found: torch.dtype | None = args[place] if place < len(args) else kwargs.get("dtype")
    return found


def _normalised_by(kernel: private.OpOverload) -> Callable[..., Any]:
    """Softmax, whose kernel there converts from `torch.float16` to single precision as it reads."""

    def made(go_on: private.Continuation, source: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> Any:
        if dtype is None and private.autocast_enabled() and source.dtype in _HALVES:
            dtype = torch.float32
        if source.dtype is torch.float16 and dtype is torch.float32:
            return kernel(source, dim, True)
        return go_on.past_autocast(source, dim, dtype)

    return made


def _in_half_precision(go_on: private.Continuation, *args: Any, **kwargs: Any) -> Any:
    if not private.autocast_enabled():
        return go_on(*args, **kwargs)
    half = torch.get_autocast_dtype("cpu")
    args, kwargs = private.pytree.tree_map_only(
        torch.Tensor, lambda one: one.to(half) if one.dtype in (torch.float32, *_HALVES) else one, (args, kwargs)
    )
    with private.without_autocast():
        return go_on.past_autocast(*args, **kwargs)


def _as_it_is(go_on: private.Continuation, *args: Any, **kwargs: Any) -> Any:
    """Only the CPU's autocast converts the arguments."""
    return go_on.past_autocast(*args, **kwargs)


_SINGLE = (
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt", "sinh",
    "tan", "pow.Scalar", "pow.Tensor_Scalar", "pow.Tensor_Tensor", "softplus", "layer_norm", "native_layer_norm",
    "group_norm", "cosine_similarity", "dist", "pdist", "renorm", "logsumexp", "upsample_nearest1d",
    "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d",
    "upsample_bicubic2d", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d",
    "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa",
)  # fmt: skip
_SINGLE_RESULTS = (
    "cumprod", "cumsum", "sum", "sum.dim_IntList", "linalg_vector_norm", "linalg_matrix_norm",
    "linalg_matrix_norm.str_ord",
)  # fmt: skip
_HALF = ("einsum", "mv", "addmv", "addr", "chain_matmul", "linalg_multi_dot")
_AS_IT_IS = (
    "cat", "stack", "cross_entropy_loss", "avg_pool3d", "adaptive_avg_pool3d", "max_pool3d", "max_unpool2d",
    "fractional_max_pool2d", "trace", "reflection_pad1d", "reflection_pad2d",
    "replication_pad1d", "replication_pad2d", "replication_pad3d",
)  # fmt: skip


def _operator(name: str) -> private.OpOverload:
    packet, _, overload = name.partition(".")
    found: private.OpOverload = getattr(getattr(_ATEN, packet), overload or "default")
    return found


#: By operator, a function that takes one to continue without it, and the operator's arguments.
CUDA_AUTOCAST: dict[private.OpOverload, Callable[..., Any]] = {
    **dict.fromkeys(map(_operator, _SINGLE), _in_single_precision),
    **dict.fromkeys(map(_operator, _SINGLE_RESULTS), _with_single_results),
    **dict.fromkeys(map(_operator, _HALF), _in_half_precision),
    **dict.fromkeys(map(_operator, _AS_IT_IS), _as_it_is),
    _ATEN.softmax.int: _normalised_by(_ATEN._softmax.default),
    _ATEN.log_softmax.int: _normalised_by(_ATEN._log_softmax.default),
}
