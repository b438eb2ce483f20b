"""Results of operators on fake tensors, corrected where PyTorch's fake kernels differ from its real ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload

from planner.errors import StowageError
from planner.torch_private.dispatch import no_modes
from planner.torch_private.fake_tensors import device_of
from planner.torch_private.onednn_lstm_workspace import measured_workspace_bytes, workspace_bytes
from planner.torch_private.result_strides import WRONG_STRIDES, right_strides
from planner.torch_private.tensors import tensors

_HALVES = (torch.bfloat16, torch.float16)
_NORMALISATIONS = frozenset({
    torch.ops.aten.native_layer_norm.default, torch.ops.aten.native_batch_norm.default,
    torch.ops.aten.native_group_norm.default,
})  # fmt: skip


def fake_call(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any], as_on: str = "") -> Any:
    """Call an operator on fake tensors.

    PyTorch's fake kernel of the grouped product, which mixtures of experts use, rejects all dtypes but bfloat16, unlike
    the real kernels. Those of normalisations ignore that the CPU's kernels, given an input of low precision and
    parameters of a higher one, keep mean and deviation in the higher. Wrong strides are corrected by `right_strides`.
    Those of oneDNN's LSTM omit its workspace for the backward pass, and return both biases' gradients as one tensor.
    cuDNN's batch normalisation keeps memory for its backward pass, which its fake kernel omits too.
    Those of embedding bags cover the CPU's fast kernels for half precision but not for bfloat16. That of the CTC loss
    rejects even lengths that are known.

    Args:
        target, args, kwargs: the call.
        as_on: the type of device whose kernels are meant; if empty, the tensors' own.
    """
    if target is torch.ops.aten._grouped_mm.default and args[0].dtype is not torch.bfloat16:
        return _grouped_product(*args, **kwargs)
    if target is torch.ops.aten.mkldnn_rnn_layer_backward.default:
        return _lstm_gradients(args)
    if target is torch.ops.aten._ctc_loss.default:
        return _ctc_results(*args)
    if target is torch.ops.aten._ctc_loss_backward.default:
        return args[1].new_empty(args[1].shape)
    if target in _BAGS and args[0].dtype is torch.bfloat16:
        return _bags_of_half(target, args, kwargs)
    result = target(*args, **kwargs)
    if target is torch.ops.aten.mkldnn_rnn_layer.default:
        return (*result[:3], _kept_by_lstm(args) if torch.is_grad_enabled() else None)
    if target is torch.ops.aten.cudnn_batch_norm.default and args[5]:
        kept: int = torch._C._get_cudnn_batch_norm_reserve_space_size(args[0], True)  # type: ignore[attr-defined]
        return (*result[:3], args[0].new_empty(kept, dtype=torch.uint8))
    if target in WRONG_STRIDES and all((as_on or device_of(value).type) == "cpu" for value in tensors(args)):
        result = right_strides(target, args, result)
    if target in _NORMALISATIONS and as_on == "cuda":
        return (result[0], *(value.to(torch.float32) if value.dtype in _HALVES else value for value in result[1:]))
    if target in _NORMALISATIONS and args[0].device.type == "cpu":
        others = [value.dtype for value in args[1:] if isinstance(value, torch.Tensor)]
        statistics = others[0] if others else args[0].dtype
        return (result[0], *(value.to(statistics) for value in result[1:]))
    if target is torch.ops.aten.native_group_norm_backward.default and result[0] is not None:
        return (result[0].to(args[1].dtype), *result[1:])
    return result


def _ctc_results(
    log_probs: torch.Tensor,
    _targets: torch.Tensor,
    _inputs: Sequence[int],
    lengths: Sequence[int],
    *_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of each sequence, and the states that its backward pass reads: two per element of a target, plus one."""
    slots, rows = log_probs.shape[:2]
    return log_probs.new_empty(rows), log_probs.new_empty(rows, slots, 2 * max(lengths, default=0) + 1)


_BAGS = frozenset({torch.ops.aten._embedding_bag.default, torch.ops.aten._embedding_bag_forward_only.default})


def _bags_of_half(target: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[torch.Tensor, ...]:
    def like(value: Any, before: torch.dtype, after: torch.dtype) -> Any:
        return value.to(after) if isinstance(value, torch.Tensor) and value.dtype is before else value

    result = target(*(like(value, torch.bfloat16, torch.float16) for value in args), **kwargs)
    return tuple(like(value, torch.float16, torch.bfloat16) for value in result)


def _kept_by_lstm(args: Sequence[Any]) -> torch.Tensor:
    source, hidden = args[0], args[10]
    _check_lstm(source.dtype)
    slots, rows, inputs = source.shape
    size = workspace_bytes(slots, rows, inputs, hidden, source.dtype)
    return torch.empty(size, dtype=torch.uint8, device=source.device)


def _lstm_gradients(args: Sequence[Any]) -> tuple[torch.Tensor, ...]:
    """Gradients of input, weights of input and state, a bias for each, and states; always in single precision."""
    source, of_input, of_state, bias, _, state, cells = args[:7]
    bias = bias if args[17] else source.new_empty(of_input.shape[0])  # without biases, other tensors are in their place
    likes = source, of_input, of_state, bias, bias, state, cells
    return tuple(like.new_empty(like.shape, dtype=torch.float32) for like in likes)


@cache
def _check_lstm(dtype: torch.dtype) -> None:
    """Check the layout on this processor, where oneDNN might choose another kernel than the one assumed here."""
    shape = 2, 3, 20, 10
    with no_modes(), torch.enable_grad():
        if measured_workspace_bytes(*shape, dtype) != workspace_bytes(*shape, dtype):
            raise StowageError(
                "nn.LSTM keeps another amount of memory here than Stowage knows of: switch oneDNN off by "
                "torch.backends.mkldnn.enabled = False"
            )


def _grouped_product(
    left: torch.Tensor,
    right: torch.Tensor,
    ends: torch.Tensor | None = None,
    _bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    rows, columns = left.shape[-2], right.shape[-1]
    groups: list[int] = []
    if left.dim() == right.dim():
        groups = [left.shape[0] if left.dim() == 3 or ends is None else ends.shape[0]]
    dtype = out_dtype or left.dtype
    lane = 16 // dtype.itemsize  # rows start at multiples of 16 bytes
    width = -(-columns // lane) * lane
    strides = [rows * width] * len(groups) + [width, 1]
    return left.new_empty_strided([*groups, rows, columns], strides, dtype=dtype)


def import_compiler() -> None:
    """Import PyTorch's compiler now, which takes a second; else the first call on tensors without memory does."""
    import torch._inductor  # noqa: F401
