"""What stops the answers of a fit, and what to know before relying on one, in words."""

from __future__ import annotations

from planner.fit.bisection import Largest
from planner.fit.fitting import Fit
from planner.units import format_bytes, format_percent


def remarks(found: Fit, answer: Largest, *, unswapped: bool = False) -> list[str]:
    """What stops an answer that has a value, and what to know before relying on it; empty if there is nothing to say.

    Args:
        found: what was found.
        answer: one of its answers, which has a value.
        unswapped: whether it is that for which nothing is swapped.
    """
    said = []
    by_host = None if unswapped or answer.value != found.at_all.value else value_stopped_by_host(found)
    if by_host is not None:
        said.append(f"host memory stops {found.over}={by_host}")
    if answer.value == found.asked[-1]:
        by_model = f"the model stops {found.over}={answer.value + 1}"
        said.append(by_model if found.stopped_by_model else "the last asked for")
    if not answer.proven and by_host is None:
        larger = found.asked[found.asked.index(answer.value) + 1]
        said.append(f"not {found.over}={larger}, nor presumably larger ones")
    if not answer.monotone:
        said.append("some smaller ones fail")
    return said


def why_none(found: Fit, *, unswapped: bool = False) -> str:
    """Why an answer has no value: the smallest one that was asked for fails already.

    Args:
        found: what was found.
        unswapped: whether the answer is that for which nothing is swapped.
    """
    smallest = next(needs for needs in found.tried if needs.value == found.asked[0])
    size, takes = f"{found.over}={smallest.value}", format_bytes(smallest.unswapped_bytes)
    if unswapped:
        return f"{size} already takes {takes}"
    if smallest.step_seconds is not None:
        slower = format_percent(smallest.step_seconds / smallest.ideal_seconds - 1)
        return f"{size} is already {slower} slower"
    why = "more host memory than there is" if found.stopped_by_host else f"{takes} unswapped and no plan was found"
    return f"{size} already takes {why}"


def value_stopped_by_host(found: Fit) -> int | None:
    """The smallest value that has no plan, where it would have one if the host had memory enough; None otherwise."""
    if not found.stopped_by_host:
        return None
    return found.asked[0 if found.at_all.value is None else found.asked.index(found.at_all.value) + 1]
