"""The picture of the paper's first figure against its four timelines."""

from typing import Any

import pytest

from planner.swap.methods.swapadvisor.figure_1 import figure_1
from widgets import figures
from widgets.info import get_schedule_and_pool


def test_each_pool_has_its_best_schedule() -> None:
    info = get_schedule_and_pool()
    coarse, fine = dict.fromkeys(case.pool for case in info.cases)
    assert info.best(coarse).schedule == "left branch first"
    assert info.best(fine).schedule == "right branch first"
    assert info.units == 7
    assert info.summary.count("6 units against 7") == 2


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_span_is_a_bar_with_its_name_on_its_lane(theme: Any) -> None:
    figure = figures.schedule_and_pool(theme=theme)
    lanes = {"compute": 2, "out": 1, "in": 0}
    for number, case in enumerate(figure_1()):
        axis = f"x{number + 1}" if number else "x"
        bars = [bar for bar in figure.data if bar.xaxis == axis]
        drawn = {
            (name, lane, start, start + length)
            for bar in bars
            for name, lane, start, length in zip(bar.text, bar.y, bar.base, bar.x, strict=True)
            if name
        }
        assert drawn == {(span.name, lanes[span.stream], span.start, span.stop) for span in case.spans}
        waits = [length for bar in bars for name, length in zip(bar.text, bar.x, strict=True) if not name]
        assert sum(waits) == case.units - 6
