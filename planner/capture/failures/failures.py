"""Errors for what a model does and no graph can represent, each one sentence that names the module and the op."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

import torch
from torch import nn

from planner import torch_private as private
from planner.capture.failures.advice import instead
from planner.capture.source.file_names import file_name
from planner.capture.source.user_lines import is_users
from planner.errors import StowageError, first_line
from planner.graph import Phase

_REWRITE = (
    "rewrite what reads them (.item(), a branch on a tensor, or a shape that follows from data) with torch.where or a "
    "fixed shape"
)
_QUANTISED = frozenset({torch.quint8, torch.qint8, torch.qint32, torch.quint4x2, torch.quint2x4})


def unplannable(tensor: torch.Tensor) -> str | None:
    """Why a tensor is not a strided block of memory (`"sparse_coo"`, `"quantised"`), or None if it is."""
    if tensor.dtype in _QUANTISED:
        return "quantised"
    return None if tensor.layout is torch.strided else str(tensor.layout).removeprefix("torch.")


def explain(
    error: Exception, phase: str, target: object, paths: Mapping[int, str], classes: Mapping[str, str]
) -> StowageError:
    """Return an error that explains why a step could not be captured.

    Args:
        error: the exception raised while the step ran on fake tensors.
        phase: the running phase: `"forward"`.
        target: the running op, or None.
        paths: module path by `id(module)`.
        classes: class name by module path.
    """
    if isinstance(error, StowageError):
        return error
    module, line, called = _origin(error.__traceback__, paths)
    kind = f" ({classes[module]})" if module in classes else ""
    where = f"{_name(module)}{kind}{f' at {line}' if line else ''}"
    if isinstance(error, private.DATA_DEPENDENT) and error.func is torch.ops.aten._ctc_loss.Tensor:
        return StowageError(
            f"{error.func} in {where} reads lengths, which a plan cannot hold as tensors: give input_lengths and "
            "target_lengths as tuples of whole numbers"
        )
    data = isinstance(error, private.DATA_DEPENDENT)
    func = getattr(error, "func", None) if data else target
    advice = instead(error, private.operator_name(func) if isinstance(func, private.OpOverload) else str(func))
    if data:
        return StowageError(
            f"{func} in {where} depends on the values of tensors, which a plan cannot hold: {advice or _REWRITE}"
        )
    if isinstance(error, (*private.UNSUPPORTED, NotImplementedError)):
        return StowageError(
            f"{target} in {where} cannot be captured ({first_line(error)}): {advice or 'use another op there'}"
        )
    op = f", in {target}" if target is not None else ""
    in_loss = not called and phase == Phase.FORWARD
    if in_loss:
        where = f"the loss{f' at {line}' if line else ''}"
    if advice:
        return StowageError(f"{where}{op} does what a plan cannot hold ({first_line(error)}): {advice}")
    mistaken = in_loss and isinstance(error, TypeError | AttributeError)
    hint = " (the loss is called as loss(model, batch))" if mistaken else ""
    return StowageError(
        f"the {phase} pass raised {type(error).__name__} in {where}{op} ({first_line(error)}): "
        f"make the step run in eager PyTorch first{hint}"
    )


def _name(module: str) -> str:
    return f"module {module}" if module else "the model"


def _origin(traceback: TracebackType | None, paths: Mapping[int, str]) -> tuple[str, str, bool]:
    """The module and the line that raised, and whether that was inside a call of the model."""
    module, line, called = "", "", False
    while traceback is not None:
        frame = traceback.tb_frame
        owner = frame.f_locals.get("self")
        if isinstance(owner, nn.Module) and id(owner) in paths:
            module, called = paths[id(owner)], True
        name = frame.f_code.co_filename
        if is_users(name):
            line = f"{file_name(name)}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return module, line, called
