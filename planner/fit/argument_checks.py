"""Checks of what is asked, before anything is captured: what fits must not depend on a mistake."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import isfinite
from numbers import Integral
from typing import cast

from torch import nn

from planner.errors import StowageError, did_you_mean, given_type, required_arguments
from planner.fit.time_and_memory import share_text
from planner.machine import Machine, usable_bytes
from planner.step import InferenceStep, Step, TrainStep

#: The values of an argument, or the first of them and None for no last one.
Values = Sequence[int] | tuple[int, None]


def checked_argument(make_step: Callable[..., Step], over: Mapping[str, Values]) -> tuple[str, Sequence[int], bool]:
    """The argument that is varied, its values, and whether there are larger ones without end.

    Raises:
        StowageError: make_step has no such argument or is no function, or the values are not ascending from 1 on.
    """
    if not isinstance(over, Mapping) or len(over) != 1:
        raise StowageError('name one argument and its values, as in over={"batch": range(1, 65)}')
    ((name, values),) = over.items()
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise StowageError(f"the values of {name} must be whole numbers such as range(1, 65), got {values!r}")
    if not values:
        raise StowageError(f"the range of {name} is empty; give values such as range(1, 65)")
    endless = not isinstance(values, range) and len(values) == 2 and values[1] is None
    values = cast(Sequence[int], values[:1] if endless else values)
    # both ends of a range tell, and one beyond all numbers of the machine has no length
    checked = tuple(dict.fromkeys((values[0], values[-1]))) if isinstance(values, range) else values
    for value in checked:
        if not _is_whole(value):
            raise StowageError(f"{name} must be a whole number, got {value!r}")
        if value < 1:
            raise StowageError(f"{name} must be 1 or more, got {value}")
        if value > sys.maxsize:
            raise StowageError(f"{name} must be {sys.maxsize:,} or less, got {value:,}")
    if any(later <= before for before, later in pairwise(checked)):
        raise StowageError(f"the values of {name} must be ascending, as in range(1, 65)")
    if not callable(make_step) or isinstance(make_step, nn.Module):  # a model can be called, and makes no step
        raise StowageError(
            f"make_step must be a function of {name}, got {given_type(make_step)}; pass one that takes {name} and "
            "returns a TrainStep or an InferenceStep"
        )
    _check_has(make_step, name)
    return name, values, endless


def _check_has(make_step: Callable[..., Step], name: str) -> None:
    """Refuse an argument that a function does not have."""
    parameters = inspect.signature(make_step).parameters
    function = getattr(make_step, "__name__", "make_step")
    if name not in parameters and not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        has = (
            f"it takes {', '.join(parameters)}"
            if parameters
            else f"it takes no arguments, and is called with each value: write def {function}({name}=8): and make a "
            f"step of that {name}"
        )
        raise StowageError(f"{function} has no argument {name!r}{did_you_mean(name, parameters)}; {has}")
    others = [one for one in required_arguments(make_step) if one != name]
    if others:
        raise StowageError(
            f"{function} is called with {name} alone, and needs {' and '.join(others)} too: give a default, as in "
            f"def {function}({name}, {', '.join(f'{one}=8' for one in others)}):"
        )


def checked_step(step: object) -> Step:
    """What was made, which must be a step.

    Raises:
        StowageError: it is something else.
    """
    if not isinstance(step, TrainStep | InferenceStep):
        raise StowageError(
            f"make_step returned {type(step).__name__}, which is not a step; return a TrainStep or an InferenceStep"
        )
    return step


def checked_shares(slower: str | Sequence[str]) -> tuple[float, ...]:
    """The shares of time by which a step may be slower, each once, by the text that answers are found by.

    Raises:
        StowageError: one is not a share such as `"10%"`.
    """
    texts = [slower] if isinstance(slower, str) or not isinstance(slower, Sequence) else slower
    return tuple({share_text(share): share for share in map(_share, texts)}.values())


def _share(text: object) -> float:
    share = -1.0
    if isinstance(text, str) and text.endswith("%"):
        try:
            share = float(text.removesuffix("%")) / 100
        except ValueError:
            share = -1.0
    if not (share >= 0 and isfinite(share)):
        raise StowageError(f'slower must be a share such as "10%", got {text!r}')
    return share


def check_search(seed: int, evaluations: int | None) -> None:
    """Check the seed and the number of evaluations, which a step that fits unswapped would not come to.

    Raises:
        StowageError: one is not a whole number, or below 0.
    """
    for name, value in (("seed", seed), ("evaluations", evaluations)):
        if value is not None and (not _is_whole(value) or value < 0):
            raise StowageError(f"{name} must be a whole number of 0 or more, got {value!r}")


def checked_budget(machine: Machine) -> int:
    """Bytes of device memory that a plan may use.

    Raises:
        StowageError: it is not a machine, its device computes in the host's memory, or it has no memory to plan with.
    """
    if not isinstance(machine, Machine):
        raise StowageError(f'{machine!r} is not a machine; pass planner.machine("h100"), for example')
    check_kind(machine.name, machine.device.kind)
    usable = usable_bytes(machine)
    if machine.host_memory_bytes < 1:
        raise StowageError(f"{machine.name} has no host memory to swap to; give it some")
    return usable


def check_kind(name: str, kind: str) -> None:
    """Refuse a machine that computes in the memory that a step would be swapped to.

    Args:
        name: of the machine.
        kind: of its device, such as `"cuda"`.

    Raises:
        StowageError: it is a CPU.
    """
    if kind == "cpu":
        raise StowageError(
            f"a step on {name} takes the memory that it would be swapped to, and its op times must be measured size "
            "by size; ask what fits on a GPU such as h100"
        )


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)
