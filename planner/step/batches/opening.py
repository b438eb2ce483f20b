"""Taking apart an object of a batch and making another of its type, without running any of its own code.

An object consists of the content of its built-in base (items of a dict, a list, a tuple) and its attributes in
`__dict__` and `__slots__`; so a mapping, a frozen dataclass or graph data of PyTorch Geometric needs no special rule.
"""

from __future__ import annotations

import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from planner import torch_private as private

_POINTER = object.__basicsize__ // 2
#: Supported base types, the special before the general.
_BASES: tuple[type, ...] = (OrderedDict, defaultdict, dict, list, deque, tuple, types.SimpleNamespace, object)
_WRAPPERS = (types.MappingProxyType, types.MethodType)


class ObjectPart(NamedTuple):
    """A child of an object: whether it is an attribute or an item, its label, and its value."""

    attribute: bool
    label: Any
    value: Any


def can_open(kind: Any) -> bool:
    """Whether everything that an object of a type holds can be reached."""
    return kind in _WRAPPERS or _base(kind) is not None or _registered(kind) is not None


def mutable(kind: Any) -> bool:
    """Whether an object of a type can be made empty and filled afterwards, which cycles require."""
    base = _base(kind)
    return base is not None and base is not tuple


def parts(value: Any) -> list[ObjectPart]:
    """The parts of an object, items first."""
    kind: Any = type(value)
    if kind is types.MappingProxyType:
        return [ObjectPart(False, key, item) for key, item in value.items()]
    if kind is types.MethodType:
        return [ObjectPart(True, "__self__", value.__self__), ObjectPart(True, "__func__", value.__func__)]
    base = _base(kind)
    if base is None:
        node = _registered(kind)
        children, context = node.flatten_fn(value)
        return [
            *(ObjectPart(False, place, child) for place, child in enumerate(children)),
            ObjectPart(True, "context", context),
        ]
    found = [ObjectPart(False, label, item) for label, item in _items(value, base)]
    if base is defaultdict:
        found.append(ObjectPart(True, "default_factory", value.default_factory))
    if base is deque:
        found.append(ObjectPart(True, "maxlen", value.maxlen))
    return [*found, *(ObjectPart(True, name, item) for name, item in attributes(value))]


def attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """The attributes stored in an object itself, without calling properties."""
    yield from dict(_own_dict(value)).items()
    for name, slot in _slots(_type(value)):
        try:
            yield name, slot.__get__(value)
        except AttributeError:
            continue


def shell(kind: Any, model: Any) -> Any:
    """An empty object of a mutable type, to be filled.

    Args:
        kind: the type.
        model: the object that it replaces.
    """
    base: Any = _base(kind)
    result = base.__new__(kind)
    if base is deque:
        deque.__init__(result, (), model.maxlen)
    return result


def fill(result: Any, object_parts: list[ObjectPart]) -> None:
    """Fill an object made by `shell` with its parts."""
    kind: Any = type(result)
    base: Any = _base(kind)
    items = [part for part in object_parts if not part.attribute]
    if base in (dict, defaultdict, OrderedDict):
        for part in items:
            base.__setitem__(result, part.label, part.value)
    elif base in (list, deque):
        base.extend(result, [part.value for part in items])
    _set_attributes(result, [part for part in object_parts if part.attribute])


def assembled(value: Any, object_parts: list[ObjectPart]) -> Any:
    """A copy of an object of an immutable type, with other parts."""
    kind: Any = type(value)
    items = [part.value for part in object_parts if not part.attribute]
    if kind is types.MappingProxyType:
        return types.MappingProxyType({part.label: part.value for part in object_parts})
    if kind is types.MethodType:
        owner, function = (part.value for part in object_parts)
        return types.MethodType(function, owner)
    if _base(kind) is None:
        return _registered(kind).unflatten_fn(items, object_parts[-1].value)
    if hasattr(kind, "n_sequence_fields"):
        return kind(items)
    result = tuple.__new__(kind, items)
    _set_attributes(result, [part for part in object_parts if part.attribute])
    return result


def transparent(value: Any, part: ObjectPart) -> bool:
    """Whether names omit a part: the dict in which a mapping such as a `UserDict` keeps its items."""
    return part.attribute and issubclass(type(part.value), dict) and issubclass(type(value), Mapping)


def _set_attributes(result: Any, object_parts: list[ObjectPart]) -> None:
    slots, own_dict = dict(_slots(_type(result))), None
    for part in object_parts:
        if part.label in slots:
            slots[part.label].__set__(result, part.value)
        elif issubclass(type(result), defaultdict) and part.label == "default_factory":
            result.default_factory = part.value
        elif not (issubclass(type(result), deque) and part.label == "maxlen"):
            own_dict = _own_dict(result) if own_dict is None else own_dict
            own_dict[part.label] = part.value


def _type(value: Any) -> Any:
    return type(value)


def _own_dict(value: Any) -> dict[str, Any]:
    try:
        found = object.__getattribute__(value, "__dict__")
    except Exception:
        return {}
    return found if isinstance(found, dict) else {}


def _items(value: Any, base: type) -> list[tuple[Any, Any]]:
    if base in (dict, defaultdict, OrderedDict):
        return list((OrderedDict if base is OrderedDict else dict).items(value))
    if base in (types.SimpleNamespace, object):
        return []
    iterate: Callable[[Any], Iterator[Any]] = base.__iter__  # type: ignore[attr-defined]
    return list(enumerate(list(iterate(value))))


@lru_cache(maxsize=4096)
def _slots(kind: Any) -> tuple[tuple[str, Any], ...]:
    found: dict[str, Any] = {}
    for owner in kind.__mro__:
        names = owner.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else tuple(names):
            is_private = name.startswith("__") and not name.endswith("__")
            mangled = f"_{owner.__name__.lstrip('_')}{name}" if is_private else name
            slot = owner.__dict__.get(mangled)
            if isinstance(slot, types.MemberDescriptorType):
                found.setdefault(mangled, slot)
    return tuple(found.items())


@lru_cache(maxsize=4096)
def _base(kind: Any) -> type | None:
    """The built-in base of a class written in Python; None for a class with state that cannot be seen."""
    base = next(base for base in _BASES if issubclass(kind, base))
    if kind in (tuple, object) or issubclass(kind, type):
        return base if kind is not object and not issubclass(kind, type) else None
    if base is tuple and hasattr(kind, "n_sequence_fields"):
        return base
    if kind is not base and not kind.__flags__ & (1 << 9):  # not a class defined in Python
        return None
    slot_count = sum(isinstance(slot, types.MemberDescriptorType) for owner in kind.__mro__ for slot in _members(owner))
    for offset in ("__dictoffset__", "__weakrefoffset__"):
        slot_count += getattr(kind, offset) > 0 and getattr(base, offset) == 0
    return base if kind.__basicsize__ <= base.__basicsize__ + slot_count * _POINTER else None


def _members(owner: type) -> list[Any]:
    return list(owner.__dict__.values()) if "__slots__" in owner.__dict__ else []


@lru_cache(maxsize=4096)
def _registered(kind: Any) -> Any:
    return private.pytree.SUPPORTED_NODES.get(kind)
