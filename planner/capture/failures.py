"""What a model can do that no graph can hold, each as one sentence that names the module and the op."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import torch
from torch import nn

from planner.capture import torch_private as private
from planner.capture.recorder import Recorder
from planner.errors import StowageError

_TORCH = str(Path(torch.__file__).parent)


def explain(error: Exception, recorder: Recorder, classes: Mapping[str, str]) -> StowageError:
    """Why a step could not be captured.

    Args:
        error: what was raised while the step ran on fake tensors.
        recorder: knows where that was.
        classes: class name by module path.
    """
    if isinstance(error, StowageError):
        return error
    target = recorder.current
    module, line = _origin(error.__traceback__, recorder.paths)
    kind = f" ({classes[module]})" if module in classes else ""
    where = f"{_name(module)}{kind}{f' at {line}' if line else ''}"
    if isinstance(error, private.DATA_DEPENDENT):
        return StowageError(
            f"{error.func} in {where} depends on the values of tensors (.item(), a branch on a tensor, or a shape that "
            "follows from data), which a plan cannot hold: rewrite it with torch.where or a fixed shape"
        )
    if isinstance(error, (*private.UNSUPPORTED, NotImplementedError)):
        return StowageError(f"{target} in {where} cannot be captured ({_first_line(error)}): use another op there")
    op = f", in {target}" if target is not None else ""
    return StowageError(
        f"the {recorder.phase} pass raised {type(error).__name__} in {where}{op} ({_first_line(error)}): "
        "make the step run in eager PyTorch first"
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
