"""A memory map of buffers that no step of ours has made."""

from pathlib import Path

import pytest

import widgets
from planner.errors import StowageError
from planner.plan import validate

PACKED = "id,lower,upper,size,gaps,offset\na,0,9,6,3-5,0\nb,3,5,4,,2\nc,2,7,8,,6\n"


def shown(folder: Path, text: str) -> widgets.MemoryMap:
    path = folder / "buffers.csv"
    path.write_text(text)
    return widgets.MemoryMap.from_csv(path)


def boxes(view: widgets.MemoryMap) -> set[tuple[str, int, int, int, int]]:
    """Name, begin and end in microseconds, address and bytes of each box."""
    graph, plan = view.session.graph, view.session.plan
    assert plan is not None
    drawn = widgets.info.get_address_map(graph, plan)
    spans = (drawn.start * 1e6).round().astype(int).tolist(), (drawn.stop * 1e6).round().astype(int).tolist()
    return set(zip(drawn.names, *spans, drawn.offset.tolist(), drawn.bytes.tolist(), strict=True))


def test_each_buffer_is_a_box_at_its_time_and_address(tmp_path: Path) -> None:
    view = shown(tmp_path, PACKED)
    assert boxes(view) == {("a#1", 0, 3, 0, 6), ("a#2", 5, 9, 0, 6), ("b", 3, 5, 2, 4), ("c", 2, 7, 6, 8)}
    assert view.session.graph.name == "buffers.csv"
    assert view.session.budget == 14
    view.close()


def test_without_offsets_they_are_packed(tmp_path: Path) -> None:
    view = shown(tmp_path, "id,lower,upper,size\na,0,4,6\nb,2,9,4\nc,4,9,6\n")
    assert {box[:3] for box in boxes(view)} == {("a", 0, 4), ("b", 2, 9), ("c", 4, 9)}
    assert view.session.plan is not None
    assert view.session.plan.peak_bytes == 10
    assert validate(view.session.plan, view.session.graph) == []
    view.close()


def test_it_says_what_takes_so_long(tmp_path: Path) -> None:
    path, told = tmp_path / "buffers.csv", list[str]()
    path.write_text("id,lower,upper,size\na,0,4,6\nb,2,9,4\n")
    widgets.MemoryMap.from_csv(path, progress=lambda share, doing: told.append(doing)).close()
    assert told == ["reading buffers.csv", "packing 2 buffers"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (PACKED.replace("c,2,7,8,,6", "c,2,7,8,,5"), "the offsets of buffers.csv are not valid: .* share bytes"),
        ("id,lower,upper,size\n", "buffers.csv lists no buffers"),
        ("a,b\n", "first line must be"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(StowageError, match=says) as error:
        shown(tmp_path, text)
    assert "\n" not in str(error.value)
