"""The picture of several steps' peaks against the steps themselves."""

from typing import Any

import pytest

import planner
import widgets
from planner.errors import StowageError
from planner.memory import step_peak
from tests.widgets.steps import MIB, by_hand
from widgets.info import Group, get_compare_peaks

STEPS = {
    "Adam": lambda: planner.zoo.load("mlp:optimizer=adam"),
    "SGD": lambda: planner.zoo.load("mlp"),
    "only the forward pass": lambda: planner.zoo.load("mlp:mode=inference"),
}


def test_each_step_has_its_own_peak_by_kind() -> None:
    steps = {name: make() for name, make in STEPS.items()}
    info = get_compare_peaks(steps)
    assert [peak.name for peak in info.peaks] == [*STEPS]
    for peak, step in zip(info.peaks, steps.values(), strict=True):
        assert peak.total == sum(peak.bytes.values())
        # the peak counts bytes of storages; a plan's also rounds each of them up
        assert 0 <= step_peak(planner.capture(step)) - peak.total < 64 * len(planner.capture(step).storages)
    adam, sgd, forward = info.peaks
    assert adam.bytes[Group.OPTIMIZER_STATE] > 0
    assert Group.OPTIMIZER_STATE not in sgd.bytes
    assert Group.GRADIENT not in forward.bytes
    assert info.lowest is forward
    assert info.highest is adam
    assert "lowest in “only the forward pass”" in info.summary


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_bar_has_its_number_and_every_row_its_total(theme: Any) -> None:
    graph = by_hand()
    figure = widgets.compare_peaks({"by hand": graph, "again": graph}, theme=theme)
    info = get_compare_peaks({"by hand": graph})
    (peak,) = info.peaks
    drawn = {bar.name: (bar.x[0], bar.text[0]) for bar in figure.data}
    assert set(drawn) == {group.value for group in peak.bytes}
    for group, size in peak.bytes.items():
        assert drawn[group.value][0] == size / MIB
        assert float(drawn[group.value][1]) == pytest.approx(size / MIB, rel=0.01)
    totals = [note.text for note in figure.layout.annotations if "<b>" in note.text]
    assert totals == [f"<b>{peak.total / MIB:.1f} MiB</b>"] * 2
    assert [*figure.layout.yaxis.ticktext] == ["by hand", "again"]
    assert figure.layout.meta["summary"] == f"Memory peaks at {peak.total / MIB:.1f} MiB in each of them."


def test_a_name_is_shown_as_it_is() -> None:
    figure = widgets.compare_peaks({"<b>& $x^2$": by_hand()})
    assert [*figure.layout.yaxis.ticktext] == ["&lt;b&gt;&amp; &#36;x^2&#36;"]
    assert "<b>& $" not in figure.to_json()


def test_what_is_no_step_is_refused() -> None:
    for wrong in ({}, [by_hand()], {"a plan": 3}):
        with pytest.raises(StowageError, match="give a"):
            widgets.compare_peaks(wrong)  # type: ignore[arg-type]
