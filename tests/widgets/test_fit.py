"""What fits, as numbers and as a plot."""

import json
from dataclasses import replace

import pytest

from planner import StowageError
from planner.fit import Fit, Largest, Needs
from widgets import figures
from widgets.info import get_fit_curves

GIB = 2**30


def largest(value: int | None) -> Largest:
    return Largest(value, proven=True, monotone=True)


#: Within 8 GiB, batches of 2 and 4 are taken unswapped, one of 8 at 80 % of ideal speed, and one of 16 by no plan.
FOUND = Fit(
    over="batch",
    machine="laptop",
    budget_bytes=8 * GIB,
    reserve=(),
    unswapped=largest(4),
    full_speed=largest(4),
    slower={0.1: largest(4), 0.5: largest(8)},
    at_all=largest(8),
    tried=(
        Needs(2, 4 * GIB, 1.0, 1.0, 4 * GIB, 0),
        Needs(4, 8 * GIB, 2.0, 2.0, 8 * GIB, 0),
        Needs(8, 16 * GIB, 4.0, 5.0, 7 * GIB, 9 * GIB),
        Needs(16, 32 * GIB, 8.0, None, None, None),
    ),
)


def test_the_numbers_are_those_of_what_was_tried() -> None:
    info = get_fit_curves(FOUND)
    assert info.values.tolist() == [2, 4, 8, 16]
    assert (info.unswapped_bytes / GIB).tolist() == [4, 8, 16, 32]
    assert (info.peak_bytes[:3] / GIB).tolist() == [4, 8, 7]
    assert info.peak_bytes[3] == -1
    assert info.ideal_rate.tolist() == [2, 2, 2, 2]
    assert info.rate.tolist() == [2, 2, 1.6, 0]
    assert info.summary == (
        "The most that fits 8.00 GiB: batch=4 unswapped and at full speed and at most 10 % slower, "
        "batch=8 at most 50 % slower and at all."
    )


def test_of_another_argument_than_the_batch_steps_are_counted() -> None:
    info = get_fit_curves(replace(FOUND, over="sequence"))
    assert info.unit == "steps"
    assert info.rate.tolist() == [1, 0.5, 0.2, 0]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_memory_is_drawn_over_the_answers_and_those_over_speed(theme: figures.ThemeName) -> None:
    figure = figures.fit(FOUND, theme=theme)
    data = json.loads(figure.to_json())
    assert data["layout"]["meta"]["summary"] == get_fit_curves(FOUND).summary
    assert [list(line.x) for line in figure.data] == [[2, 4, 8, 16], [2, 4, 8], [2, 4, 8, 16], [2, 4, 8]]
    assert "no plan within the budget" in figure.data[0].customdata[3]
    assert "<b>1.6</b> samples per second, 80 % of ideal" in figure.data[3].customdata[2]
    answers = [each.text for each in figure.layout.annotations if each.name == "answer"]
    assert answers[0] == "<b>4</b> unswapped"
    assert answers[-1] == "<b>8</b> at all"
    ends = [shape.x1 for shape in figure.layout.shapes if shape.type == "rect"]
    assert ends == [4, 4, 4, 8, 8]


def test_where_nothing_fits_it_says_so() -> None:
    none = largest(None)
    found = replace(
        FOUND, unswapped=none, full_speed=none, slower={}, at_all=none, tried=(replace(FOUND.tried[3], value=1),)
    )
    figure = figures.fit(found)
    assert get_fit_curves(found).summary == "Of the values that were tried, none fits 8.00 GiB."
    assert [each.text for each in figure.layout.annotations if each.name == "answer"] == [
        "<b>none</b> unswapped", "<b>none</b> at full speed", "<b>none</b> at all",
    ]  # fmt: skip


def test_names_are_shown_and_never_read_as_markup_and_other_things_are_refused() -> None:
    figure = figures.fit(replace(FOUND, over="<b>x</b>"))
    assert "<b>x" not in figure.to_json().replace("\\u003c", "<").replace("&lt;", "")
    with pytest.raises(StowageError, match=r"^a dict is not what planner\.fit returns"):
        figures.fit({})  # type: ignore[arg-type]
