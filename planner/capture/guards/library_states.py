"""What libraries keep and a step's code may read: hyperparameters, schedules, and variables of the environment."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from planner.capture.guards import values
from planner.capture.guards.containers import Container, DictItems, State
from planner.capture.guards.values import Value

#: Who reads learning rates or epochs names one of these; who does not is not captured again whenever they change.
_OF_OPTIMIZERS = frozenset({
    "param_groups", "defaults", "state_dict", "last_epoch", "base_lrs", "get_last_lr", "get_lr", "_last_lr",
    "_step_count",
})  # fmt: skip
_OF_ENVIRONMENT = frozenset({"environ", "environb", "getenv", "getenvb"})


def is_optimizer(value: object) -> bool:
    """Whether a value trains: its numbers change from step to step, which most code does not read."""
    return isinstance(value, Optimizer | LRScheduler)


def of_optimizer(path: str, optimizer: Any, names: Collection[str]) -> Iterator[tuple[Container, dict[str, Value]]]:
    """The places of an optimizer's or a scheduler's numbers, each with what it holds; none if no code names them.

    Args:
        path: of it.
        optimizer: which of the two it is does not matter.
        names: that the code names.
    """
    if _OF_OPTIMIZERS.isdisjoint(names):
        return
    if isinstance(optimizer, Optimizer):
        tables = {f"{path}.param_groups[{place}]": group for place, group in enumerate(optimizer.param_groups)}
    else:
        tables = {path: vars(optimizer)}
    for where, table in tables.items():
        found = {f"{where}.{key}": item for key, item in table.items()}
        found.update({
            f"{name}[{place}]": each
            for name, item in found.items() if type(item) in (list, tuple)
            for place, each in enumerate(item)
        })  # fmt: skip
        numbers = {name: values.plain(item) for name, item in found.items() if values.is_plain(item)}
        yield DictItems(where, table), numbers


def of_process(names: Collection[str]) -> Iterator[tuple[Container, dict[str, Value]]]:
    """The variables of the environment, if the code names them."""
    if _OF_ENVIRONMENT.isdisjoint(names):
        return
    yield (
        State("os.environ", lambda: tuple(os.environ.items()), None),
        {f"os.environ[{name!r}]": values.plain(text) for name, text in os.environ.items()},
    )
