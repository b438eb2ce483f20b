"""Whole layers on GPUs in turn, all of which run at once as far as the graph allows."""

from __future__ import annotations

from paper_tofu_case import Case, Outcome

from planner.partition import place_operators


def operator_placement(case: Case) -> Outcome:
    """Layers on devices in turn, all running at once as far as the graph allows; the batch is halved until it fits."""
    batch = case.batch
    while batch >= 1:
        found = place_operators(case.graph(batch), case.machine)
        if max(found.peak_bytes) <= case.memory:
            return Outcome(batch / found.seconds, batch)
        batch //= 2
    return Outcome(0, 0, "does not fit")
