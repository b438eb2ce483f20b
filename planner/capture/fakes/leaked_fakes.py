"""Fake tensors that a model's code keeps outside of modules, loss and batch: in function caches and globals."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from functools import _lru_cache_wrapper
from typing import Any
from weakref import ref

import torch

from planner.errors import StowageError
from planner.finalizers import collection_counts
from planner.torch_private import FakeTensor, autocast_enabled

#: A cached value may be a tuple of tuples of tensors.
_DEPTH = 3


class Leftovers:
    """Tracks the fake tensors of a capture; their holders are looked for only if one of them outlives it."""

    def __init__(self) -> None:
        self._made: list[ref[torch.Tensor]] = []

    def note(self, tensor: torch.Tensor) -> None:
        """Record that a fake tensor was created."""
        self._made.append(ref(tensor))

    def clear(self) -> None:
        """Clear every `functools.lru_cache` that keeps a fake tensor."""
        if not self._alive():
            return
        for cache in _CACHES.living():
            if _keeps_fakes(gc.get_referents(cache), _DEPTH):
                cache.cache_clear()

    def refuse(self) -> None:
        """Remove the remaining fake tensors from lists and dicts.

        Raises:
            StowageError: fake tensors remained.
        """
        for generation in (0, 1, 2):  # what a capture has made is young, and all that is old takes a third of a second
            if not self._alive():
                return
            gc.collect(generation)
        kept = self._alive()
        if kept and autocast_enabled():
            del kept
            torch.clear_autocast_cache()
            kept = self._alive()
            if not kept:
                raise StowageError(
                    "autocast is entered around the step, and keeps its casts of weights from one step to the next: "
                    "enter it in the loss, or make the step with TrainStep(..., autocast=torch.bfloat16)"
                )
        if not kept:
            return
        shape = tuple(kept[0].shape)
        places = sorted(filter(None, [_taken_out(holder, kept) for holder in gc.get_referrers(*kept)]))
        raise StowageError(
            f"the model's code keeps a tensor of shape {shape} in {places[0] if places else 'a place'} outside of the "
            "model, where a plan would not keep it: return it, or make it an attribute of a module"
        )

    def _alive(self) -> list[torch.Tensor]:
        return [tensor for tensor in (made() for made in self._made) if tensor is not None]


class _Caches:
    """Finds every `functools.lru_cache` of the process, and goes through old objects only where new ones may be there.

    An object grows old in a collection of a generation above the youngest alone: until the next one, caches that were
    made after the last search are young, and young objects are few.
    """

    def __init__(self) -> None:
        self._found: list[ref[_lru_cache_wrapper[Any]]] = []
        self._collections: tuple[int, ...] = ()

    def living(self) -> list[_lru_cache_wrapper[Any]]:
        """All that exist."""
        collections = gc.get_freeze_count(), *collection_counts()[1:]
        if collections == self._collections:
            others = [*gc.get_objects(0), *gc.get_objects(1)]
        else:
            others, self._found = gc.get_referrers(_lru_cache_wrapper), []  # instances refer to their class
        known = {id(cache): cache for cache in (found() for found in self._found) if cache is not None}
        known |= {id(cache): cache for cache in others if type(cache) is _lru_cache_wrapper}
        self._found, self._collections = [ref(cache) for cache in known.values()], collections
        return list(known.values())


_CACHES = _Caches()


def _taken_out(holder: Any, kept: list[torch.Tensor]) -> str:
    """Remove the tensors from a holder, and return what the holder is, in words."""
    own = {id(tensor) for tensor in kept}
    if isinstance(holder, list) and holder is not kept:
        holder[:] = [value for value in holder if id(value) not in own]
        return "a list"
    if not isinstance(holder, dict):
        return ""
    keys = [key for key, value in holder.items() if id(value) in own]
    named = "__builtins__" in holder
    if named or any(getattr(owner, "__dict__", None) is holder for owner in gc.get_referrers(holder)):
        holder.update(dict.fromkeys(keys))  # globals and attributes, which other code expects to exist
    else:
        for key in keys:
            del holder[key]
    return f"the global {keys[0]} of {holder.get('__name__')}" if named and keys else "a dict"


def _keeps_fakes(values: Iterable[Any], depth: int) -> bool:
    for value in values:
        if type(value) is FakeTensor:
            return True
        inner = value.values() if isinstance(value, dict) else value
        if depth and isinstance(inner, tuple | list | type({}.values())) and _keeps_fakes(inner, depth - 1):
            return True
    return False
