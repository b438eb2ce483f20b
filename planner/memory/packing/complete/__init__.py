"""Complete search for a placement below a height: the search, and boxes as it takes them."""

from planner.memory.packing.complete.branching import CROWDED, FAILING, FEWEST, FULLEST, LOWEST, TIGHTEST
from planner.memory.packing.complete.sections import Sections, sections_of
from planner.memory.packing.complete.tree import place_completely

__all__ = [
    "CROWDED", "FAILING", "FEWEST", "FULLEST", "LOWEST", "TIGHTEST", "Sections", "place_completely", "sections_of",
]  # fmt: skip
