"""A drawing that is no plot: HTML that notebooks show."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Drawing:
    """A drawing that notebooks show at most as wide as they are; `text` is its HTML."""

    text: str = field(repr=False)

    def _repr_html_(self) -> str:
        return self.text
