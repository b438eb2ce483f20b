"""What fits, as numbers and as a plot."""

import json
from dataclasses import replace
from html import unescape

import pytest

from planner import StowageError
from planner.fit import Failure, Fit, Largest, Needs
from tests.widgets.browser.page import PICTURES
from tests.widgets.browser.test_figure_layout import WRONG
from tests.widgets.plots import Plots
from widgets import figures
from widgets.info import get_fit_curves

GIB = 2**30

#: The words of answers that the end of a bar crosses.
CROSSED = """() => {
  const ends = [...document.querySelectorAll('.shapelayer path')].map(e => e.getBoundingClientRect())
    .filter(rect => rect.width < 4);
  return [...document.querySelectorAll('.annotation-text')].filter(e => { const rect = e.getBoundingClientRect();
    return ends.some(end => rect.left < end.left && end.right < rect.right && rect.top < end.bottom
      && end.top < rect.bottom); }).map(e => e.textContent);
}"""


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
    asked=(2, 4, 8, 16, 32),
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
        FOUND, unswapped=none, full_speed=none, slower={}, at_all=none, tried=(replace(FOUND.tried[3], value=1),),
        asked=(1, 2),
    )  # fmt: skip
    figure = figures.fit(found)
    assert get_fit_curves(found).summary == "Of the values that were tried, none fits 8.00 GiB."
    assert [each.text for each in figure.layout.annotations if each.name == "answer"] == [
        "<b>none</b> unswapped: batch=1 already takes 32 GiB",
        "<b>none</b> at full speed",
        "<b>none</b> at all: batch=1 already takes 32 GiB unswapped and no plan was found",
    ]


def answers_of(found: Fit) -> list[str]:
    texts = [each.text for each in figures.fit(found).layout.annotations if each.name == "answer"]
    return [unescape(text).replace("<br>", " ") for text in texts]


def test_the_title_says_what_was_asked_of_which_machine() -> None:
    assert "batch=2..32 on laptop" in figures.fit(FOUND).layout.title.text
    assert "batch=8 on laptop" in figures.fit(replace(FOUND, asked=(8,), unswapped=largest(None))).layout.title.text


def test_it_says_where_host_memory_stops_what_would_fit() -> None:
    found = replace(FOUND, stopped_by_host=True)
    assert answers_of(found) == [
        "<b>4</b> unswapped", "<b>4</b> at full speed", "<b>4</b> at most 10 % slower",
        "<b>8</b> at most 50 % slower", "<b>8</b> at all (host memory stops batch=16)",
    ]  # fmt: skip
    assert get_fit_curves(found).summary.endswith(" and at all. batch=16 takes more host memory than there is.")
    figure = figures.fit(found)
    assert figure.data[0].customdata[3].endswith("a plan within the budget takes more host memory than there is")
    nothing = replace(found, slower={}, full_speed=largest(None), at_all=largest(None), unswapped=largest(None))
    assert answers_of(replace(nothing, asked=(16, 32))) == [
        "<b>none</b> unswapped: batch=16 already takes 32 GiB", "<b>none</b> at full speed",
        "<b>none</b> at all: batch=16 already takes more host memory than there is",
    ]  # fmt: skip


def test_it_says_what_to_know_before_relying_on_an_answer() -> None:
    found = replace(
        FOUND, asked=(2, 4, 8), slower={}, full_speed=Largest(4, proven=False, monotone=True),
        at_all=Largest(8, proven=True, monotone=False),
    )  # fmt: skip
    assert answers_of(found) == [
        "<b>4</b> unswapped", "<b>4</b> at full speed (not batch=8, nor presumably larger ones)",
        "<b>8</b> at all (the last asked for, some smaller ones fail)",
    ]  # fmt: skip


def test_it_says_where_the_model_stops_whatever_memory_there_is_and_why() -> None:
    found = replace(
        FOUND, asked=range(2, 5), unswapped=largest(4), slower={}, at_all=largest(4),
        failed=(Failure(5, "ValueError: at most 4 rows"),),
    )  # fmt: skip
    assert answers_of(found) == [
        "<b>4</b> unswapped", "<b>4</b> at full speed", "<b>4</b> at all (the model stops batch=5)",
    ]  # fmt: skip
    assert get_fit_curves(found).summary.endswith(
        " and at all. batch=5 fails, whatever memory there is (ValueError: at most 4 rows)."
    )


@pytest.mark.parametrize("width", [570, 1000])
@pytest.mark.parametrize("last", [9, 11, 13, 16, 40])
def test_no_words_cross_the_end_of_a_bar(plots: Plots, width: int, last: int) -> None:
    unsure = Largest(8, proven=False, monotone=False)
    tried = (*FOUND.tried[:-1], replace(FOUND.tried[-1], value=last))
    found = replace(
        FOUND, tried=tried, asked=(2, 4, 8, last), stopped_by_host=True, at_all=unsure,
        slower={0.1: Largest(4, proven=False, monotone=True), 0.5: unsure},
    )  # fmt: skip
    page = plots.draw([figures.fit(found)], width, 700)
    assert page.locator(".shapelayer path").count() > len(answers_of(found))
    assert page.evaluate(CROSSED) == []
    assert page.evaluate(WRONG) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_words_are_cut_or_cover_others(plots: Plots, theme: figures.ThemeName) -> None:
    found = replace(
        FOUND, machine="h100:memory=8GiB,host_memory=4GiB", stopped_by_host=True,
        slower={0.1: Largest(4, proven=False, monotone=False), 0.5: largest(8)},
    )  # fmt: skip
    page = plots.draw([figures.fit(found, theme=theme)], 700, 700)
    if PICTURES:
        page.screenshot(path=f"{PICTURES}/fit-{theme}.png")
    assert page.evaluate(WRONG) == []


def test_names_are_shown_and_never_read_as_markup_and_other_things_are_refused() -> None:
    figure = figures.fit(replace(FOUND, over="<b>x</b>"))
    assert "<b>x" not in figure.to_json().replace("\\u003c", "<").replace("&lt;", "")
    with pytest.raises(StowageError, match=r"^a dict is not what planner\.fit returns"):
        figures.fit({})  # type: ignore[arg-type]
