"""The peak as nested boxes, by module and by line of code."""

from collections import Counter, defaultdict
from dataclasses import replace

import pytest

from planner.errors import StowageError
from planner.graph import Graph, storage_lines, storage_modules
from planner.memory import lifetimes
from planner.units import format_percent
from tests.widgets.steps import by_hand, real, real_plan
from widgets import figures
from widgets.info import get_peak_icicle

MODEL = "mlp:layers=5,optimizer=adam"


def peak_of(graph: Graph) -> list[int]:
    """The storages that are alive when most bytes are."""
    lives = lifetimes(graph)
    slot = int(lives.live_bytes.argmax())
    return [storage.id for storage in graph.storages if lives.birth[storage.id] <= slot < lives.end[storage.id]]


@pytest.mark.parametrize("by", ["module", "line"])
def test_the_boxes_in_a_box_add_up_to_it_and_the_first_is_the_peak(by: str) -> None:
    for graph, plan in ((real(MODEL)[1], None), (real(MODEL)[1], real_plan(MODEL, "40%")), (by_hand(), None)):
        boxes = get_peak_icicle(graph, plan, by=by).boxes  # type: ignore[arg-type]
        inside = Counter[int]()
        for box in boxes[1:]:
            inside[box.parent] += box.bytes
        assert all(inside[number] == box.bytes for number, box in enumerate(boxes) if box.group is None)
        if plan is None:
            assert boxes[0].bytes == lifetimes(graph).live_bytes.max()


def test_a_module_and_a_line_have_a_box_of_what_they_hold() -> None:
    graph = real(MODEL)[1]
    for by, owners in (("module", storage_modules(graph)), ("line", storage_lines(graph))):
        held: defaultdict[str, int] = defaultdict(int)
        for storage in peak_of(graph):
            held[owners[storage]] += graph.storages[storage].bytes
        boxes = {box.name: box.bytes for box in get_peak_icicle(graph, by=by).boxes}  # type: ignore[arg-type]
        leaves = [name for name in held if name and not any(other.startswith(f"{name}.") for other in held)]
        assert leaves
        assert {name: boxes[name] for name in leaves} == {name: held[name] for name in leaves}


def test_lines_of_a_file_are_in_their_order_and_unknown_ones_have_a_box() -> None:
    graph = by_hand()

    def boxes(*lines: str) -> list[str]:
        ops = tuple(replace(op, source=lines[op.id % len(lines)]) for op in graph.ops)
        found = get_peak_icicle(replace(graph, ops=ops), by="line").boxes
        return [box.label for box in found if box.group is None]

    assert boxes("model.py:12", "model.py:9", "") == ["by hand", "model.py", "line 9", "line 12"]
    assert boxes("") == ["by hand", "no known line"]


def test_the_title_names_the_module_or_the_line_that_holds_most() -> None:
    graph = real(MODEL)[1]
    held: Counter[str] = Counter()
    for storage in peak_of(graph):
        held[storage_lines(graph)[storage]] += graph.storages[storage].bytes
    line, size = held.most_common(1)[0]
    said = get_peak_icicle(graph, by="line").summary
    assert said.endswith(f", {line} holds {format_percent(size / held.total())}.")
    assert ", layers holds " in get_peak_icicle(graph).summary
    unknown = replace(graph, ops=tuple(replace(op, source="") for op in graph.ops))
    assert get_peak_icicle(unknown, by="line").summary.endswith(", what has no known line holds 100 %.")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_figure_has_every_box(theme: str) -> None:
    info = get_peak_icicle(real(MODEL)[1])
    figure = figures.peak_icicle(real(MODEL)[1], theme=theme)  # type: ignore[arg-type]
    assert list(figure.data[0].values) == [box.bytes for box in info.boxes]
    assert figure.layout.meta["summary"] == info.summary


def test_another_grouping_is_refused() -> None:
    with pytest.raises(StowageError, match='by must be "module" or "line", got \'kind\''):
        figures.peak_icicle(by_hand(), by="kind")  # type: ignore[arg-type]
