"""Colours that stay apart for everyone: Machado, Oliveira and Fernandes (2009), full severity, distances in CIELAB."""

from itertools import combinations

import numpy as np
import pytest

from widgets.figures.theme import AUTO, DARK, DARK_OF, LIGHT, Theme, mixed

SEEN_AS = {
    "normal": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(colour: str, seen: str) -> np.ndarray:
    rgb = np.clip(np.array(SEEN_AS[seen]) @ linear(colour), 0, 1)
    x, y, z = np.cbrt(np.maximum(np.array(TO_XYZ) @ rgb / [0.95047, 1, 1.08883], 1e-9))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one: str, other: str) -> float:
    """WCAG's contrast ratio."""
    dark, light = sorted(float(np.array(TO_XYZ[1]) @ linear(colour)) for colour in (one, other))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("seen", SEEN_AS)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_kinds_phases_and_limits_are_told_apart(theme: Theme, seen: str) -> None:
    for one, other in combinations([*theme.kinds.values(), *theme.phases.values(), theme.limit], 2):
        assert np.linalg.norm(lab(one, seen) - lab(other, seen)) >= 14, (one, other)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_can_be_read(theme: Theme) -> None:
    for ink in (theme.ink, theme.second, theme.third):
        assert contrast(ink, theme.paper) >= 4.5
    assert contrast(theme.on_limit, theme.limit) >= 4.5
    for group, colour in theme.kinds.items():
        assert contrast(theme.on_kinds[group], colour) >= 3, group


def test_the_palette_of_a_figure_that_follows_its_page_looks_light_and_names_each_colour_once() -> None:
    marks = [AUTO.paper, AUTO.ink, AUTO.limit, *AUTO.kinds.values(), *AUTO.on_kinds.values(), *AUTO.phases.values()]
    assert len(set(marks)) == len(marks)
    assert set(marks) <= set(DARK_OF)
    assert not set(DARK_OF) & {LIGHT.paper, LIGHT.ink, *LIGHT.kinds.values(), *DARK.kinds.values()}
    for group, colour in LIGHT.kinds.items():
        assert np.linalg.norm(lab(colour, "normal") - lab(AUTO.kinds[group], "normal")) < 1
        assert DARK_OF[AUTO.kinds[group]] == DARK.kinds[group]


def test_mixing_goes_from_one_colour_to_the_other() -> None:
    assert [mixed("#204060", "#406020", share) for share in (0, 0.5, 1)] == ["#204060", "#305040", "#406020"]
