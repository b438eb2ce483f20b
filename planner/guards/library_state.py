"""State of libraries that a step's code may read: hyperparameters, schedules, and environment variables."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from planner.guards import comparison_keys
from planner.guards.comparison_keys import Value
from planner.guards.containers import Container, DictItems, State

#: Code that reads learning rates or epochs names one of these; other code is not captured again when they change.
_OPTIMIZER_NAMES = frozenset({
    "param_groups", "defaults", "state_dict", "last_epoch", "base_lrs", "get_last_lr", "get_lr", "_last_lr",
    "_step_count",
})  # fmt: skip
_ENVIRONMENT_NAMES = frozenset({"environ", "environb", "getenv", "getenvb"})


def is_optimizer(value: object) -> bool:
    """Whether a value is an optimizer or scheduler: its numbers change every step, and most code does not read them."""
    return isinstance(value, Optimizer | LRScheduler)


def of_optimizer(path: str, optimizer: Any, names: Collection[str]) -> Iterator[tuple[Container, dict[str, Value]]]:
    """Yield the containers of an optimizer's or scheduler's numbers, each with its values; none if no code names them.

    Args:
        path: path of the optimizer or scheduler.
        optimizer: the optimizer or scheduler.
        names: the names that the code uses.
    """
    if _OPTIMIZER_NAMES.isdisjoint(names):
        return
    if isinstance(optimizer, Optimizer):
        tables = {f"{path}.param_groups[{position}]": group for position, group in enumerate(optimizer.param_groups)}
    else:
        tables = {path: vars(optimizer)}
    for table_path, table in tables.items():
        found = {f"{table_path}.{key}": item for key, item in table.items()}
        found.update({
            f"{name}[{position}]": element
            for name, item in found.items() if type(item) in (list, tuple)
            for position, element in enumerate(item)
        })  # fmt: skip
        numbers = {name: comparison_keys.plain(item) for name, item in found.items() if comparison_keys.is_plain(item)}
        yield DictItems(table_path, table), numbers


def of_process(names: Collection[str]) -> Iterator[tuple[Container, dict[str, Value]]]:
    """Yield the environment variables, if the code names them."""
    if _ENVIRONMENT_NAMES.isdisjoint(names):
        return
    yield (
        State("os.environ", lambda: tuple(os.environ.items()), None),
        {f"os.environ[{name!r}]": comparison_keys.plain(text) for name, text in os.environ.items()},
    )
