"""Steps from a user's own Python file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from planner.errors import StowageError, did_you_mean, required_arguments
from planner.step import InferenceStep, TrainStep


def function_from_file(path: str | Path, function: str) -> Callable[..., TrainStep | InferenceStep]:
    """Run a Python file; returns one of its functions, which raises a `StowageError` unless it returns a step.

    Args:
        path: of the file; imports inside it find their neighbours, as they do for a script.
        function: returns a `TrainStep` or `InferenceStep`.

    Raises:
        StowageError: the file or the function is missing, or the file raises.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise StowageError(f"there is no file {path}; check the path")
    with _neighbours(path):
        module = _run(path)
        build = getattr(module, function, None)
        if build is None:
            own = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
            raise StowageError(
                f"{path} has no function {function!r}{did_you_mean(function, own)}; "
                "name one that returns a TrainStep or an InferenceStep, as in file.py:function"
            )
        if not callable(build):
            raise StowageError(
                f"{function} in {path} is not a function; name one that returns a TrainStep or an InferenceStep"
            )

    @wraps(build)
    def make(**arguments: Any) -> TrainStep | InferenceStep:
        given = ", ".join(f"{name}={value}" for name, value in arguments.items())
        called = f"with {given}" if given else "without arguments"
        needed = [] if arguments else required_arguments(build)
        if needed:
            raise StowageError(
                f"{function} in {path} is called without arguments, and needs {' and '.join(needed)}: give a default, "
                f"as in def {function}({', '.join(f'{one}=8' for one in needed)}):, which `planner fit` varies too"
            )
        with _neighbours(path):
            try:
                step = build(**arguments)
            except StowageError:
                raise
            except (Exception, SystemExit) as error:
                raise StowageError(
                    f"{function} in {path} raised {_said(error)}; it is called {called} and must return a TrainStep "
                    "or an InferenceStep"
                ) from error
        return _checked(step, f"{function} in {path}")

    return make


def _checked(step: object, where: str) -> TrainStep | InferenceStep:
    if isinstance(step, TrainStep | InferenceStep):
        return step
    hint = "return a TrainStep or an InferenceStep"
    if isinstance(step, nn.Module):
        hint = "wrap it in planner.TrainStep(module, batch) or planner.InferenceStep(module, batch)"
    raise StowageError(f"{where} returned {type(step).__name__}, which is not a step; {hint}")


def _run(path: Path) -> ModuleType:
    name = f"stowage_user_{path.stem}"
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    # classes defined in the file look their module up here, when they are pickled or are dataclasses
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise StowageError(f"{path} cannot be run: {_said(error)}; correct the file and try again") from error
    return module


@contextmanager
def _neighbours(path: Path) -> Iterator[None]:
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _said(error: BaseException) -> str:
    first = str(error).strip().split("\n", maxsplit=1)[0].rstrip(".")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
