"""The end of a range that has none: where doubling first comes to a value that does not fit or fails."""

from __future__ import annotations

from collections.abc import Callable

from planner.errors import StowageError
from planner.fit.failing_sizes import last_working
from planner.fit.size_model import SizeModel
from planner.graph import Graph

#: Values beyond this are not tried.
_LARGEST = 2**30
#: A value at most so many times as large as one that was captured is the next to be captured.
_FURTHEST = 16


class StillFitsError(StowageError):
    """The largest value that is tried still fits, so that a range needs a last one.

    Args:
        name: of the argument.
        value: the largest value that was tried.
        advice: how to name a last value.
    """

    def __init__(self, name: str, value: int, advice: str) -> None:
        super().__init__(f"{name}={value} still fits; name a last value, as in {advice}")
        self.name, self.value = name, value


def closed_range(
    name: str, first: int, graph_of: Callable[[int], Graph], works: Callable[[int], bool],
    fits: Callable[[int, Graph], bool],
) -> range:  # fmt: skip
    """All values from the first one to the first of its doubles that does not fit.

    As soon as two graphs tell how all grow, a few doubles are predicted, and only the last of them, or the first that
    should not fit, is captured. If the step of one cannot be made, the range ends at the last that can, found by
    bisection.

    Args:
        name: of the argument.
        first: the first value, which works.
        graph_of: the captured graph of a value that works.
        works: says whether the step of a value can be made and captured.
        fits: says whether a value fits at all by its graph.

    Raises:
        StillFitsError: the argument does not take the memory to end it.
    """
    before = last = first
    while fits(last, graph_of(last)):
        if 2 * last > _LARGEST:
            raise StillFitsError(name, last, f'over={{"{name}": range({first}, {64 * first + 1})}}')
        model = SizeModel.between((before, graph_of(before)), (last, graph_of(last))) if before < last else None
        double = 2 * last if model is None else _likely_end(last, model, fits)
        if not works(double):
            return range(first, last_working(works, last, double) + 1)
        before, last = last, double
    return range(first, last + 1)


def _likely_end(last: int, model: SizeModel, fits: Callable[[int, Graph], bool]) -> int:
    """The first double of a value that does not fit by its predicted graph, or one that is far enough."""
    double = 2 * last
    most = min(_FURTHEST * last, _LARGEST)
    while 2 * double <= most and model.storage_bytes(double) is not None and fits(double, model.predict(double)):
        double *= 2
    return double
