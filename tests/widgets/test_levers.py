"""Levers as a picture: the points are the rows, and the memory of the machine is a line where it is near."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import nn

import planner
import widgets
from planner.errors import StowageError
from planner.levers import Levers
from planner.machine import PRESETS
from planner.units import bytes_label
from tests.widgets.browser.test_figure_layout import WRONG
from tests.widgets.plots import Plots
from widgets.info import get_levers

#: How far the tag of the memory is from the ends of the axis, in pixels; below 0 beyond one.
INSIDE = """() => {
  const plot = document.querySelector('.js-plotly-plot');
  const { l, w } = plot._fullLayout._size;
  const tag = [...plot.querySelectorAll('.annotation-text')].find(e => e.textContent.includes('for the step'));
  const [{ left }, rect] = [plot.getBoundingClientRect(), tag.getBoundingClientRect()];
  return [rect.left - left - l, left + l + w - rect.right];
}"""


@cache
def found() -> Levers:
    step = planner.TrainStep(
        nn.Linear(64, 64), torch.ones(256, 64), loss=lambda model, batch: model(batch).square().mean()
    )
    return planner.levers(step, PRESETS["h100"], progress=False)


def with_memory(share: float) -> Levers:
    """The same on a machine whose memory is that share of the highest peak."""
    memory = int(share * max(row.peak_bytes for row in found()))
    rows = tuple(replace(row, fits=row.peak_bytes <= memory) for row in found())
    return replace(found(), budget_bytes=memory, rows=rows)


def test_the_points_are_the_rows() -> None:
    points = get_levers(found()).points
    assert [point.name for point in points] == [row.name for row in found()]
    assert [point.peak_bytes for point in points] == [row.peak_bytes for row in found()]
    assert points[0].kind == "as given"
    assert {point.kind for point in points} == {"as given", "lever", "pair"}
    for point in points:
        beaten = [
            other
            for other in points
            if other.peak_bytes < point.peak_bytes and other.samples_per_second > point.samples_per_second
        ]
        assert not (point.best and beaten)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_row_has_a_mark_that_says_whether_it_fits(theme) -> None:
    levers = with_memory(0.5)
    figure = widgets.levers(levers, theme=theme)
    symbols = [symbol for trace in figure.data for symbol in trace.marker.symbol]
    assert len(symbols) == len(levers.rows)
    assert sum(symbol.endswith("-open") for symbol in symbols) == sum(not row.fits for row in levers) > 0
    assert figure.layout.meta["summary"] == get_levers(levers).summary
    assert "way" in get_levers(levers).summary


def test_the_memory_of_the_machine_is_a_line_unless_it_is_far_away() -> None:
    near, far = widgets.levers(with_memory(1.2)), widgets.levers(found())
    assert len(near.layout.shapes) == 1
    assert not far.layout.shapes
    assert any("far to the right" in (note.text or "") for note in far.layout.annotations)


def test_it_says_what_was_asked_and_by_how_much_more_does_not_fit() -> None:
    levers = with_memory(0.5)
    figure = widgets.levers(levers)
    assert f"{levers.name} on h100" in figure.layout.meta["title"]
    assert any("for the step" in (note.text or "") and "h100" in note.text for note in figure.layout.annotations)
    highest = max(levers, key=lambda row: row.peak_bytes)
    over = bytes_label(highest.peak_bytes - levers.budget_bytes)
    about = [text for trace in figure.data for text in trace.customdata if text.startswith(f"<b>{highest.name}</b>")]
    assert f"does not fit: {over} more than there is for the step" in about[0]


def test_it_names_the_levers_that_are_not_possible() -> None:
    assert get_levers(replace(found(), unchangeable=())).summary.endswith(").")
    assert len(found().unchangeable) > 1
    names = ", ".join(one.name for one in found().unchangeable)
    assert get_levers(found()).summary.endswith(f"). Not possible: {names}.")


@pytest.mark.parametrize("share", [0.15, 0.5, 1.2])
def test_the_tag_of_the_memory_stays_in_the_plot(plots: Plots, share: float) -> None:
    page = plots.draw([widgets.levers(with_memory(share))], 700, 600)
    assert min(page.evaluate(INSIDE)) >= 0
    assert page.evaluate(WRONG) == []


def test_something_else_is_refused() -> None:
    with pytest.raises(StowageError, match=r"pass planner\.levers"):
        widgets.levers([])
