"""What a model can do that no graph can hold, each as one sentence that names the module and the op."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import nn

from planner.capture import torch_private as private
from planner.errors import StowageError

_TORCH = str(Path(torch.__file__).parent)


def unsupported_tensor(tensor: torch.Tensor, module: str, target: Any) -> StowageError:
    """For a tensor without strides, such as a sparse or a quantised one."""
    what = "quantised" if tensor.is_quantized else str(tensor.layout).removeprefix("torch.")
    op = f"{target} of " if target is not None else ""
    return StowageError(
        f"{op}{_name(module)} makes or takes a {what} tensor, which cannot be planned: use a dense one in its place"
    )


def explain(
    error: Exception, paths: Mapping[int, str], classes: Mapping[str, str], target: Any, phase: str
) -> StowageError:
    """Why a step could not be captured.

    Args:
        error: what was raised while the step ran on fake tensors.
        paths: module path by `id(module)`.
        classes: class name by module path.
        target: the op that was running, or None.
        phase: "forward", "backward" or "optimizer".
    """
    if isinstance(error, StowageError):
        return error
    module, line = _origin(error.__traceback__, paths)
    kind = f" ({classes[module]})" if module in classes else ""
    where = f"{_name(module)}{kind}{f' at {line}' if line else ''}"
    if isinstance(error, private.DATA_DEPENDENT):
        return StowageError(
            f"{error.func} in {where} depends on the values of tensors (`.item()`, a branch on a tensor, or a shape that "
            "follows from data), which a plan cannot hold: rewrite it with `torch.where` or a fixed shape"
        )
    if isinstance(error, private.UNSUPPORTED) or isinstance(error, NotImplementedError):
        return StowageError(f"{target} in {where} cannot be captured ({_first_line(error)}): use another op there")
    return StowageError(
        f"the {phase} pass raised {type(error).__name__} in {where}{f', in {target}' if target is not None else ''}: "
        f"{_first_line(error)}; make the step run in eager PyTorch first"
    )


def _name(module: str) -> str:
    return f"module {module}" if module else "the model"


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return text[0].rstrip(".;:") if text else "no message"


def _origin(traceback: TracebackType | None, paths: Mapping[int, str]) -> tuple[str, str]:
    module, line = "", ""
    while traceback is not None:
        frame = traceback.tb_frame
        owner = frame.f_locals.get("self")
        if isinstance(owner, nn.Module) and id(owner) in paths:
            module = paths[id(owner)]
        name = frame.f_code.co_filename
        if not name.startswith((_TORCH, str(Path(__file__).parent), "<")):
            line = f"{name.rpartition('/')[2]}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return module, line
