"""A drawing as HTML, for figures that are not plots."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Drawing:
    """A drawing that fits the width of the notebook; `text` is its HTML."""

    text: str = field(repr=False)

    def _repr_html_(self) -> str:
        return self.text
