"""What a search may choose, and what it makes least."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from planner.errors import StowageError
from planner.partition.coarse import CoarseGraph, MergedOp, Variant

#: What a pin demands of a group at one level: a label, "replicated", or None for nothing.
Pin = int | str | None


@dataclass(frozen=True, eq=False)
class SearchRules:
    """What a search may choose, and what it makes least.

    Args:
        mesh: into how many parts each level cuts, the outermost first.
        weights: the cost of a byte that moves at each level.
        pins: by group, what it must be per level.
        allowed: whether a group may be split by a label; all may if not given.
        allowed_variant: whether merged ops may be split in a way; all may if not given.
        replicate: the cost of a byte of a tensor that a worker stores. With a cost every group may be whole on all
            workers, without one only those that no label can split.

    Raises:
        StowageError: there are not as many weights or pins as levels.
    """

    mesh: tuple[int, ...]
    weights: tuple[float, ...] = ()
    pins: Mapping[int, Sequence[Pin]] = field(default_factory=dict)
    allowed: Callable[[int, int], bool] | None = None
    allowed_variant: Callable[[MergedOp, Variant], bool] | None = None
    replicate: float | None = None

    def __post_init__(self) -> None:
        """Fill in the weights."""
        if not self.weights:
            object.__setattr__(self, "weights", (1.0,) * len(self.mesh))
        if len(self.weights) != len(self.mesh):
            raise StowageError(f"{len(self.weights)} weights are given for {len(self.mesh)} levels")
        for group, pins in self.pins.items():
            if len(pins) != len(self.mesh):
                raise StowageError(f"{len(pins)} pins are given to group {group} for {len(self.mesh)} levels")

    def check(self, coarse: CoarseGraph) -> None:
        """Check that what is pinned exists.

        Raises:
            StowageError: a group, or a label of one, does not.
        """
        for group, pins in self.pins.items():
            if not 0 <= group < len(coarse.groups):
                raise StowageError(f"group {group} is pinned, but there are only {len(coarse.groups)}")
            for pin in pins:
                if pin is not None and pin != "replicated" and pin not in coarse.groups[group].sizes:
                    raise StowageError(f"group {group} is pinned to {pin!r}, which is none of its labels")

    def pin(self, group: int, level: int) -> Pin:
        """What a group must be at a level."""
        return self.pins[group][level] if group in self.pins else None
