"""Pins: tensors and ops whose split is fixed by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from planner.errors import StowageError, did_you_mean
from planner.partition.coarse import CoarseGraph, TensorGroup

#: What a tensor is split by, at every level: a dimension, or `"replicated"`; or the axis of an op.
PinValue = int | str
#: By name of a tensor or an op, its split, or one for each level, of which None is free.
Pins = Mapping[str, PinValue | Sequence[PinValue | None]]
#: The labels that a group may have at a level, None among them for a copy on every worker; None if it is free.
Labels = frozenset[int | None] | None
REPLICATED = "replicated"


@dataclass(frozen=True, slots=True)
class TensorPin:
    """A tensor whose split is fixed.

    Args:
        name: as it was given.
        value: as it was given.
        group: the number of its group.
        labels: per level, what the group may be.
    """

    name: str
    value: PinValue | Sequence[PinValue | None]
    group: int
    labels: tuple[Labels, ...]

    def __str__(self) -> str:
        return f"{self.name}={_text(self.value)}"


@dataclass(frozen=True, slots=True)
class OpPin:
    """An op whose axis is fixed at every level.

    Args:
        name: as it was given.
        axis: the axis that is divided; `"everything"` if every worker computes everything.
        merged: the number of its merged op.
    """

    name: str
    axis: str
    merged: int

    def __str__(self) -> str:
        return f"{self.name}={self.axis}"


Pinned = TensorPin | OpPin


def resolve_pins(coarse: CoarseGraph, mesh: Sequence[int], pins: Pins) -> tuple[Pinned, ...]:
    """Find what names and dimensions stand for.

    Args:
        coarse: the coarse graph.
        mesh: into how many parts each level cuts.
        pins: by name, a dimension, `"replicated"` or an axis; or for a tensor one for each level.

    Raises:
        StowageError: there is no such tensor, op, dimension or axis, or a pin alone cannot be met.
    """
    graph = coarse.graph
    tensors: dict[str, int] = {}
    for made in (True, False):
        for tensor in graph.tensors:
            if (tensor.base < 0) is made:
                tensors.setdefault(tensor.name, tensor.id)
    ops = {op.name: op.id for op in graph.ops}
    found: list[Pinned] = []
    for name, value in pins.items():
        axis_of_op = name in ops and isinstance(value, str) and value != REPLICATED
        if name in tensors and not axis_of_op:
            found.append(_pin_tensor(coarse, mesh, name, tensors[name], value))
        elif name in ops:
            found.append(_pin_op(coarse, name, ops[name], value))
        else:
            close = did_you_mean(name, [*tensors, *ops])
            raise StowageError(f"{name!r} is pinned, but {graph.name} has no tensor or op of that name{close}")
    for pin in found:
        if not feasible(coarse, mesh, [pin]):
            raise StowageError(_too_many_ways(coarse, mesh, pin))
    return tuple(found)


def feasible(coarse: CoarseGraph, mesh: Sequence[int], pins: Iterable[Pinned]) -> bool:
    """Whether pins can be met together, whatever memory they take."""
    pins = list(pins)
    axes: dict[int, set[str]] = {}
    for pin in pins:
        if isinstance(pin, OpPin):
            axes.setdefault(pin.merged, set()).add(pin.axis)
    if any(len(names) > 1 or not _serves(coarse, mesh, merged, *names) for merged, names in axes.items()):
        return False
    return all(
        assignment(coarse.groups[group], mesh, labels) is not None for group, labels in combined(pins, mesh).items()
    )


def combined(pins: Iterable[Pinned], mesh: Sequence[int]) -> dict[int, tuple[Labels, ...]]:
    """By group, what it may be at each level if all pins are met."""
    found: dict[int, tuple[Labels, ...]] = {}
    for pin in pins:
        if isinstance(pin, TensorPin):
            before = found.get(pin.group, (None,) * len(mesh))
            both = zip(before, pin.labels, strict=True)
            found[pin.group] = tuple(
                ours if theirs is None else theirs if ours is None else ours & theirs for ours, theirs in both
            )
    return found


def assignment(
    group: TensorGroup, mesh: Sequence[int], labels: Sequence[Labels]
) -> tuple[int | str | None, ...] | None:
    """A label for each level that cuts nothing into more parts than it has; None if there is none.

    Args:
        group: the tensors.
        mesh: into how many parts each level cuts.
        labels: per level, what it may be.
    """

    def rest(chosen: list[int | str | None]) -> Iterator[tuple[int | str | None, ...]]:
        if len(chosen) == len(mesh):
            yield tuple(chosen)
            return
        options = labels[len(chosen)]
        for label in (None,) if options is None else sorted(options, key=lambda each: (each is None, each or 0)):
            if options is None:
                yield from rest([*chosen, None])
            elif label is None:
                yield from rest([*chosen, REPLICATED])
            elif not group.whole and _left(group, mesh, chosen, label) >= mesh[len(chosen)]:
                yield from rest([*chosen, label])

    return next(rest([]), None)


def smallest_conflict(coarse: CoarseGraph, mesh: Sequence[int], pins: Sequence[Pinned]) -> tuple[Pinned, ...]:
    """A set of pins that cannot be met together, and of which no part is one; every pin is tried without once."""
    needed = list(pins)
    for pin in pins:
        others = [other for other in needed if other is not pin]
        if not feasible(coarse, mesh, others):
            needed = others
    return tuple(needed)


def check_pins(coarse: CoarseGraph, mesh: Sequence[int], pins: Sequence[Pinned]) -> None:
    """Check that pins can be met together.

    Raises:
        StowageError: they cannot; the message names the smallest set of them that conflicts.
    """
    if feasible(coarse, mesh, pins):
        return
    few = smallest_conflict(coarse, mesh, pins)
    names = " and ".join(map(str, few))
    raise StowageError(f"the pins {names} conflict: {_why(coarse, few)}; drop one of them")


def _why(coarse: CoarseGraph, pins: Sequence[Pinned]) -> str:
    if all(isinstance(pin, OpPin) for pin in pins):
        return "these ops are alike, so they are split alike"
    group = next(coarse.groups[pin.group] for pin in pins if isinstance(pin, TensorPin))
    return f"they are split alike, as one group of {len(group.members):,} tensors"


def _pin_tensor(
    coarse: CoarseGraph, mesh: Sequence[int], name: str, tensor: int, value: PinValue | Sequence[PinValue | None]
) -> TensorPin:
    if not isinstance(value, int | str | Sequence):
        raise StowageError(
            f'{name} is pinned to {value!r}; give one of its dimensions, "{REPLICATED}", or one of these per level'
        )
    given: Sequence[PinValue | None] = [value] * len(mesh) if isinstance(value, int | str) else list(value)
    if len(given) != len(mesh):
        raise StowageError(f"{name} is pinned at {len(given)} levels, but the mesh {list(mesh)} has {len(mesh)}")
    labels = tuple(_labels(coarse, name, tensor, each) for each in given)
    return TensorPin(name, value, coarse.group_of[tensor], labels)


def _labels(coarse: CoarseGraph, name: str, tensor: int, value: PinValue | None) -> Labels:
    if value is None:
        return None
    shape = coarse.graph.tensors[tensor].shape
    if isinstance(value, str) and value != REPLICATED:
        raise StowageError(f'{name} is pinned to {value!r}; give one of its dimensions, or "{REPLICATED}"')
    if isinstance(value, str):
        return frozenset({None})
    if isinstance(value, bool) or not isinstance(value, int) or not -len(shape) <= value < len(shape):
        has = f"dimensions 0 to {len(shape) - 1}" if len(shape) > 1 else "only dimension 0" if shape else "none"
        raise StowageError(f"{name} has no dimension {value}: its shape is {list(shape)}, so it has {has}")
    dimension = value % len(shape)
    found = frozenset(label for label, split in coarse.labels[tensor] if split.dimension == dimension)
    if not found:
        raise StowageError(f"dimension {value} of {name}, of shape {list(shape)}, cannot be split; pin another")
    return found


def _pin_op(coarse: CoarseGraph, name: str, op: int, value: PinValue | Sequence[PinValue | None]) -> OpPin:
    merged = next(number for number, each in enumerate(coarse.merged) if op in each.ops)
    axes = axes_of(coarse, merged)
    if value not in axes:
        close = did_you_mean(value, axes) if isinstance(value, str) else ""
        raise StowageError(f"the op {name} cannot be split by {value!r}{close}; choose one of {', '.join(axes)}")
    return OpPin(name, str(value), merged)


def axes_of(coarse: CoarseGraph, merged: int) -> list[str]:
    """The axes by which merged ops can be split, and `"everything"`."""
    return list(dict.fromkeys(axis_name(variant) for variant in coarse.merged[merged].variants))


def axis_name(variant: object) -> str:
    """The axis of a variant, without the atom of it; `"everything"` if every worker computes everything."""
    strategy = getattr(variant, "strategy", None)
    return "everything" if strategy is None else str(strategy.name)


def _serves(coarse: CoarseGraph, mesh: Sequence[int], merged: int, axis: str) -> bool:
    """Whether an axis has indices for all workers."""
    sizes = [each.size for each in coarse.merged[merged].variants if axis_name(each) == axis]

    def rest(left: list[int], level: int) -> bool:
        if level == len(mesh):
            return True
        return any(
            rest([*left[:place], size // mesh[level], *left[place + 1 :]], level + 1)
            for place, size in enumerate(left) if size >= mesh[level]
        )  # fmt: skip

    return rest(sizes, 0)


def _left(group: TensorGroup, mesh: Sequence[int], chosen: Sequence[int | str | None], label: int) -> int:
    """How many indices of a label a part has left."""
    cuts = (parts for parts, other in zip(mesh, chosen, strict=False) if other == label)
    return reduce(int.__floordiv__, cuts, group.sizes[label])


def _too_many_ways(coarse: CoarseGraph, mesh: Sequence[int], pin: Pinned) -> str:
    ways = " x ".join(map(str, mesh)) if len(mesh) > 1 else str(mesh[0])
    if isinstance(pin, OpPin):
        return f"the op {pin.name} cannot be split {ways} ways by {pin.axis}, which has fewer indices"
    tensor = next(each for each in coarse.graph.tensors if each.name == pin.name)
    return (
        f"{pin.name} cannot be split {ways} ways as pinned to {_text(pin.value)}: its shape is {list(tensor.shape)}; "
        "pin another dimension, or have fewer workers"
    )


def _text(value: PinValue | Sequence[PinValue | None]) -> str:
    if isinstance(value, int | str):
        return str(value)
    return ",".join("free" if each is None else str(each) for each in value)
