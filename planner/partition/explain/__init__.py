"""Explaining a partition: what was chosen, what else there is, and what that would cost."""

from planner.partition.explain.explain_split import explain, moved_bytes
from planner.partition.explain.explanation import MovedMore, SplitAlternative, SplitExplanation

__all__ = ["MovedMore", "SplitAlternative", "SplitExplanation", "explain", "moved_bytes"]
