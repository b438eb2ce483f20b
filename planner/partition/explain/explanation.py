"""The explanation of one split, as data and as text for a terminal."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from planner.units import format_bytes


@dataclass(frozen=True, slots=True)
class MovedMore:
    """An op around which another partition moves more bytes, and how many more."""

    op: str
    bytes: float


@dataclass(frozen=True, slots=True)
class SplitAlternative:
    """Another way of splitting, and what the best partition with it costs.

    Args:
        value: what would be pinned: a dimension, `replicated`, or an axis.
        bytes_moved: bytes of that partition, None if there is none.
        extra_bytes: how many more that is.
        nearby_bytes: bytes that it moves around what is explained.
        peak_bytes: memory of the worker that takes the most.
        looks_cheaper: whether fewer bytes move around what is explained.
        moved_more: where the most bytes are moved in addition.
        reason: why it is not chosen, in a sentence.
    """

    value: str
    bytes_moved: float | None
    extra_bytes: float
    nearby_bytes: float
    peak_bytes: int
    looks_cheaper: bool
    moved_more: tuple[MovedMore, ...]
    reason: str


@dataclass(frozen=True)
class SplitExplanation:
    """Why a tensor or an op is split as it is; `print` shows it as text, `to_json()` returns plain data.

    Args:
        name: of the tensor or op.
        what: its shape or its operator.
        alike: how many tensors or ops are split alike because one choice serves them all.
        mesh: into how many parts each level cuts.
        chosen: per level, its split.
        bytes_moved: bytes that all workers together receive in a step.
        nearby_bytes: bytes of these that are moved around it and what is split alike.
        alternatives: the other ways, the one that costs the least first.
    """

    name: str
    what: str
    alike: int
    mesh: tuple[int, ...]
    chosen: tuple[str, ...]
    bytes_moved: float
    nearby_bytes: float
    alternatives: tuple[SplitAlternative, ...]

    def to_json(self) -> dict[str, Any]:
        """All of it as dictionaries, lists, numbers and text."""
        return asdict(self)

    def __repr__(self) -> str:
        levels = ", ".join(
            f"{way} in {parts}" if parts else way for way, parts in _runs(self.chosen, self.mesh)
        )  # fmt: skip
        alike = f", one of {self.alike:,} that are split alike" if self.alike > 1 else ""
        head = (
            f"{self.name} ({self.what}{alike}): {levels or 'whole, on the only worker'}.\n"
            f"  {format_bytes(self.nearby_bytes)} of the {format_bytes(self.bytes_moved)} moved in a step are for ops "
            "that use it."
        )
        lines = [f"  {one.value}: {one.reason}" for one in self.alternatives]
        return "\n".join([head, *(["Instead:"] if lines else ["There is no other way of splitting it."]), *lines])


def _runs(chosen: tuple[str, ...], mesh: tuple[int, ...]) -> list[tuple[str, int]]:
    """Levels with the same split as one, and into how many parts they cut together; 0 for copies."""
    found: list[tuple[str, int]] = []
    for way, parts in zip(chosen, mesh, strict=True):
        if found and found[-1][0] == way:
            found[-1] = way, found[-1][1] * parts
        else:
            found.append((way, parts))
    return [(way, 0 if way in ("replicated", "everything") else parts) for way, parts in found]
