"""The picture of several speeds against the speeds."""

import json
from typing import Any

import pytest

import widgets
from planner.errors import StowageError
from widgets.info import get_compare_speeds

REACHED = {
    "wide": {"ideal": (12.0, "B=128"), "swapping": (3.0, "B=128"), "small": (0.0, "does not fit")},
    "deep": {"ideal": (200.0, ""), "swapping": (190.0, "")},
}


def test_each_speed_is_a_share_of_its_models_ideal() -> None:
    models = get_compare_speeds(REACHED).models
    assert [[speed.share for speed in speeds] for speeds in models.values()] == [[1.0, 0.25, 0.0], [1.0, 0.95]]
    assert (
        get_compare_speeds(REACHED).summary
        == "wide: swapping reaches 25 % of ideal. deep: swapping reaches 95 % of ideal."
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_bar_has_its_share_and_what_does_not_fit_has_none(theme: Any) -> None:
    figure = widgets.compare_speeds(REACHED, theme=theme)
    assert json.loads(figure.to_json())["layout"]["meta"]["summary"].endswith(".")
    (bars,) = figure.data
    assert [*bars.x] == pytest.approx([0, 100, 25, 0, 0, 100, 95])
    texts = [note.text for note in figure.layout.annotations]
    assert any("25" in text and "B=128" in text for text in texts)
    assert any("does not fit" in text and "\N{EN DASH}" in text for text in texts)


@pytest.mark.parametrize(
    "reached", [{}, {"wide": {}}, {"wide": {"ideal": (1.0, "")}}, {"wide": {"ideal": (0, ""), "b": (1, "")}}]
)
def test_without_an_ideal_there_is_nothing_to_compare_with(reached: Any) -> None:
    with pytest.raises(StowageError, match="compare"):
        get_compare_speeds(reached)
