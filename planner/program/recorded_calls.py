"""Recorded kernel calls, with tensors as layouts in numbered storages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import torch

from planner import torch_private as private
from planner.graph import Phase
from planner.program.argument_references import ScalarRef

#: Kernels that only allocate memory.
ALLOCATIONS = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"})


class Layout(NamedTuple):
    """A tensor as a strided view of a numbered storage; strides and offset in elements."""

    storage: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: torch.dtype

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of its elements, each counted as often as it appears."""
        return self.elements * self.dtype.itemsize

    @property
    def dense(self) -> bool:
        """Whether its elements are adjacent in memory in some order, without repeats."""
        expected = 1
        for stride, size in sorted((s, n) for s, n in zip(self.strides, self.shape, strict=True) if n != 1):
            if size and stride != expected:
                return False
            expected *= size
        return True


@dataclass(frozen=True)
class Event:
    """One kernel call: layouts represent tensors, in the arguments and in `results` (None: no tensor).

    A call that draws the random numbers of an earlier one again has the place of that one among all calls in
    `draws_as`; others have -1.
    """

    target: private.OpOverload
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    results: tuple[Layout | None, ...]
    phase: Phase
    module: str
    source: str
    draws_as: int = -1

    @property
    def kernel(self) -> str:
        """The operator's name without namespace and overload: `add_`."""
        return private.operator_name(self.target)

    @cached_property  # like the next two, as every pass over the calls asks for it
    def arguments(self) -> tuple[Layout, ...]:
        """The tensors among its arguments, in order, as often as they occur."""
        return (*layouts(self.args), *layouts(self.kwargs))

    @cached_property
    def made(self) -> tuple[Layout, ...]:
        """The tensors among its results."""
        return tuple(result for result in self.results if result is not None)

    @cached_property
    def mutated(self) -> tuple[Layout, ...]:
        """The tensors among its arguments that it writes into, each once."""
        found: dict[Layout, None] = {}
        for place in private.mutated_arguments(self.target, self.args):
            found.update(dict.fromkeys(layouts(self.kwargs.get(place) if isinstance(place, str) else self.args[place])))
        return tuple(found)

    @property
    def random(self) -> bool:
        """Whether it draws from the random generator."""
        return not private.is_deterministic(self.target, self.args, self.kwargs)


def layouts(value: Any) -> Iterator[Layout]:
    """The tensors in an argument, in order."""
    if isinstance(value, Layout):
        yield value
    elif isinstance(value, tuple):
        yield from _layouts(value)
    elif isinstance(value, dict):
        yield from _layouts(value.values())


def _layouts(items: Iterable[Any]) -> Iterator[Layout]:
    for item in items:
        if isinstance(item, Layout):
            yield item
        elif isinstance(item, tuple | dict):
            yield from layouts(item)


def substituted(value: Any, references: Mapping[Layout, Any]) -> Any:
    """Return an argument with its tensors replaced by their references."""
    if isinstance(value, Layout):
        return references[value]
    if type(value) is tuple:
        return tuple(substituted(item, references) for item in value)
    return value


def argument_text(event: Event, references: Mapping[Layout, str]) -> str:
    """The argument list of a call as text, with a reference for each tensor."""
    parts = [_word(value, references) for value in event.args]
    parts += [f"{name}={_word(value, references)}" for name, value in event.kwargs.items()]
    return ", ".join(parts)


def _word(value: Any, references: Mapping[Layout, str]) -> str:
    if isinstance(value, Layout):
        return references[value]
    if isinstance(value, ScalarRef):
        return value.name.rpartition("/")[2]
    if type(value) is tuple:
        return f"[{', '.join(_word(item, references) for item in value)}]"
    return str(value)
