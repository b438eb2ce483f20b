"""Advice on replacing code that no plan can represent, by the running function, the op, or the model's line."""

from __future__ import annotations

import linecache
import re
from types import TracebackType

from planner import torch_private as private
from planner.capture.source.user_lines import is_users

_PADDED = "keep sequences padded to one length, and leave out what is past their ends by torch.where and a mask"
_BEFORE = "do that before the step and let it come in with the batch"
_MASK = (
    "let a mask that is known before the step come in with the batch as an index (index = mask.nonzero().flatten() "
    "beforehand, then x[index]), and write torch.where(mask, x, 0) for one that is computed"
)
_CAUSAL = (
    "say whether the mask is causal, by tgt_is_causal= or src_is_causal= (is_causal= of an encoder), so that PyTorch "
    "does not read it"
)
_COUNTS = "take sizes and counts that are known before the step, and mask what is past them"
_CHOOSE = "choose by torch.where(condition, a, b), or decide between two steps of Run.steps"

#: By part of the path and the name of a running function.
_FUNCTIONS = (
    (
        "", r"(remove|add|add_remaining|contains)_self_loops",
        "add self-loops to edge_index before the step and make the layer with add_self_loops=False",
    ),
    ("nn/utils/rnn", r".*", _PADDED),
    ("nn/modules/transformer", r"_detect_is_causal_mask", _CAUSAL),
    ("/distributions/", r".*", "make the distribution with validate_args=False, so that PyTorch reads no values of it"),
)  # fmt: skip
#: By kernel name.
_OPS = (
    (r"nonzero|masked_select", _MASK),
    (r"_?unique\w*", f"{_BEFORE}, as an index of a fixed shape"),
    (r"repeat_interleave", "give output_size=, the sum of the repeats"),
    (r"bincount|histc", "count with torch.zeros(n).index_add(0, index, ones), where n is known before the step"),
    (r"equal|allclose|is_nonzero", _CHOOSE),
    (r"_nested_tensor_from_mask\w*", "make nn.TransformerEncoder with enable_nested_tensor=False"),
    (r"_?nested_\w+", _PADDED),
    (r"_?pack_padded_sequence\w*", _PADDED),
)
#: By the text of the line that reads a single value.
_LINES = (
    (r"\bone_hot\(", "give num_classes="),
    (r"^\s*(if|elif|while|assert)\b|\bif\b.*\belse\b", _CHOOSE),
    (r"\.tolist\(|\bsplit\(|\brange\(|\[.*:.*\]", _COUNTS),
    (r"\.item\(|\b(float|int|bool)\(", "keep it a tensor to compute with, and read it between two steps of Run.steps"),
)
#: By PyTorch's message, if it is about a fake tensor, which the user never created.
_MESSAGES = (
    (r"data is not allocated yet", "put tensors together with torch.stack or torch.cat, and not with torch.tensor"),
    (r"\.numpy\(\) is not supported", f"compute with torch and not with NumPy, or {_BEFORE}"),
    (
        r"support for cuda devices|compiled with CUDA|at least two devices, (cpu and cuda|cuda:\d and cpu)",
        "make tensors where the input is, by device=x.device, and move none in the step",
    ),
    (
        r"@once_differentiable",
        "capture it for the CPU, since the derivative of an RMS norm's derivative is known on a GPU alone",
    ),
    (r"__format__", "format it between two steps of Run.steps, which gives the loss, and not in the step"),
    (r"^_apply\(\)", "move or convert modules before the step, and not in forward"),
    (r"shape_env must not be None|NestedTensorImpl", _PADDED),
)
_VALUE = "_local_scalar_dense"
_LAYOUTS = {
    "sparse_": "use a dense one (sparse=False of an embedding; to_dense() of a matrix before the step)",
    "jagged": _PADDED,
}


def instead(error: Exception, kernel: str) -> str:
    """Return what to write instead; empty if that is not known.

    Args:
        error: the exception that was raised.
        kernel: name of the running op: `nonzero`.
    """
    frames, line = _frames(error.__traceback__)
    data = isinstance(error, private.DATA_DEPENDENT)
    for path, name, advice in _FUNCTIONS if data else ():
        if any(path in file and re.fullmatch(name, function) for file, function in frames):
            return advice
    for pattern, advice in _OPS if data or "nested" in kernel or isinstance(error, private.UNSUPPORTED) else ():
        if re.fullmatch(pattern, kernel):
            return advice
    for pattern, advice in _LINES if data and kernel == _VALUE else ():
        if re.search(pattern, line):
            return advice
    return next((advice for pattern, advice in _MESSAGES if re.search(pattern, str(error))), "")


def instead_of_layout(kind: str) -> str:
    """Return what to use in place of a tensor that is not a strided block of memory: `"sparse_coo"`, `"quantised"`."""
    return next((advice for prefix, advice in _LAYOUTS.items() if kind.startswith(prefix)), "use a dense one")


def _frames(traceback: TracebackType | None) -> tuple[list[tuple[str, str]], str]:
    """Return the files and functions from the outermost frame inwards, and the text of the innermost user's line."""
    found, line = [], ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        found.append((code.co_filename, code.co_name))
        if is_users(code.co_filename):
            line = linecache.getline(code.co_filename, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found, line
